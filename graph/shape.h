// The shape of a tensor, in which dimensions, or the rank itself, may be unknown.
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

// A value type. Default construction gives a scalar.
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
  // REQUIRES for all below: has_rank().
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  void set_dim(int i, int64_t value) { dims_[i] = value; }
  void AddDim(int64_t value) { dims_.push_back(value); }
  absl::Span<const int64_t> dims() const { return dims_; }

  // True when the rank and every dimension are known.
  bool IsFullyKnown() const;

  // Product of the dimensions, 1 for a scalar. REQUIRES: IsFullyKnown(). InvalidArgument when it exceeds int64.
  absl::StatusOr<int64_t> CheckedNumElements() const;
  // The same where the shape has been checked before (that of a Tensor, say).
  int64_t num_elements() const;

  // True when some fully known shape fits both.
  bool IsCompatibleWith(const Shape& other) const;

  // "[1,224,224,3]", "[?,3]", "[]" for a scalar, "<unknown>" for an unknown rank.
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.known_rank_ == b.known_rank_ && a.dims_ == b.dims_;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  bool known_rank_ = true;
  absl::InlinedVector<int64_t, 4> dims_;
};

// Reads "1,224,224,3"; blanks round a number are fine, -1 and ? are unknown dimensions, "[]" is a scalar and "unknown"
// or "<unknown>" an unknown rank; outer brackets are optional. InvalidArgument names the offending piece.
absl::StatusOr<Shape> ParseShape(absl::string_view text);

// The shape that fits both. InvalidArgument when none does.
absl::StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b);

// Numpy's broadcasting, where an unknown dimension against 1 or unknown stays unknown. InvalidArgument when it fails.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_SHAPE_H_
