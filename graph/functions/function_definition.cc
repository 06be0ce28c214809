// Encodes the signature of a new function.
#include "graph/functions/function_definition.h"

#include "absl/strings/str_cat.h"
#include "graph/base/wire.h"
#include "graph/functions/function.h"

namespace permafrost {
namespace {

// Field numbers of io/formats/proto/graphdef.proto.
constexpr uint32_t kFunction = 1;                                                  // FunctionDefLibrary
constexpr uint32_t kSignature = 1, kRet = 4, kControlRet = 6;                      // FunctionDef
constexpr uint32_t kName = 1, kInputArg = 2, kOutputArg = 3, kControlOutput = 20;  // OpDef
constexpr uint32_t kArgName = 1, kArgType = 3;                                     // OpDef.ArgDef
constexpr uint32_t kKey = 1, kValue = 2;                                           // Entries of maps

void AppendArg(uint32_t field, absl::string_view name, const Node& node, std::string* signature) {
  std::string arg;
  AppendBytesField(kArgName, name, &arg);
  AppendVarintField(kArgType, static_cast<uint64_t>(TypeAttr(node, "T").value_or(DType::kInvalid)), &arg);
  AppendBytesField(field, arg, signature);
}

// Entries of results are filled in with the body; until then each needs a placeholder.
void AppendPlaceholder(uint32_t field, absl::string_view name, std::string* function) {
  std::string entry;
  AppendBytesField(kKey, name, &entry);
  AppendBytesField(kValue, name, &entry);
  AppendBytesField(field, entry, function);
}

}  // namespace

std::string EmptyFunction(absl::string_view name, const Graph& body) {
  std::string signature, function, result;
  AppendBytesField(kName, name, &signature);
  const std::vector<Node*> args = ArgsOf(body), results = RetvalsOf(body);
  const size_t num_controls = ControlOutputsOf(body).size();
  for (size_t i = 0; i < args.size(); ++i) AppendArg(kInputArg, absl::StrCat("arg", i), *args[i], &signature);
  for (size_t i = 0; i < results.size(); ++i) AppendArg(kOutputArg, absl::StrCat("result", i), *results[i], &signature);
  for (size_t i = 0; i < num_controls; ++i) AppendBytesField(kControlOutput, absl::StrCat("control", i), &signature);
  AppendBytesField(kSignature, signature, &function);
  for (size_t i = 0; i < results.size(); ++i) AppendPlaceholder(kRet, absl::StrCat("result", i), &function);
  for (size_t i = 0; i < num_controls; ++i) AppendPlaceholder(kControlRet, absl::StrCat("control", i), &function);
  AppendBytesField(kFunction, function, &result);
  return result;
}

}  // namespace permafrost
