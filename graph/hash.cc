// The structural hash of a graph.
#include "graph/hash.h"

#include "absl/hash/hash.h"

namespace permafrost {
namespace {

constexpr size_t kHashedByContent = 256;
constexpr size_t kSamples = 16;
constexpr size_t kSampleSize = 16;

struct Content {
  absl::string_view bytes;
  template <typename H>
  friend H AbslHashValue(H h, const Content& content) {
    if (content.bytes.size() <= kHashedByContent) return H::combine(std::move(h), content.bytes);
    // A sample of the content too: the allocator may hand out the address of a buffer that the same edit freed.
    const absl::string_view bytes = content.bytes;
    for (size_t i = 0; i < kSamples; ++i) {
      h = H::combine(std::move(h), bytes.substr((bytes.size() - kSampleSize) / (kSamples - 1) * i, kSampleSize));
    }
    return H::combine(std::move(h), static_cast<const void*>(bytes.data()), bytes.size());
  }
};

struct Value {
  const AttrValue& value;
  template <typename H>
  friend H AbslHashValue(H h, const Value& v) {
    const Tensor* tensor = v.value.held_tensor();
    if (tensor == nullptr) return H::combine(std::move(h), Content{v.value.encoded()});
    h = H::combine(std::move(h), static_cast<int32_t>(tensor->dtype()), tensor->shape().dims());
    if (tensor->dtype() == DType::kString) return H::combine(std::move(h), tensor->strings());
    return H::combine(std::move(h), Content{tensor->bytes()});
  }
};

struct Structure {
  const Graph& graph;
  template <typename H>
  friend H AbslHashValue(H h, const Structure& structure) {
    const Graph& graph = structure.graph;
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      h = H::combine(std::move(h), node->name(), node->op(), node->device(), node->extra_fields(), node->num_inputs());
      for (int i = 0; i < node->num_inputs(); ++i) {
        h = H::combine(std::move(h), node->input(i).node->id(), node->input(i).port, node->input_spells_zero(i));
      }
      for (const Attr& attr : node->attrs()) h = H::combine(std::move(h), attr.key, Value{attr.value});
    }
    return H::combine(std::move(h), graph.library(), graph.versions(), graph.extra_fields());
  }
};

}  // namespace

uint64_t StructuralHash(const Graph& graph) { return absl::HashOf(Structure{graph}); }

}  // namespace permafrost
