// Counts the facts about a graph.
#include "tools/summary/graph_summary.h"

#include <algorithm>

#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/functions/function.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/kernel.h"

namespace permafrost {
namespace {

constexpr size_t kLargestShown = 10;

// Fields of GraphDef, FunctionDefLibrary, FunctionDef and NodeDef.
constexpr uint32_t kGraphLibrary = 2;
constexpr uint32_t kLibraryFunction = 1;
constexpr uint32_t kFunctionNode = 3;
constexpr uint32_t kNodeOp = 2;

// Calls `use` with the payload of each length-delimited field `number`.
template <typename Use>
absl::Status ForEachField(absl::string_view message, uint32_t number, Use use) {
  WireReader reader(message);
  WireField field;
  while (reader.Next(&field)) {
    if (field.number == number && field.type == WireType::kLengthDelimited) PF_RETURN_IF_ERROR(use(field.bytes));
  }
  return reader.status();
}

// Counts ops in function bodies. `library` starts with the tag of GraphDef.library, as Graph keeps it.
absl::Status CountFunctionOps(absl::string_view library, std::map<std::string, int64_t>* counts) {
  const auto count_node = [&](absl::string_view node) {
    std::string op;  // If a field is repeated, the last value counts.
    PF_RETURN_IF_ERROR(ForEachField(node, kNodeOp, [&](absl::string_view text) {
      op = std::string(text);
      return absl::OkStatus();
    }));
    ++(*counts)[op];
    return absl::OkStatus();
  };
  const auto count_function = [&](absl::string_view function) {
    return ForEachField(function, kFunctionNode, count_node);
  };
  const auto count_library = [&](absl::string_view functions) {
    return ForEachField(functions, kLibraryFunction, count_function);
  };
  return Annotate(ForEachField(library, kGraphLibrary, count_library), "function library");
}

bool IsUnreadResult(const Node& node) {
  if (!node.uses().empty()) return false;
  for (const Op op : {ops::kConst, ops::kAssign, ops::kNoOp, ops::kPlaceholder}) {
    if (node.op() == op) return false;
  }
  return true;
}

absl::StatusOr<ConstantInfo> InfoOf(const Node& node) {
  ConstantInfo info{&node, "", DType::kInvalid, Shape(), 0, 0};
  const AttrValue* value = node.FindAttr("value");
  if (value == nullptr) return absl::NotFoundError("no value");
  PF_RETURN_IF_ERROR(value->TensorTypeAndShape(&info.dtype, &info.shape));
  if (!info.shape.IsFullyKnown()) return absl::InvalidArgumentError("shape is not known");
  PF_ASSIGN_OR_RETURN(info.num_elements, info.shape.CheckedNumElements());
  if (__builtin_mul_overflow(static_cast<uint64_t>(info.num_elements), SizeOf(info.dtype), &info.bytes)) {
    return absl::InvalidArgumentError("size is beyond 64 bits");
  }
  return info;
}

void AddIssue(const Node& node, std::string reason, std::vector<OpIssue>* issues) {
  for (OpIssue& issue : *issues) {
    if (issue.op != node.op().name()) continue;
    ++issue.count;
    return;
  }
  issues->push_back({std::string(node.op().name()), 1, std::move(reason)});
}

bool NeedsKernel(Op op) {
  for (const Op other : {ops::kConst, ops::kPlaceholder, ops::kPlaceholderV2, ops::kNoOp}) {
    if (op == other) return false;
  }
  return true;
}

// Adds the facts about constants, and about unsupported or unknown ops.
absl::Status AddNode(const Node& node, absl::string_view function, int64_t* parameters, GraphSummary* summary,
                     std::vector<ConstantInfo>* constants) {
  const Op op = node.op();
  if (op == ops::kConst) {
    absl::StatusOr<ConstantInfo> info = InfoOf(node);
    if (!info.ok()) return absl::OkStatus();
    if (__builtin_add_overflow(*parameters, info->num_elements, parameters)) {
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": the graph has more than 2^63 parameters"));
    }
    info->function = std::string(function);
    TypeUse& use = summary->weights_by_type[DTypeName(info->dtype)];
    ++use.num_tensors;
    use.num_elements += info->num_elements;
    use.bytes += info->bytes;
    constants->push_back(*std::move(info));
  } else if (!op.is_known()) {
    AddIssue(node, "no schema is known", &summary->unknown_ops);
  }
  if (!NeedsKernel(op)) return absl::OkStatus();
  const absl::Status status = CheckKernel(node);
  if (!status.ok()) AddIssue(node, std::string(status.message()), &summary->without_kernel);
  return absl::OkStatus();
}

// Adds function bodies. Bodies that depend on attributes of their callers, and bodies that are not valid graphs, are
// omitted.
absl::Status AddFunctions(const Graph& graph, GraphSummary* summary, std::vector<ConstantInfo>* constants) {
  if (graph.library().empty()) return absl::OkStatus();
  const absl::StatusOr<FunctionLibrary> library = FunctionLibrary::Of(graph);
  if (!library.ok()) return Annotate(library.status(), "function library");
  summary->num_functions = library->size();
  for (const Function* function : library->functions()) {
    absl::StatusOr<std::unique_ptr<Graph>> body = library->Instantiate({std::string(function->name()), {}});
    if (!body.ok()) continue;
    for (const Node* node = (*body)->first(); node != nullptr; node = node->next()) {
      const bool is_signature = node->op() == ops::k_Arg || node->op() == ops::k_Retval;
      if (is_signature || library->Find(node->op().name()) != nullptr) continue;
      PF_RETURN_IF_ERROR(AddNode(*node, function->name(), &summary->function_parameters, summary, constants));
    }
    summary->bodies.push_back(*std::move(body));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GraphSummary> Summarize(const Graph& graph) {
  GraphSummary summary;
  std::map<std::string, int64_t> op_counts;
  std::vector<ConstantInfo> constants;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const Op op = node->op();
    ++op_counts[std::string(op.name())];
    if (!node->device().empty()) ++summary.devices[std::string(node->device())];
    summary.control_edges += node->num_inputs() - node->num_data_inputs();
    if (op == ops::kPlaceholder) summary.placeholders.push_back(node);
    if (op == ops::kVariable || op == ops::kVariableV2) summary.variables.push_back(node);
    if (IsUnreadResult(*node)) summary.unread.push_back(node);
    PF_RETURN_IF_ERROR(AddNode(*node, "", &summary.const_parameters, &summary, &constants));
  }
  PF_RETURN_IF_ERROR(AddFunctions(graph, &summary, &constants));
  PF_RETURN_IF_ERROR(CountFunctionOps(graph.library(), &op_counts));
  summary.ops.assign(op_counts.begin(), op_counts.end());
  // TensorFlow's tool leaves ties to the standard library's sort. The same sort over the same order gives its lines.
  std::sort(summary.ops.begin(), summary.ops.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::stable_sort(constants.begin(), constants.end(),
                   [](const ConstantInfo& a, const ConstantInfo& b) { return a.bytes > b.bytes; });
  constants.resize(std::min(constants.size(), kLargestShown));
  summary.largest = std::move(constants);
  summary.flops = EstimateFlops(graph);
  summary.interface = FindInterface(graph);
  return summary;
}

}  // namespace permafrost
