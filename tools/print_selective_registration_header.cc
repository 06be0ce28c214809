// Collects the ops and kernels that the models need, and prints them in the selected format.
#include "tools/print_selective_registration_header.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/wire_format/node_def.h"
#include "io/formats/graphdef.h"
#include "runtime_check/program/integer_fusion.h"
#include "runtime_check/program_file/program_file.h"
#include "runtime_check/program_file/program_signature.h"
#include "tools/selective/kernel_classes.h"
#include "tools/selective/model_nodes.h"
#include "tools/selective/permafrost_header.h"
#include "tools/selective/tensorflow_header.h"

namespace permafrost {
namespace {

// TensorFlow rewrites this op before the run, so it is registered without a kernel.
constexpr absl::string_view kRewrittenOp = "AccumulateNV2";

// Nodes without a kernel, grouped by reason.
struct Unserved {
  std::string example;  // "'model.pb': node 'a'".
  size_t count = 0;
};
using UnservedNodes = std::map<std::string, Unserved>;

std::string Line(const std::string& reason, const Unserved& nodes) {
  const std::string others = nodes.count == 1 ? "" : absl::StrCat(" and ", FormatCount(nodes.count - 1), " more");
  return absl::StrCat(reason, " (", nodes.example, others, ")");
}

void Note(absl::string_view reason, const std::string& path, const ModelNode& node, UnservedNodes* unserved) {
  Unserved& nodes = (*unserved)[std::string(reason)];
  if (nodes.count++ == 0) nodes.example = absl::StrCat("'", path, "': ", Describe(node));
}

absl::Status CollectPairs(const Graph& graph, const std::string& path, KernelClasses* classes, OpsAndKernels* pairs,
                          UnservedNodes* unserved) {
  return VisitNodes(graph, [&](const ModelNode& node) {
    if (node.op == kNoSuchNodeOp) return absl::OkStatus();
    if (node.is_call) return absl::OkStatus();
    const absl::StatusOr<std::string> kernel = classes->Find(node.op, node.device, node.attrs);
    if (kernel.ok()) {
      pairs->insert({std::string(node.op), *kernel});
    } else if (!absl::IsNotFound(kernel.status())) {
      return kernel.status();
    } else if (node.op == kRewrittenOp) {
      pairs->insert({std::string(node.op), std::nullopt});
    } else {
      Note(kernel.status().message(), path, node, unserved);
    }
    return absl::OkStatus();
  });
}

// Adds the integer nodes that a session makes from the quantised operators of a graph or a body. The float ops stay
// selected, because the session matches them.
absl::Status CollectIntegerNodes(const Graph& graph, Selection* selection) {
  if (!HasQuantizedOperators(graph)) return absl::OkStatus();
  const std::unique_ptr<Graph> fused = graph.Clone();
  PF_RETURN_IF_ERROR(FuseQuantizedOperators(std::vector<bool>(fused->id_limit(), true), {}, fused.get()));
  for (const Node* node = fused->first(); node != nullptr; node = node->next()) {
    const absl::string_view op = node->op().name();
    if (!absl::StartsWith(op, "_Integer") && !absl::StartsWith(op, "_Hybrid") && node->op() != ops::kReshape) continue;
    PF_RETURN_IF_ERROR(Select({node->name(), op, node->device(), node->attrs(), "", false}, selection));
  }
  return absl::OkStatus();
}

absl::Status CollectAllIntegerNodes(const Graph& graph, Selection* selection) {
  PF_RETURN_IF_ERROR(CollectIntegerNodes(graph, selection));
  if (graph.library().empty() || !absl::StrContains(graph.library(), kRoundingAttr)) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const FunctionLibrary library, FunctionLibrary::Of(graph));
  for (const Function* function : library.functions()) {
    // A function with attributes has a body for each caller; importers of quantised models make none.
    if (!function->signature().attrs.empty()) continue;
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> body,
                        library.Instantiate(FunctionRef{std::string(function->name()), {}}));
    PF_RETURN_IF_ERROR(
        Annotate(CollectIntegerNodes(*body, selection), absl::StrCat("function '", function->name(), "'")));
  }
  return absl::OkStatus();
}

// Collects the selection for Permafrost's runtime.
absl::Status CollectSelection(const Graph& graph, const std::string& path, Selection* selection,
                              UnservedNodes* unserved) {
  if (!graph.library().empty()) SelectFunctions(selection);
  PF_RETURN_IF_ERROR(CollectAllIntegerNodes(graph, selection));
  return VisitNodes(graph, [&](const ModelNode& node) {
    const absl::Status status = node.is_call ? absl::OkStatus() : Select(node, selection);
    if (!absl::IsUnimplemented(status)) return status;
    Note(status.message(), path, node, unserved);
    return absl::OkStatus();
  });
}

absl::Status CollectFile(const PrintSelectiveRegistrationHeaderOptions& options, const std::string& path,
                         const ModelOpener& opener, FileSystem& files, KernelClasses* classes, OpsAndKernels* pairs,
                         UnservedNodes* unserved) {
  if (options.proto_fileformat == "ops_list") {
    PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
    absl::StatusOr<OpsAndKernels> listed = ParseOpsList(text);
    if (!listed.ok()) return Annotate(listed.status(), absl::StrCat("'", path, "'"));
    pairs->merge(*listed);
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, opener.Open(path));
  return Annotate(CollectPairs(*graph, path, classes, pairs, unserved), absl::StrCat("'", path, "'"));
}

// Collects the steps of a program file.
absl::Status CollectProgram(absl::string_view bytes, Selection* selection) {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<ProgramFile> program, ProgramFile::Read(bytes, nullptr));
  for (const ProgramFileStep& step : program->steps()) {
    const Node& node = *step.node;
    PF_RETURN_IF_ERROR(Annotate(CheckSignature(*program, step, FindKernel(node.op())), node.Describe()));
    PF_RETURN_IF_ERROR(Select({node.name(), node.op().name(), "", node.attrs(), "", false}, selection));
    PF_ASSIGN_OR_RETURN(std::string attrs, SignatureAttrs(node));
    selection->signatures.insert({std::string(node.op().name()), TypesText(*program, step), std::move(attrs)});
  }
  for (const ProgramFileTensor& tensor : program->tensors()) selection->types.insert(tensor.dtype);
  return absl::OkStatus();
}

// Collects a model, or a program file. *num_programs counts the latter.
absl::Status CollectForPermafrost(const std::string& path, const ModelOpener& opener, FileSystem& files,
                                  Selection* selection, UnservedNodes* unserved, size_t* num_programs) {
  const std::string name = absl::StrCat("'", path, "'");
  if (const absl::StatusOr<FileView> file = files.MapFile(path); file.ok() && LooksLikeProgram(file->bytes)) {
    ++*num_programs;
    return Annotate(CollectProgram(file->bytes, selection), name);
  }
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, opener.Open(path));
  return Annotate(CollectSelection(*graph, path, selection, unserved), name);
}

// Warns about omitted nodes, or returns one error for all of them.
absl::Status Report(const UnservedNodes& unserved, bool is_error, Console& console) {
  std::string problems;
  for (const auto& [reason, nodes] : unserved) {
    if (is_error) {
      absl::StrAppend(&problems, problems.empty() ? "" : "; ", Line(reason, nodes));
    } else {
      console.err << "warning: " << Printable(Line(reason, nodes)) << ": left out\n";
    }
  }
  return problems.empty() ? absl::OkStatus() : absl::UnimplementedError(problems);
}

absl::Status PrintForPermafrost(const PrintSelectiveRegistrationHeaderOptions& options,
                                const std::vector<std::string>& paths, FileSystem& files, Console& console) {
  if (options.proto_fileformat == "ops_list") {
    return absl::InvalidArgumentError("--proto_fileformat=ops_list is for --style=tensorflow and ops_list");
  }
  const ModelOpener opener(files, options.read, console);
  Selection selection;
  UnservedNodes unserved;
  size_t num_programs = 0;
  for (const std::string& path : paths) {
    PF_RETURN_IF_ERROR(CollectForPermafrost(path, opener, files, &selection, &unserved, &num_programs));
  }
  if (num_programs != 0 && num_programs != paths.size()) {
    return absl::InvalidArgumentError("--graphs: found program files and other models, expected one kind");
  }
  PF_RETURN_IF_ERROR(Report(unserved, !options.allow_missing, console));
  if (selection.ops.empty()) return absl::FailedPreconditionError("no op to register in the models");
  console.out << PermafrostHeader(
      selection,
      absl::StrCat("print_selective_registration_header --style=permafrost --graphs=", absl::StrJoin(paths, ",")));
  return absl::OkStatus();
}

void DefineFlags(PrintSelectiveRegistrationHeaderOptions* options, FlagTable* flags) {
  flags->Add("graphs", &options->graphs, "FILES",
             "Models, separated by commas, in any format that is read. May be repeated. Functions and bodies of "
             "control flow are included.");
  flags->AddChoice("proto_fileformat", &options->proto_fileformat, {"rawproto", "textproto", "ops_list"},
                   "Format of the files. rawproto and textproto: any model, detected from its content. ops_list: JSON, "
                   "[[\"op\", \"kernel\"], ...].");
  flags->Add("default_ops", &options->default_ops, "OP:KERNEL,...",
             "Ops that are always registered, since TensorFlow adds them to graphs. 'all' registers everything.");
  flags->AddChoice(
      "style", &options->style, {"tensorflow", "permafrost", "ops_list"},
      "Output. tensorflow, permafrost: the header ops_to_register.h for a build of that runtime. ops_list: "
      "the contents of TensorFlow's header as JSON, for --proto_fileformat=ops_list.");
  flags->Add("strict", &options->strict, "Fail, instead of warning, if TensorFlow has no kernel for an op.");
  flags->Add("allow_missing", &options->allow_missing,
             "Warn, instead of failing, if Permafrost has no kernel for an op.");
  AddReadFlags(&options->read, flags);
  flags->MarkCommon({"graphs", "proto_fileformat", "default_ops", "style", "strict", "allow_missing"});
  flags->AcceptAsArguments({"graphs"});
}

}  // namespace

absl::Status PrintSelectiveRegistrationHeader(const PrintSelectiveRegistrationHeaderOptions& options, FileSystem& files,
                                              Console& console) {
  std::vector<std::string> paths;
  for (const std::string& list : options.graphs) {
    for (std::string& path : SplitList(list)) paths.push_back(std::move(path));
  }
  if (paths.empty()) return absl::InvalidArgumentError("--graphs names no file");
  if (options.style == "permafrost") return PrintForPermafrost(options, paths, files, console);

  PF_ASSIGN_OR_RETURN(KernelClasses classes, KernelClasses::OfTensorFlow());
  ModelOpener opener(files, options.read, console);
  opener.AllowDanglingInputs();
  OpsAndKernels pairs;
  UnservedNodes unserved;
  for (const std::string& path : paths) {
    PF_RETURN_IF_ERROR(CollectFile(options, path, opener, files, &classes, &pairs, &unserved));
  }
  const bool registers_all = options.default_ops == "all";
  if (!registers_all) {
    absl::StatusOr<OpsAndKernels> defaults = ParseDefaultOps(options.default_ops);
    if (!defaults.ok()) return Annotate(defaults.status(), "--default_ops");
    pairs.merge(*defaults);
  }

  PF_RETURN_IF_ERROR(Report(unserved, options.strict, console));
  if (pairs.empty()) {
    console.out << "Error reading graph!\n1\n";
    return absl::FailedPreconditionError("no op to register in the models and in --default_ops");
  }
  if (options.style == "ops_list") {
    console.out << OpsList(pairs);
  } else {
    console.out << (registers_all ? TensorFlowHeaderOfAll() : TensorFlowHeader(pairs));
  }
  return absl::OkStatus();
}

Tool PrintSelectiveRegistrationHeaderTool() {
  return DefineTool<PrintSelectiveRegistrationHeaderOptions>(
      "print_selective_registration_header", "prints the ops and kernels that models need, as a header for a build",
      {{"Header for TensorFlow, compiled with -DSELECTIVE_REGISTRATION -DSUPPORT_SELECTIVE_REGISTRATION.",
        "--graphs=a.pb,b.pb > ops_to_register.h"},
       {"Header for Permafrost, compiled with -DSELECTIVE_REGISTRATION.",
        "--style=permafrost --graphs=model.pb > ops_to_register.h"},
       {"Fail if TensorFlow has no kernel for an op.", "--graphs=model.pb --strict > ops_to_register.h"}},
      &DefineFlags, &PrintSelectiveRegistrationHeader);
}

}  // namespace permafrost
