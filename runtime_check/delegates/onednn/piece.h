// Piece: the unit of execution inside a partition. A piece is one primitive or one pass over memory.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PIECE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PIECE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/shape.h"

namespace permafrost {
namespace onednn {

// Addresses of the tensors during a run. Constants are not included: pieces keep their own copies.
struct RunContext {
  char* const* tensors;  // Indexed by tensor of the partition; tensors that share memory have the same pointer.
  char* scratch;         // Scratch memory: the maximum that any piece requests.
  int num_threads;
  // True if an input holds NaN or infinity, or an earlier piece has computed NaN and noted it.
  std::atomic<bool>* has_non_finite;

  bool HasNonFinite() const { return has_non_finite->load(std::memory_order_relaxed); }
  void NoteNonFinite() const { has_non_finite->store(true, std::memory_order_relaxed); }
  template <typename T>
  T* at(int tensor) const {
    return reinterpret_cast<T*>(tensors[tensor]);
  }
};

class Piece {
 public:
  virtual ~Piece() = default;
  virtual absl::Status Run(const RunContext& context) = 0;
  virtual int64_t scratch_bytes() const { return 0; }
  virtual int64_t constant_bytes() const { return 0; }
  // Returns a description, such as "conv1: convolution + relu (brgconv:avx512_core)".
  virtual std::string Describe() const = 0;

  // Tensors that are read (without constants) and written.
  std::vector<int> reads, writes;
  // writes[0] may reuse the memory of these tensors if they have no later readers: each element is read before it is
  // written.
  std::vector<int> in_place;
  int64_t products = 0;  // Number of multiplications of a convolution or matrix product.
  std::string name;      // Name of the node, or of the last fused node.
  std::string note;      // A pattern that the piece almost is part of, with the difference; may be empty.
};

// The element type of a storage. An 8-bit element represents `scale` times its value.
enum class Element : uint8_t { kFloat, kBf16, kU8, kS8 };

struct StorageType {
  Element element = Element::kFloat;
  float scale = 1;

  int64_t bytes() const { return element == Element::kFloat ? 4 : element == Element::kBf16 ? 2 : 1; }
  bool IsFloat() const { return element == Element::kFloat; }
  bool IsBf16() const { return element == Element::kBf16; }
  bool IsInt8() const { return element == Element::kU8 || element == Element::kS8; }
  friend bool operator==(const StorageType& a, const StorageType& b) {
    return a.element == b.element && a.scale == b.scale;
  }
  friend bool operator!=(const StorageType& a, const StorageType& b) { return !(a == b); }
};

// The type of each storage; storages past the end hold floats.
struct StorageTypes {
  std::vector<StorageType> types;

  StorageType Of(int storage) const {
    return static_cast<size_t>(storage) < types.size() ? types[static_cast<size_t>(storage)] : StorageType();
  }
};

// A shape as rows of channels; the channels are the last dimension. A scalar is one row of one channel.
struct Rows {
  int64_t rows = 1, channels = 1;

  explicit Rows(const Shape& shape) {
    for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape.dim(i);
    if (shape.rank() > 0) channels = shape.dim(shape.rank() - 1);
  }
  int64_t elements() const { return rows * channels; }
};

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PIECE_H_
