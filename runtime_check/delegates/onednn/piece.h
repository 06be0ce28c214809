// A piece: what runs as one inside a partition, one primitive or one pass over memory.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PIECE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PIECE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/shape.h"

namespace permafrost {
namespace onednn {

// Where tensors lie during a run. Constants that pieces read are not here: pieces keep their own copies.
struct RunContext {
  char* const* tensors;  // By number of the partition's tensor; those that share memory have the same pointer.
  char* scratch;         // As much as the greediest piece asks for.
  int num_threads;
  bool has_non_finite;  // Some input holds NaN or an infinity.

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
  // "conv1: convolution + relu (brgconv:avx512_core)".
  virtual std::string Describe() const = 0;

  // Numbers of tensors: what is read (no constants) and written.
  std::vector<int> reads, writes;
  // writes[0] may take over the memory of these, if nobody reads them later: each element is read before it is written.
  std::vector<int> in_place;
  int64_t products = 0;  // Of a convolution or matrix product: how many it adds up.
  std::string name;      // Of the node, or the last of those that were fused.
};

// How a storage holds numbers. Those of eight bits stand for `scale` times themselves.
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

// Of each storage; those beyond the end hold floats.
struct StorageTypes {
  std::vector<StorageType> types;

  StorageType Of(int storage) const {
    return static_cast<size_t>(storage) < types.size() ? types[static_cast<size_t>(storage)] : StorageType();
  }
};

// A shape as rows of channels, the last dimension. One row of one for a scalar.
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
