// Conversion between floats and storages of any type.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STORAGE_VALUES_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STORAGE_VALUES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "runtime_check/delegates/onednn/piece.h"

namespace permafrost {
namespace onednn {

// Convert `count` elements from or to a storage. `offset` is in elements. The buffers must not overlap.
void LoadFloats(StorageType type, const char* storage, int64_t offset, int64_t count, float* to);
void StoreFloats(StorageType type, const float* from, int64_t count, char* storage, int64_t offset);

// Returns "float", "bfloat16", "u8" or "s8".
absl::string_view NameOf(Element element);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STORAGE_VALUES_H_
