// Writes the signatures of new functions; the library writes their bodies.
#include "transforms/freeze/function_twins.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/wire_format/graphdef_fields.h"

namespace permafrost {
namespace {

namespace fields = graphdef_fields;

std::string EncodeArg(absl::string_view name, DType type) {
  std::string arg;
  AppendBytesField(fields::kArgName, name, &arg);
  AppendVarintField(fields::kArgType, static_cast<uint64_t>(type), &arg);
  return arg;
}

void AppendEntry(uint32_t number, absl::string_view key, absl::string_view value, std::string* out) {
  std::string entry;
  AppendBytesField(fields::kKey, key, &entry);
  AppendBytesField(fields::kValue, value, &entry);
  AppendBytesField(number, entry, out);
}

// Appends the argument attributes of the original's definition, with the values of the body's nodes.
void AppendArgAttrs(const std::vector<Node*>& args, std::string* out) {
  for (size_t i = 0; i < args.size(); ++i) {
    std::string attrs;
    for (const Attr& attr : args[i]->attrs()) {
      if (attr.key == "T" || attr.key == "index" || attr.key == "_resource_arg_unique_id") continue;
      AppendEntry(fields::kArgAttrEntry, attr.key, attr.value.Encoded(), &attrs);
    }
    if (attrs.empty()) continue;
    std::string entry;
    AppendVarintField(fields::kKey, i, &entry);
    AppendBytesField(fields::kValue, attrs, &entry);
    AppendBytesField(fields::kArgAttr, entry, out);
  }
}

bool IsList(const ArgSpec& arg) { return arg.is_type_list || !arg.number_attr.empty(); }

absl::StatusOr<std::string> Define(absl::string_view name, const Graph& body, const Function& original) {
  const std::vector<ArgSpec>& outputs = original.signature().outputs;
  const std::vector<Node*> args = ArgsOf(body), retvals = RetvalsOf(body);
  const bool keeps_names = outputs.size() == retvals.size() && std::none_of(outputs.begin(), outputs.end(), IsList);
  std::string signature, returns, control_returns, definition;
  AppendBytesField(fields::kSignatureName, name, &signature);
  for (const Node* arg : args) {
    PF_ASSIGN_OR_RETURN(const DType type, TypeAttr(*arg, "T"));
    AppendBytesField(fields::kInputArg, EncodeArg(arg->name(), type), &signature);
  }
  for (size_t i = 0; i < retvals.size(); ++i) {
    PF_ASSIGN_OR_RETURN(const DType type, TypeAttr(*retvals[i], "T"));
    const std::string output = keeps_names ? outputs[i].name : absl::StrCat("output_", i);
    AppendBytesField(fields::kOutputArg, EncodeArg(output, type), &signature);
    AppendEntry(fields::kRet, output, "", &returns);
  }
  if (original.signature().is_stateful) AppendVarintField(fields::kIsStateful, 1, &signature);
  for (const auto& [output, node] : original.control_returns()) {
    AppendBytesField(fields::kControlOutput, output, &signature);
    AppendEntry(fields::kControlRet, output, "", &control_returns);
  }
  AppendBytesField(fields::kSignature, signature, &definition);
  absl::StrAppend(&definition, returns);
  for (const Attr& attr : original.attrs()) {
    if (attr.key != "_input_shapes") {
      AppendEntry(fields::kDefinitionAttr, attr.key, attr.value.Encoded(), &definition);
    }
  }
  absl::StrAppend(&definition, control_returns);
  AppendArgAttrs(args, &definition);
  return definition;
}

}  // namespace

absl::StatusOr<std::string> FunctionTwins::Add(absl::string_view original, std::unique_ptr<Graph> body) {
  PF_ASSIGN_OR_RETURN(const Function* function, library_.Require(original));
  // TensorFlow's own freezing uses this suffix.
  Twin twin;
  twin.name = absl::StrCat(original, "_frozen");
  for (int i = 1; library_.Find(twin.name) != nullptr || names_.contains(twin.name); ++i) {
    twin.name = absl::StrCat(original, "_frozen_", i);
  }
  names_.insert(twin.name);
  PF_ASSIGN_OR_RETURN(twin.definition, Define(twin.name, *body, *function));
  twin.body = std::move(body);
  twins_.push_back(std::move(twin));
  return twins_.back().name;
}

absl::Status FunctionTwins::Store(Graph* graph) const {
  if (twins_.empty()) return absl::OkStatus();
  std::string more;
  for (const Twin& twin : twins_) AppendBytesField(fields::kFunction, twin.definition, &more);
  // Parsing concatenated messages merges their repeated fields.
  std::string whole(graph->library());
  AppendBytesField(fields::kLibrary, more, &whole);
  graph->set_library(whole);
  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(*graph));
  for (const Twin& twin : twins_) PF_RETURN_IF_ERROR(library.SetBody(twin.name, *twin.body));
  library.Store(graph);
  return absl::OkStatus();
}

}  // namespace permafrost
