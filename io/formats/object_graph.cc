// Implements reading of the tensor in which a checkpoint describes its objects (a serialised TrackableObjectGraph).
#include "io/formats/object_graph.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/base/wire.h"

namespace permafrost {
namespace {

constexpr absl::string_view kObjectGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";
constexpr absl::string_view kVariableValue = "VARIABLE_VALUE";

// Field numbers of TensorFlow's trackable_object_graph.proto.
enum ObjectGraphField : uint32_t { kNodes = 1 };
enum ObjectField : uint32_t { kAttributes = 2 };
enum SerializedTensorField : uint32_t { kName = 1, kFullName = 2, kCheckpointKey = 3 };

}  // namespace

absl::StatusOr<absl::flat_hash_map<std::string, std::string>> KeysByFullName(const VariableSource& source) {
  absl::flat_hash_map<std::string, std::string> keys;
  const auto variables = source.variables();
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [](const VariableInfo& info) { return info.name == kObjectGraphKey; });
  if (found == variables.end() || found->dtype != DType::kString) return keys;
  PF_ASSIGN_OR_RETURN(const Tensor tensor, source.Read(kObjectGraphKey));
  if (tensor.strings().size() != 1) return keys;
  const absl::Status status = ForEachField(tensor.strings()[0], [&](const WireField& object) {
    if (!IsMessage(object, kNodes)) return absl::OkStatus();
    return ForEachField(object.bytes, [&](const WireField& attribute) -> absl::Status {
      if (!IsMessage(attribute, kAttributes)) return absl::OkStatus();
      absl::string_view name, full_name, key;
      PF_RETURN_IF_ERROR(ForEachField(attribute.bytes, [&](const WireField& field) {
        if (IsMessage(field, kName)) name = field.bytes;
        if (IsMessage(field, kFullName)) full_name = field.bytes;
        if (IsMessage(field, kCheckpointKey)) key = field.bytes;
        return absl::OkStatus();
      }));
      if (name != kVariableValue || full_name.empty()) return absl::OkStatus();
      const auto [entry, is_new] = keys.try_emplace(std::string(full_name), std::string(key));
      if (!is_new && entry->second != key) entry->second.clear();  // The name is ambiguous.
      return absl::OkStatus();
    });
  });
  PF_RETURN_IF_ERROR(Annotate(status, "object graph of the checkpoint"));
  absl::erase_if(keys, [](const auto& entry) { return entry.second.empty(); });
  return keys;
}

}  // namespace permafrost
