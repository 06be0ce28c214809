// Implements the structural hash of a graph.
#include "graph/validation/hash.h"

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
    // Hashes a sample of the content too, because the allocator may reuse the address of a buffer that the same edit
    // freed.
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

// The part of a node that determines its results.
struct Meaning {
  const Node& node;
  template <typename H>
  friend H AbslHashValue(H h, const Meaning& meaning) {
    const Node& node = meaning.node;
    h = H::combine(std::move(h), node.id(), node.op(), node.num_inputs());
    for (int i = 0; i < node.num_inputs(); ++i) {
      h = H::combine(std::move(h), node.input(i).node->id(), node.input(i).port);
    }
    for (const Attr& attr : node.attrs()) h = H::combine(std::move(h), attr.key, Value{attr.value});
    return h;
  }
};

// The remaining parts of a node.
struct Spelling {
  const Node& node;
  template <typename H>
  friend H AbslHashValue(H h, const Spelling& spelling) {
    const Node& node = spelling.node;
    h = H::combine(std::move(h), node.name(), node.device(), node.extra_fields());
    for (int i = 0; i < node.num_inputs(); ++i) h = H::combine(std::move(h), node.input_spells_zero(i));
    return h;
  }
};

}  // namespace

uint64_t StructuralHash(const Graph& graph) { return HashGraph(graph).structural; }

GraphHashes HashGraph(const Graph& graph) {
  GraphHashes hashes;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const uint64_t meaning = absl::HashOf(Meaning{*node});
    hashes.meaning += meaning;  // A sum, so that the order of nodes does not matter.
    hashes.structural = absl::HashOf(hashes.structural, meaning, Spelling{*node});
  }
  hashes.structural = absl::HashOf(hashes.structural, graph.library(), graph.versions(), graph.extra_fields());
  hashes.meaning = absl::HashOf(hashes.meaning, graph.library(), graph.versions(), graph.inputs().size());
  for (const auto* endpoints : {&graph.inputs(), &graph.outputs()}) {
    for (const Endpoint& endpoint : *endpoints) {
      const uint32_t id = endpoint.node == nullptr ? UINT32_MAX : endpoint.node->id();
      hashes.meaning = absl::HashOf(hashes.meaning, id, endpoint.port);
    }
  }
  return hashes;
}

}  // namespace permafrost
