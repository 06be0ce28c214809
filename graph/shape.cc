// Implements shape arithmetic: element counts, merging, broadcasting and the text form.
#include "graph/shape.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"

namespace permafrost {

bool Shape::IsFullyKnown() const {
  return known_rank_ && std::all_of(dims_.begin(), dims_.end(), [](int64_t dim) { return dim >= 0; });
}

absl::StatusOr<int64_t> Shape::CheckedNumElements() const {
  // A zero dimension makes the product zero, but as in TensorFlow no partial product of the other dimensions may
  // overflow.
  int64_t count = 1;
  for (const int64_t dim : dims_) {
    if (__builtin_mul_overflow(count, dim, &count)) {
      return absl::InvalidArgumentError(absl::StrCat("shape ", ToString(), " has more than 2^63 - 1 elements"));
    }
  }
  return count;
}

int64_t Shape::num_elements() const {
  int64_t count = 1;
  for (const int64_t dim : dims_) count *= dim;
  return count;
}

bool Shape::IsCompatibleWith(const Shape& other) const { return MergeShapes(*this, other).ok(); }

std::string Shape::ToString() const {
  if (!known_rank_) return "<unknown>";
  return absl::StrCat("[",
                      absl::StrJoin(dims_, ",",
                                    [](std::string* out, int64_t dim) {
                                      dim < 0 ? absl::StrAppend(out, "?") : absl::StrAppend(out, dim);
                                    }),
                      "]");
}

absl::StatusOr<Shape> ParseShape(absl::string_view text) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  if (rest == "unknown" || rest == "<unknown>") return Shape::UnknownRank();
  if (absl::ConsumePrefix(&rest, "[")) {
    if (!absl::ConsumeSuffix(&rest, "]")) {
      return absl::InvalidArgumentError(absl::StrCat("shape '", text, "' opens a bracket and does not close it"));
    }
    if (absl::StripAsciiWhitespace(rest).empty()) return Shape();
  }
  if (rest.empty()) {
    return absl::InvalidArgumentError("the specified shape is empty; write [] for a scalar");
  }
  Shape shape;
  for (absl::string_view piece : absl::StrSplit(rest, ',')) {
    piece = absl::StripAsciiWhitespace(piece);
    int64_t dim = kUnknownDim;
    if (piece != "?" && (!absl::SimpleAtoi(piece, &dim) || dim < kUnknownDim)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape '", text, "': found '", piece, "', expected a dimension (0 or more, or -1 or ?)"));
    }
    shape.AddDim(dim);
  }
  return shape;
}

absl::StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b) {
  if (!a.has_rank()) return b;
  if (!b.has_rank()) return a;
  const auto mismatch = [&] {
    return absl::InvalidArgumentError(absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(), " do not agree"));
  };
  if (a.rank() != b.rank()) return mismatch();
  Shape merged = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) < 0) {
      merged.set_dim(i, b.dim(i));
    } else if (b.dim(i) >= 0 && a.dim(i) != b.dim(i)) {
      return mismatch();
    }
  }
  return merged;
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape::UnknownRank();
  const int rank = std::max(a.rank(), b.rank());
  absl::InlinedVector<int64_t, 4> dims(rank);
  for (int i = 0; i < rank; ++i) {
    const int in_a = i - (rank - a.rank()), in_b = i - (rank - b.rank());
    const int64_t x = in_a < 0 ? 1 : a.dim(in_a), y = in_b < 0 ? 1 : b.dim(in_b);
    if (x == y || y == 1) {
      dims[i] = x;
    } else if (x == 1) {
      dims[i] = y;
    } else if (x < 0 || y < 0) {
      dims[i] = std::max(x, y);  // The known dimension, which is not 1, is the only possible result.
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(), " cannot be broadcast to one"));
    }
  }
  return Shape(absl::MakeSpan(dims));
}

}  // namespace permafrost
