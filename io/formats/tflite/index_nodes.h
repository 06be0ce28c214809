// Nodes that compute positions in tensors: linear indices, gathering and scattering by them, padding between elements.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_INDEX_NODES_H_
#define PERMAFROST_IO_FORMATS_TFLITE_INDEX_NODES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {

// Returns the shape of an operand, which must be fully known: Unimplemented otherwise.
absl::StatusOr<Shape> KnownInputShape(const OperatorImport& op, int i);

// Returns the elements of the constant operand i, an integer vector. Unimplemented if it is computed.
absl::StatusOr<std::vector<int64_t>> ConstantIntegers(OperatorImport* op, int i);

absl::StatusOr<TensorRef> Longs(OperatorImport* op, const Shape& shape, std::vector<int64_t> values);
// Adds a cast, unless `x` has the type already.
absl::StatusOr<TensorRef> CastTo(OperatorImport* op, TensorRef x, DType dtype);
// Adds a transposition, unless `perm` is the identity.
absl::StatusOr<TensorRef> Transposed(OperatorImport* op, TensorRef x, const std::vector<int32_t>& perm);
// Adds `count` dimensions of size 1 at the end.
absl::StatusOr<TensorRef> ExtendRank(OperatorImport* op, TensorRef x, int rank, int count);

// Returns the distance of neighbours in each dimension, in elements.
std::vector<int64_t> StridesOf(const Shape& shape);

// Places `interior[d]` values `value` between neighbours in dimension d. An unknown dimension of `shape`, that of x,
// must have none. Unimplemented if there are two.
absl::StatusOr<TensorRef> SpreadElements(OperatorImport* op, TensorRef x, const Shape& shape,
                                         absl::Span<const int64_t> interior, TensorRef value);

// Adds `low[d]` and `high[d]` elements `value` at the ends of dimension d; negative numbers remove elements.
absl::StatusOr<TensorRef> PadEnds(OperatorImport* op, TensorRef x, absl::Span<const int64_t> low,
                                  absl::Span<const int64_t> high, TensorRef value);

// How updates are combined with the elements they meet.
enum class ScatterKind : uint8_t { kReplace, kAdd, kMin, kMax };

// Returns `x`, of shape `shape`, with `updates` at the positions `indices`, which are linear, of type int64 and of the
// shape of `updates`. Positions where `is_valid` is false are skipped. Later updates follow earlier ones.
absl::StatusOr<TensorRef> ScatterLinear(OperatorImport* op, TensorRef x, const Shape& shape, TensorRef indices,
                                        TensorRef is_valid, TensorRef updates, ScatterKind kind);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_INDEX_NODES_H_
