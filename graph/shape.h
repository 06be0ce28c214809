// Tensor shapes, in which single dimensions or the rank may be unknown.
#ifndef PERMAFROST_GRAPH_SHAPE_H_
#define PERMAFROST_GRAPH_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost {

inline constexpr int64_t kUnknownDim = -1;

// A value type. The default is the shape of a scalar.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(absl::Span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {}

  static Shape UnknownRank() {
    Shape shape;
    shape.known_rank_ = false;
    return shape;
  }

  bool has_rank() const { return known_rank_; }
  // REQUIRES for all methods below: has_rank().
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  void set_dim(int i, int64_t value) { dims_[i] = value; }
  void AddDim(int64_t value) { dims_.push_back(value); }
  absl::Span<const int64_t> dims() const { return dims_; }

  // True when the rank and every dimension are known.
  bool IsFullyKnown() const;

  // Returns the product of the dimensions, 1 for a scalar. Returns InvalidArgument if it exceeds int64. REQUIRES:
  // IsFullyKnown().
  absl::StatusOr<int64_t> CheckedNumElements() const;
  // Same, for a shape that has been checked before, such as that of a Tensor.
  int64_t num_elements() const;

  // True if a fully known shape exists that matches both.
  bool IsCompatibleWith(const Shape& other) const;

  // Returns "[1,224,224,3]", "[?,3]", "[]" for a scalar, "<unknown>" for an unknown rank.
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.known_rank_ == b.known_rank_ && a.dims_ == b.dims_;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  bool known_rank_ = true;
  absl::InlinedVector<int64_t, 4> dims_;
};

// Parses "1,224,224,3". Spaces around numbers are ignored; -1 and ? denote unknown dimensions, "[]" a scalar, "unknown"
// and "<unknown>" an unknown rank. Outer brackets are optional. Returns InvalidArgument with the part that is
// malformed.
absl::StatusOr<Shape> ParseShape(absl::string_view text);

// Returns the most general shape that matches both. Returns InvalidArgument if there is none.
absl::StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b);

// Returns the shape of a NumPy broadcast. An unknown dimension combined with 1 or unknown stays unknown. Returns
// InvalidArgument if the shapes cannot be broadcast.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_SHAPE_H_
