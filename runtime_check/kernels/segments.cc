// SegmentSum and UnsortedSegmentSum, DynamicPartition, DynamicStitch and ParallelDynamicStitch: rows grouped by number.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/segment_rows.h"
#include "runtime_check/kernels/stand_in.h"

namespace permafrost {
namespace {

// --- Sums of segments ------------------------------------------------------------------------------------------------

// Adds row i to the row with number numbers[i]. Rows with negative numbers are ignored. Integers wrap around.
template <typename T, typename Index>
absl::Status AddRows(ComputeContext* context) {
  const T* data = context->input<T>(0);
  const Index* numbers = context->input<Index>(1);
  T* output = context->output<T>(0);
  const Shape& shape = context->output_shape(0);
  const int64_t rows = context->input_shape(1).num_elements(), count = shape.dim(0);
  std::fill_n(output, shape.num_elements(), T());
  const int64_t row_elements = ProductOfDims(shape, 1, shape.rank());
  for (int64_t i = 0; i < rows; ++i) {
    if (numbers[i] < 0) continue;
    if (numbers[i] >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("'segment_ids' has ", numbers[i], " at element ", i, ", expected less than ", count));
    }
    if (shape.num_elements() == 0) continue;
    const T* from = data + i * row_elements;
    T* to = output + static_cast<int64_t>(numbers[i]) * row_elements;
    for (int64_t e = 0; e < row_elements; ++e) {
      if constexpr (std::is_integral_v<T>) {
        to[e] = static_cast<T>(static_cast<uint64_t>(to[e]) + static_cast<uint64_t>(from[e]));
      } else {
        to[e] += from[e];
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ComputeUnsorted(ComputeContext* context) {
  absl::Status status;
  DispatchOn<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
             std::complex<float>, std::complex<double>>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    DispatchOn<int16_t, int32_t, int64_t>(
        context->input_at(1).dtype, [&](auto index) { status = AddRows<T, typename decltype(index)::type>(context); });
  });
  return status;
}

absl::Status ComputeSorted(ComputeContext* context) {
  absl::StatusOr<int64_t> count;
  DispatchOn<int32_t, int64_t>(context->input_at(1).dtype, [&](auto tag) {
    const auto* numbers = context->input<typename decltype(tag)::type>(1);
    count = CountSortedSegments(numbers, context->input_shape(1).num_elements());
  });
  PF_RETURN_IF_ERROR(count.status());
  PF_RETURN_IF_ERROR(AllocateSegments(context, *count));
  return ComputeUnsorted(context);
}

// --- DynamicPartition ------------------------------------------------------------------------------------------------

absl::Status PreparePartition(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequirePrefix(context));
  for (int i = 0; i < context->num_outputs(); ++i) context->OutputShapeDependsOnValues(i);
  return absl::OkStatus();
}

absl::Status ComputePartition(ComputeContext* context) {
  const int32_t* numbers = context->input<int32_t>(1);
  const int64_t rows = context->input_shape(1).num_elements();
  const Shape shape = context->input_shape(0);
  const int prefix = context->input_shape(1).rank();
  std::vector<int64_t> counts(context->num_outputs());
  for (int64_t i = 0; i < rows; ++i) {
    if (numbers[i] < 0 || numbers[i] >= context->num_outputs()) {
      return absl::InvalidArgumentError(absl::StrCat("'partitions' has ", numbers[i], " at element ", i,
                                                     ", expected a value in [0, ", context->num_outputs(), ")"));
    }
    ++counts[numbers[i]];
  }
  std::vector<char*> targets;
  for (int i = 0; i < context->num_outputs(); ++i) {
    PF_RETURN_IF_ERROR(context->AllocateOutput(i, WithFirst(counts[i], shape, prefix)));
    targets.push_back(context->output_bytes(i));
  }
  if (shape.num_elements() == 0) return absl::OkStatus();
  const auto bytes =
      ProductOfDims(shape, prefix, shape.rank()) * static_cast<int64_t>(SizeOf(context->input_at(0).dtype));
  const char* data = context->input_bytes(0);
  for (int64_t i = 0; i < rows; ++i) {
    char*& target = targets[numbers[i]];
    std::memcpy(target, data + i * bytes, bytes);
    target += bytes;
  }
  return absl::OkStatus();
}

// --- DynamicStitch ---------------------------------------------------------------------------------------------------

// The inputs are N tensors of indices, then N of data.
absl::Status PrepareStitch(PrepareContext* context) {
  const int count = context->num_inputs() / 2;
  if (count < 1) return absl::InvalidArgumentError("it has no inputs, expected at least 2");
  const Shape rest = WithFirst(0, context->input_shape(count), context->input_shape(0).rank());
  for (int i = 0; i < count; ++i) {
    const Shape& numbers = context->input_shape(i);
    const Shape& data = context->input_shape(count + i);
    bool fits = numbers.rank() <= data.rank() && WithFirst(0, data, numbers.rank()) == rest;
    for (int d = 0; fits && d < numbers.rank(); ++d) fits = numbers.dim(d) == data.dim(d);
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat("'indices' ", i, " has the shape ", numbers.ToString(),
                                                     " and 'data' ", i, " ", data.ToString(),
                                                     ", expected the same, and then what all data end with"));
    }
  }
  context->OutputShapeDependsOnValues(0);
  return absl::OkStatus();
}

absl::Status ComputeStitch(ComputeContext* context) {
  const int count = context->num_inputs() / 2;
  int64_t rows = 0;
  for (int i = 0; i < count; ++i) {
    const int32_t* numbers = context->input<int32_t>(i);
    for (int64_t e = 0; e < context->input_shape(i).num_elements(); ++e) {
      if (numbers[e] < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("'indices' ", i, " has ", numbers[e], " at element ", e, ", expected at least 0"));
      }
      rows = std::max<int64_t>(rows, int64_t{numbers[e]} + 1);
    }
  }
  const Shape output = WithFirst(rows, context->input_shape(count), context->input_shape(0).rank());
  PF_ASSIGN_OR_RETURN(const int64_t elements, output.CheckedNumElements());
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, output));
  if (elements == 0) return absl::OkStatus();
  const auto size = static_cast<int64_t>(SizeOf(context->input_at(count).dtype));
  const int64_t bytes = ProductOfDims(output, 1, output.rank()) * size;
  char* target = context->output_bytes(0);
  std::memset(target, 0, elements * size);  // Rows without data.
  for (int i = 0; i < count; ++i) {
    const int32_t* numbers = context->input<int32_t>(i);
    const char* data = context->input_bytes(count + i);
    for (int64_t e = 0; e < context->input_shape(i).num_elements(); ++e) {
      std::memcpy(target + numbers[e] * bytes, data + e * bytes, bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(SegmentSum) {
  return Kernel("output[i] = sum of the rows of data with segment id i; ids are in ascending order")
      .TypeNumbers("T", NumberAndComplexTypes())
      .TypeNumbers("Tindices", IndexTypes())
      .Prepare(PrepareWidened<PrepareSortedSegments>)
      .Compute(ComputeWidened<ComputeSorted>);
}

DEFINE_KERNEL(UnsortedSegmentSum) {
  return Kernel("output[i] = sum of the rows of data with segment id i")
      .TypeNumbers("T", NumberAndComplexTypes())
      .Types<int16_t, int32_t, int64_t>("Tindices")
      .TypeNumbers("Tnumsegments", IndexTypes())
      .Prepare(PrepareWidened<PrepareUnsortedSegments>)
      .Compute(ComputeWidened<ComputeUnsorted>);
}

DEFINE_KERNEL(DynamicPartition) {
  return Kernel("outputs[i] = the rows of data whose partition is i")
      .TypeNumbers("T", MovableAndStringTypes())
      .Prepare(PrepareNumbered<PreparePartition>)
      .Compute(ComputeNumbered<ComputePartition>);
}

DEFINE_KERNEL(ParallelDynamicStitch) {
  return Kernel("merged[indices[i]] = data[i]; the last value for a repeated index, where TensorFlow takes any")
      .TypeNumbers("T", MovableAndStringTypes())
      .Prepare(PrepareNumbered<PrepareStitch>)
      .Compute(ComputeNumbered<ComputeStitch>);
}

DEFINE_KERNEL(DynamicStitch) {
  return Kernel("merged[indices[i]] = data[i]; the last value for a repeated index")
      .TypeNumbers("T", MovableAndStringTypes())
      .Prepare(PrepareNumbered<PrepareStitch>)
      .Compute(ComputeNumbered<ComputeStitch>);
}

}  // namespace permafrost
