// What an attribute value means, whatever way it is written: for telling equal nodes.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_ATTR_CONTENT_H_
#define PERMAFROST_TRANSFORMS_REWRITES_ATTR_CONTENT_H_

#include <cstdint>

#include "graph/attr.h"

namespace permafrost {

// A tensor's content is its type, shape and bytes, so that a repeated value equals the same elements written out (but
// NaN equals only the same NaN, and 0 differs from -0). Any other value's content is its wire form, and so is that of a
// tensor that cannot be decoded or whose elements would take far more memory than its wire form.
bool SameContent(const AttrValue& a, const AttrValue& b);

// Equal contents have equal hashes. A sampled hash looks at a few places of a large tensor; a whole one at all of it.
// Differs between processes.
enum class ContentHashing { kSampled, kWhole };
uint64_t ContentHash(const AttrValue& value, ContentHashing hashing);

// Whether a sampled and a whole hash differ.
bool IsLargeTensor(const AttrValue& value);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_ATTR_CONTENT_H_
