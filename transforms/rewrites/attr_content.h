// Compares and hashes attribute values by content, independent of their encoding, to detect equal nodes.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_ATTR_CONTENT_H_
#define PERMAFROST_TRANSFORMS_REWRITES_ATTR_CONTENT_H_

#include <cstdint>

#include "graph/attr.h"

namespace permafrost {

// Returns true if two values have the same content. The content of a tensor is its type, shape and bytes, so that a
// repeated value equals the same elements written out (but NaN equals only the same NaN, and 0 differs from -0). The
// content of any other value is its wire form. That holds as well for a tensor that cannot be decoded, or whose
// elements would take far more memory than its wire form.
bool SameContent(const AttrValue& a, const AttrValue& b);

// Selects how much of a large tensor is hashed: a few samples, or all of it. Equal contents have equal hashes. Hashes
// differ between processes.
enum class ContentHashing { kSampled, kWhole };
uint64_t ContentHash(const AttrValue& value, ContentHashing hashing);

// Returns true if the sampled and the whole hash differ.
bool IsLargeTensor(const AttrValue& value);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_ATTR_CONTENT_H_
