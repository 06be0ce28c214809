// Converts storages to and from floats, with one loop per type.
#include "runtime_check/delegates/onednn/storage_values.h"

#include <cstring>

#include "runtime_check/delegates/onednn/loops.h"

namespace permafrost {
namespace onednn {

void LoadFloats(StorageType type, const char* storage, int64_t offset, int64_t count, float* to) {
  const char* from = storage + offset * type.bytes();
  switch (type.element) {
    case Element::kFloat:
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
      return;
    case Element::kBf16:
      return FromBf16(count, reinterpret_cast<const uint16_t*>(from), to);
    case Element::kU8:
      return FromU8(count, type.scale, reinterpret_cast<const uint8_t*>(from), to);
    case Element::kS8:
      return FromS8(count, type.scale, reinterpret_cast<const int8_t*>(from), to);
  }
}

void StoreFloats(StorageType type, const float* from, int64_t count, char* storage, int64_t offset) {
  char* to = storage + offset * type.bytes();
  switch (type.element) {
    case Element::kFloat:
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
      return;
    case Element::kBf16:
      return ToBf16(count, from, reinterpret_cast<uint16_t*>(to));
    case Element::kU8:
      return ToU8(count, type.scale, from, reinterpret_cast<uint8_t*>(to));
    case Element::kS8:
      return ToS8(count, type.scale, from, reinterpret_cast<int8_t*>(to));
  }
}

absl::string_view NameOf(Element element) {
  static constexpr absl::string_view kNames[] = {"float", "bfloat16", "u8", "s8"};
  return kNames[static_cast<int>(element)];
}

}  // namespace onednn
}  // namespace permafrost
