// Reads it as JSON.
#include "tests/model_spec.h"

#include <utility>

#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/formats/json_value.h"

namespace permafrost {

absl::StatusOr<ModelSpec> ReadModelSpec(const std::string& folder) {
  PF_ASSIGN_OR_RETURN(const std::string text, RealFileSystem().ReadFile(folder + "/spec.json"));
  PF_ASSIGN_OR_RETURN(const JsonValue json, ParseJson(text));
  ModelSpec spec;
  PF_ASSIGN_OR_RETURN(spec.outputs, TextsMember(json, "outputs"));
  const JsonValue* const inputs = json.Find("inputs");
  if (inputs == nullptr || inputs->kind != JsonValue::Kind::kArray) {
    return absl::InvalidArgumentError("spec.json: expected an array 'inputs'");
  }
  for (const JsonValue& input : inputs->items) {
    PF_ASSIGN_OR_RETURN(std::string name, TextMember(input, "name"));
    spec.inputs.push_back(std::move(name));
  }
  return spec;
}

}  // namespace permafrost
