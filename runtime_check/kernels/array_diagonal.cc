// MatrixDiag, MatrixSetDiag and ReverseSequence: main diagonals of matrices, and sequences of several lengths reversed.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

// --- MatrixDiag ------------------------------------------------------------------------------------------------------

absl::Status PrepareDiag(PrepareContext* context) {
  Shape output = context->input_shape(0);
  if (output.rank() < 1) return absl::InvalidArgumentError("the diagonal is a scalar, expected a rank of at least 1");
  output.AddDim(output.dim(output.rank() - 1));
  return SetCheckedShape(context, 0, output);
}

absl::Status ComputeDiag(ComputeContext* context) {
  const Shape& shape = context->input_shape(0);
  if (shape.num_elements() == 0) return absl::OkStatus();
  const auto bytes = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const int64_t size = shape.dim(shape.rank() - 1);
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  std::memset(output, 0, static_cast<size_t>(shape.num_elements() * size * bytes));
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    std::memcpy(output + (i * size + i % size) * bytes, input + i * bytes, static_cast<size_t>(bytes));
  }
  return absl::OkStatus();
}

// --- MatrixSetDiag ---------------------------------------------------------------------------------------------------

absl::Status PrepareSetDiag(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  const int rank = input.rank();
  if (rank < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has the shape ", input.ToString(), ", expected a rank of at least 2"));
  }
  Shape expected;
  for (int d = 0; d < rank - 2; ++d) expected.AddDim(input.dim(d));
  expected.AddDim(std::min(input.dim(rank - 2), input.dim(rank - 1)));
  if (context->input_shape(1) != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the diagonal has the shape ", context->input_shape(1).ToString(),
                                                   ", expected ", expected.ToString(), " for matrices of shape ",
                                                   input.ToString()));
  }
  return SameShape(context);
}

absl::Status ComputeSetDiag(ComputeContext* context) {
  const Shape& shape = context->output_shape(0);
  if (shape.num_elements() == 0) return absl::OkStatus();
  const auto bytes = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  const int64_t size = std::min(rows, columns);
  const char* diagonal = context->input_bytes(1);
  char* output = context->output_bytes(0);
  // The output may be the input.
  std::memmove(output, context->input_bytes(0), static_cast<size_t>(shape.num_elements() * bytes));
  for (int64_t matrix = 0; matrix < shape.num_elements() / (rows * columns); ++matrix) {
    for (int64_t i = 0; i < size; ++i) {
      std::memcpy(output + (matrix * rows * columns + i * columns + i) * bytes, diagonal + (matrix * size + i) * bytes,
                  static_cast<size_t>(bytes));
    }
  }
  return absl::OkStatus();
}

// --- ReverseSequence -------------------------------------------------------------------------------------------------

struct SequenceDims {
  int64_t sequence = 0, batch = 0;
};

absl::StatusOr<SequenceDims> ReadSequenceDims(const Node& node, const Shape& input) {
  SequenceDims dims;
  PF_ASSIGN_OR_RETURN(dims.sequence, IntAttr(node, "seq_dim"));
  PF_ASSIGN_OR_RETURN(dims.batch, IntAttr(node, "batch_dim"));
  for (const int64_t dim : {dims.sequence, dims.batch}) {
    if (dim < 0 || dim >= input.rank() || dims.sequence == dims.batch) {
      return absl::InvalidArgumentError(absl::StrCat("seq_dim is ", dims.sequence, " and batch_dim ", dims.batch,
                                                     ", expected different dimensions of ", input.ToString()));
    }
  }
  return dims;
}

absl::Status PrepareReverseSequence(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const SequenceDims dims, ReadSequenceDims(context->node(), input));
  if (context->input_shape(1).dim(0) != input.dim(static_cast<int>(dims.batch))) {
    return absl::InvalidArgumentError(absl::StrCat("found ", context->input_shape(1).dim(0), " lengths, expected ",
                                                   input.dim(static_cast<int>(dims.batch))));
  }
  context->SetOutputShape(0, input);
  return absl::OkStatus();
}

absl::Status ComputeReverseSequence(ComputeContext* context) {
  const Shape& shape = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const SequenceDims dims, ReadSequenceDims(context->node(), shape));
  const int64_t steps = shape.dim(static_cast<int>(dims.sequence));
  const int64_t batch = shape.dim(static_cast<int>(dims.batch));
  const auto length_of = [&](int64_t i) {
    return context->input_type(1) == DType::kInt32 ? int64_t{context->input<int32_t>(1)[i]}
                                                   : context->input<int64_t>(1)[i];
  };
  for (int64_t i = 0; i < batch; ++i) {
    if (length_of(i) < 0 || length_of(i) > steps) {
      return absl::InvalidArgumentError(
          absl::StrCat("found the length ", length_of(i), ", expected a value in [0, ", steps, "]"));
    }
  }
  if (shape.num_elements() == 0) return absl::OkStatus();
  const bool batch_first = dims.batch < dims.sequence;
  const int first = static_cast<int>(std::min(dims.batch, dims.sequence));
  const int second = static_cast<int>(std::max(dims.batch, dims.sequence));
  const int64_t outer = ProductOfDims(shape, 0, first), middle = ProductOfDims(shape, first + 1, second);
  const int64_t bytes =
      ProductOfDims(shape, second + 1, shape.rank()) * static_cast<int64_t>(SizeOf(context->input_type(0)));
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t a = 0; a < shape.dim(first); ++a) {
      for (int64_t m = 0; m < middle; ++m) {
        for (int64_t b = 0; b < shape.dim(second); ++b) {
          const int64_t length = length_of(batch_first ? a : b), step = batch_first ? b : a;
          const int64_t from = step < length ? length - 1 - step : step;
          const auto offset = [&](int64_t i, int64_t j) {
            return ((o * shape.dim(first) + i) * middle + m) * shape.dim(second) + j;
          };
          std::memcpy(output + offset(a, b) * bytes, input + (batch_first ? offset(a, from) : offset(from, b)) * bytes,
                      static_cast<size_t>(bytes));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(MatrixDiag) {
  return Kernel("matrices that are zero beside the given main diagonals")
      .TypeNumbers("T", MovableTypes())
      .Prepare(PrepareDiag)
      .Compute(ComputeDiag);
}

DEFINE_KERNEL(MatrixSetDiag) {
  return Kernel("the matrices with the given main diagonals")
      .TypeNumbers("T", MovableTypes())
      .InPlace(0)
      .Prepare(PrepareSetDiag)
      .Compute(ComputeSetDiag);
}

DEFINE_KERNEL(ReverseSequence) {
  return Kernel("the first elements of each sequence, as many as its length, in reverse order; the rest unchanged")
      .TypeNumbers("T", MovableTypes())
      .TypeNumbers("Tlen", IndexTypes())
      .Prepare(PrepareReverseSequence)
      .Compute(ComputeReverseSequence);
}

}  // namespace permafrost
