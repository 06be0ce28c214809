// Ragged tensors: RaggedRange, RaggedGather, RaggedTensorToTensor and RaggedTensorToSparse.
//
// A ragged tensor is a dense tensor of values, and row splits for each ragged dimension, outermost first.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/ragged_splits.h"

namespace permafrost {
namespace {

using Splits = std::vector<int64_t>;

// Limit on rows: rows without values need no memory in a file, but need splits here.
constexpr int64_t kMostRows = int64_t{1} << 31;
// The maximum number of dimensions of TensorFlow's tensors.
constexpr size_t kMostDimensions = 254;

// Returns the integers of input i.
Splits IntegersOf(ComputeContext* context, int i) {
  Splits result;
  DispatchOn<int32_t, int64_t>(context->input_at(i).dtype, [&](auto tag) {
    const auto* values = context->input<typename decltype(tag)::type>(i);
    result.assign(values, values + context->input_shape(i).num_elements());
  });
  return result;
}

absl::Status GiveIntegers(ComputeContext* context, int i, const Splits& values) {
  PF_RETURN_IF_ERROR(context->AllocateOutput(i, Shape({static_cast<int64_t>(values.size())})));
  DispatchOn<int32_t, int64_t>(context->output_at(i).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* output = context->output<T>(i);
    for (size_t k = 0; k < values.size(); ++k) output[k] = static_cast<T>(values[k]);
  });
  return absl::OkStatus();
}

// Copies `count` elements of an input to an output of its type; strings are copied one by one.
void CopyElements(ComputeContext* context, int input, int64_t first, int64_t count, int output, int64_t place) {
  if (count == 0) return;
  if (context->input_type(input) == DType::kString) {
    std::copy_n(context->input_strings(input).begin() + first, count, context->output_strings(output).begin() + place);
    return;
  }
  const auto size = static_cast<int64_t>(SizeOf(context->input_type(input)));
  std::memcpy(context->output_bytes(output) + place * size, context->input_bytes(input) + first * size,
              static_cast<size_t>(count * size));
}

// --- RaggedRange -----------------------------------------------------------------------------------------------------

absl::Status PrepareRange(PrepareContext* context) {
  int64_t rows = 1;
  bool has_vector = false;
  for (int i = 0; i < 3; ++i) {
    const Shape& shape = context->input_shape(i);
    if (shape.rank() == 0) continue;
    PF_RETURN_IF_ERROR(RequireRank(context, i, 1));
    if (has_vector && shape.dim(0) != rows) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", shape.dim(0), " elements, expected ", rows));
    }
    has_vector = true;
    rows = shape.dim(0);
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape({rows + 1})));
  context->OutputShapeDependsOnValues(1);
  return absl::OkStatus();
}

// Returns the number of elements from start to limit, as a double because it may be arbitrarily large.
template <typename T>
double RangeLength(T start, T limit, T delta) {
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  if constexpr (std::is_integral_v<T>) {
    const uint64_t distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                        : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
    return static_cast<double>((distance - 1) / step) + 1;
  } else {
    return std::ceil(std::abs((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta)));
  }
}

template <typename T>
absl::Status FillRanges(ComputeContext* context) {
  const auto at = [&](int input, int64_t row) {
    return context->input<T>(input)[context->input_shape(input).rank() == 0 ? 0 : row];
  };
  const int64_t rows = context->output_shape(0).dim(0) - 1;
  Splits splits(1, 0);
  for (int64_t row = 0; row < rows; ++row) {
    const T delta = at(2, row);
    if (delta == T{0}) return absl::InvalidArgumentError(absl::StrCat("the step of row ", row, " is 0"));
    const double length = RangeLength<T>(at(0, row), at(1, row), delta);
    // Rejects more elements than fit in memory, and NaN.
    if (!(length + static_cast<double>(splits.back()) < 1e15)) {
      return absl::ResourceExhaustedError(absl::StrCat("the range of row ", row, " has ", length, " elements"));
    }
    splits.push_back(splits.back() + static_cast<int64_t>(length));
  }
  PF_RETURN_IF_ERROR(context->AllocateOutput(1, Shape({splits.back()})));
  DispatchOn<int32_t, int64_t>(context->output_at(0).dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    std::transform(splits.begin(), splits.end(), context->output<S>(0), [](int64_t x) { return static_cast<S>(x); });
  });
  T* values = context->output<T>(1);
  for (int64_t row = 0; row < rows; ++row) {
    T value = at(0, row);
    const T delta = at(2, row);
    for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
      *values++ = value;
      if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(static_cast<uint64_t>(value) + static_cast<uint64_t>(delta));
      } else {
        value += delta;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ComputeRange(ComputeContext* context) {
  absl::Status status;
  DispatchOn<float, double, int32_t, int64_t>(
      context->input_at(0).dtype, [&](auto tag) { status = FillRanges<typename decltype(tag)::type>(context); });
  return status;
}

// --- RaggedGather ----------------------------------------------------------------------------------------------------

// Inputs and outputs: (splits ..., values, indices) -> (splits ..., values).
absl::Status PrepareGather(PrepareContext* context) {
  const int ragged = context->num_inputs() - 2;
  for (int i = 0; i < ragged; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 1));
  if (ragged < 1 || context->input_shape(ragged).rank() < 1) {
    return absl::InvalidArgumentError("the values have no first dimension to be ragged");
  }
  const int indices = context->input_shape(ragged + 1).rank();
  if (indices < 1 || indices - 1 + ragged != context->num_outputs() - 1) {
    return absl::InvalidArgumentError(absl::StrCat("indices of ", indices, " dimensions into ", ragged,
                                                   " ragged ones, expected ", context->num_outputs() - ragged));
  }
  for (int i = 0; i < context->num_outputs(); ++i) context->OutputShapeDependsOnValues(i);
  return absl::OkStatus();
}

absl::Status ComputeGather(ComputeContext* context) {
  const int ragged = context->num_inputs() - 2;
  const Value& values = context->input_at(ragged);
  const Shape& index_shape = context->input_shape(ragged + 1);
  std::vector<Splits> splits;
  for (int i = 0; i < ragged; ++i) splits.push_back(IntegersOf(context, i));
  for (int i = 0; i < ragged; ++i) {
    const int64_t inner = i + 1 < ragged ? static_cast<int64_t>(splits[i + 1].size()) - 1 : values.shape.dim(0);
    PF_RETURN_IF_ERROR(
        CheckSplits(splits[i].data(), static_cast<int64_t>(splits[i].size()), std::max<int64_t>(inner, 0)));
    if (splits[i].empty()) return absl::InvalidArgumentError("the splits are empty, expected a 0");
  }
  const Splits indices = IntegersOf(context, ragged + 1);
  // The ranges of the next dimension that belong to the selected rows; finally, the ranges of the values.
  std::vector<std::pair<int64_t, int64_t>> pieces;
  const int64_t rows = static_cast<int64_t>(splits[0].size()) - 1;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < rows) {
      pieces.emplace_back(indices[i], indices[i] + 1);
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the indices have ", indices[i], " at element ", i, ", expected a row in [0, ", rows, ")"));
  }
  // All dimensions of the indices except the last have rows of one length.
  int64_t count = 1;
  for (int d = 0; d + 1 < index_shape.rank(); ++d) {
    count = index_shape.dim(d) > kMostRows ? kMostRows + 1 : count * index_shape.dim(d);
    if (count > kMostRows || index_shape.dim(d + 1) > kMostRows)
      return absl::ResourceExhaustedError(absl::StrCat("found ", count, " rows of indices"));
    PF_ASSIGN_OR_RETURN(const Reservation reservation,
                        Reservation::Take(&context->budget(), (count + 1) * 8, "the splits of indices"));
    Splits uniform;
    for (int64_t i = 0; i <= count; ++i) uniform.push_back(i * index_shape.dim(d + 1));
    PF_RETURN_IF_ERROR(GiveIntegers(context, d, uniform));
  }
  for (int level = 0; level < ragged; ++level) {
    const Splits& of_level = splits[static_cast<size_t>(level)];
    // Row by row; the indices may select a row any number of times.
    int64_t chosen = 0;
    for (const auto& [begin, end] : pieces) chosen += end - begin;
    PF_ASSIGN_OR_RETURN(const Reservation reservation,
                        Reservation::Take(&context->budget(), chosen * 8 + static_cast<int64_t>(pieces.size()) * 16,
                                          "the splits of gathered rows"));
    Splits output(1, 0);
    output.reserve(static_cast<size_t>(chosen) + 1);
    for (auto& [begin, end] : pieces) {
      for (int64_t row = begin; row < end; ++row) output.push_back(output.back() + of_level[row + 1] - of_level[row]);
      begin = of_level[begin];
      end = of_level[end];
    }
    PF_RETURN_IF_ERROR(GiveIntegers(context, index_shape.rank() - 1 + level, output));
  }
  int64_t total = 0;
  for (const auto& [begin, end] : pieces) total += end - begin;
  Shape shape({total});
  for (int d = 1; d < values.shape.rank(); ++d) shape.AddDim(values.shape.dim(d));
  PF_RETURN_IF_ERROR(shape.CheckedNumElements().status());
  const int out = context->num_outputs() - 1;
  PF_RETURN_IF_ERROR(context->AllocateOutput(out, shape));
  const int64_t row_elements = ProductOfDims(values.shape, 1, values.shape.rank());
  int64_t place = 0;
  for (const auto& [begin, end] : pieces) {
    CopyElements(context, ragged, begin * row_elements, (end - begin) * row_elements, out, place);
    place += (end - begin) * row_elements;
  }
  return absl::OkStatus();
}

// --- RaggedTensorToTensor --------------------------------------------------------------------------------------------

// Inputs: (shape, values, default value, partitions ...).
constexpr int kFirstPartition = 3;

absl::Status PrepareToTensor(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> kinds, StringListAttr(context->node(), "row_partition_types"));
  if (kinds.empty() || static_cast<int>(kinds.size()) != context->num_inputs() - kFirstPartition) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'row_partition_types' has ", kinds.size(),
                                                   " entries, expected one for each of the ",
                                                   context->num_inputs() - kFirstPartition, " partitions"));
  }
  if (kinds.size() > kMostDimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", kinds.size(), " partitions, expected at most ", kMostDimensions));
  }
  for (size_t i = 0; i < kinds.size(); ++i) {
    const bool is_first_size = kinds[i] == "FIRST_DIM_SIZE";
    if (is_first_size ? i == 0
                      : (kinds[i] == "ROW_SPLITS" || (kinds[i] == "VALUE_ROWIDS" && kinds[0] != "ROW_SPLITS"))) {
      if (!is_first_size) PF_RETURN_IF_ERROR(RequireRank(context, kFirstPartition + static_cast<int>(i), 1));
      if (is_first_size) PF_RETURN_IF_ERROR(RequireRank(context, kFirstPartition, 0));
      continue;
    }
    return absl::UnimplementedError(absl::StrCat("attr 'row_partition_types' has '", kinds[i], "' at entry ", i,
                                                 ", expected FIRST_DIM_SIZE and VALUE_ROWIDS, or ROW_SPLITS"));
  }
  if (context->input_shape(1).rank() < 1) return absl::InvalidArgumentError("the values are a scalar");
  context->OutputShapeDependsOnValues(0);
  return absl::OkStatus();
}

// Returns the row splits of all ragged dimensions.
absl::StatusOr<std::vector<Splits>> ReadPartitions(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> kinds, StringListAttr(context->node(), "row_partition_types"));
  std::vector<Splits> result;
  int64_t rows = -1;  // Rows of the next partition; -1 if the partition determines them.
  for (size_t i = 0; i < kinds.size(); ++i) {
    Splits numbers = IntegersOf(context, kFirstPartition + static_cast<int>(i));
    if (kinds[i] == "FIRST_DIM_SIZE") {
      rows = numbers[0];
      if (rows < 0 || rows > kMostRows) {
        return absl::InvalidArgumentError(absl::StrCat("found ", rows, " rows, expected 0 to ", kMostRows));
      }
      continue;
    }
    if (kinds[i] == "VALUE_ROWIDS") {
      // Reserves memory, since there may be far more rows than values.
      PF_ASSIGN_OR_RETURN(const Reservation reservation,
                          Reservation::Take(&context->budget(), std::max<int64_t>(rows, 0) * 8, "row splits"));
      Splits splits(1, 0);
      for (size_t k = 0; k < numbers.size(); ++k) {
        const bool ascends = numbers[k] >= (k == 0 ? 0 : numbers[k - 1]) && numbers[k] < rows;
        if (!ascends) {
          return absl::InvalidArgumentError(absl::StrCat("the row ids have ", numbers[k], " at element ", k,
                                                         ", expected ascending numbers below ", rows));
        }
        while (static_cast<int64_t>(splits.size()) <= numbers[k]) splits.push_back(static_cast<int64_t>(k));
      }
      while (static_cast<int64_t>(splits.size()) <= rows) splits.push_back(static_cast<int64_t>(numbers.size()));
      numbers = std::move(splits);
    }
    const auto count = static_cast<int64_t>(numbers.size());
    if (count == 0 || (rows >= 0 && count != rows + 1)) {
      return absl::InvalidArgumentError(absl::StrCat("partition ", i, " has ", count, " splits, expected ", rows + 1));
    }
    PF_RETURN_IF_ERROR(CheckSplits(numbers.data(), count, numbers.back()));
    rows = numbers.back();
    result.push_back(std::move(numbers));
  }
  if (result.empty()) return absl::InvalidArgumentError("there is no ragged dimension");
  if (rows != context->input_shape(1).dim(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the partitions have ", rows, " values, expected ", context->input_shape(1).dim(0)));
  }
  return result;
}

// Copies the values of rows [begin, end) at `level` to their positions in the dense output.
struct RowCopy {
  const std::vector<Splits>& splits;
  const std::vector<int64_t>& sizes;    // Sizes of the output by level; one more than there are splits.
  const std::vector<int64_t>& strides;  // Strides of the output by level.
  int64_t value_elements;
  ComputeContext* context;

  void Rows(size_t level, int64_t begin, int64_t end, int64_t place) const {
    const int64_t count = std::min(end - begin, sizes[level]);
    if (level == splits.size()) {
      CopyElements(context, 1, begin * value_elements, count * value_elements, 0, place);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const Splits& of_level = splits[level];
      Rows(level + 1, of_level[begin + i], of_level[begin + i + 1], place + i * strides[level]);
    }
  }
};

absl::Status ComputeToTensor(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::vector<Splits> splits, ReadPartitions(context));
  const Value &values = context->input_at(1), &fill = context->input_at(2);
  std::vector<int64_t> dims(1, static_cast<int64_t>(splits[0].size()) - 1);
  for (const Splits& of_level : splits) {
    int64_t longest = 0;
    for (size_t i = 0; i + 1 < of_level.size(); ++i) longest = std::max(longest, of_level[i + 1] - of_level[i]);
    dims.push_back(longest);
  }
  const size_t levels = dims.size();
  for (int d = 1; d < values.shape.rank(); ++d) dims.push_back(values.shape.dim(d));
  if (context->input_shape(0).rank() > 0) {
    const Splits wanted = IntegersOf(context, 0);
    if (wanted.size() != dims.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'shape' has ", wanted.size(), " dimensions, expected ", dims.size()));
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (wanted[d] < 0) continue;
      if (d >= levels && wanted[d] != dims[d]) {
        return absl::InvalidArgumentError(
            absl::StrCat("'shape' has ", wanted[d], " for dimension ", d, ", where the values have ", dims[d]));
      }
      dims[d] = wanted[d];
    }
  }
  const Shape shape(dims);
  PF_RETURN_IF_ERROR(shape.CheckedNumElements().status());
  const int64_t value_elements = ProductOfDims(values.shape, 1, values.shape.rank());
  const int64_t fill_elements = fill.shape.num_elements();
  // The default value must match the trailing dimensions of a value.
  bool fits = fill.shape.rank() < values.shape.rank() || fill_elements == 1;
  for (int d = 1; fits && fill_elements != 1 && d <= fill.shape.rank(); ++d) {
    fits = fill.shape.dim(fill.shape.rank() - d) == values.shape.dim(values.shape.rank() - d);
  }
  if (!fits) {
    return absl::UnimplementedError(absl::StrCat("a default value of shape ", fill.shape.ToString(),
                                                 " for values of shape ", values.shape.ToString(),
                                                 "; expected a scalar or the end of a value's"));
  }
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, shape));
  const int64_t count = shape.num_elements();
  if (fill_elements > 0) {
    for (int64_t i = 0; i < count; i += fill_elements) CopyElements(context, 2, 0, fill_elements, 0, i);
  }
  if (count == 0) return absl::OkStatus();
  std::vector<int64_t> strides(levels, value_elements);
  for (size_t level = levels - 1; level > 0; --level) strides[level - 1] = strides[level] * dims[level];
  const std::vector<int64_t> sizes(dims.begin(), dims.begin() + static_cast<int64_t>(levels));
  const RowCopy copy = {splits, sizes, strides, value_elements, context};
  copy.Rows(0, 0, static_cast<int64_t>(splits[0].size()) - 1, 0);
  return absl::OkStatus();
}

// --- RaggedTensorToSparse --------------------------------------------------------------------------------------------

// Inputs: (splits ..., values).
absl::Status PrepareToSparse(PrepareContext* context) {
  const int ragged = context->num_inputs() - 1;
  for (int i = 0; i < ragged; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 1));
  const Shape& values = context->input_shape(ragged);
  if (ragged < 1 || values.rank() < 1) return absl::InvalidArgumentError("there is no ragged dimension");
  PF_ASSIGN_OR_RETURN(const int64_t count, values.CheckedNumElements());
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape({count, ragged + values.rank()})));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 1, Shape({count})));
  context->SetOutputShape(2, Shape({ragged + values.rank()}));
  return absl::OkStatus();
}

absl::Status ComputeToSparse(ComputeContext* context) {
  const int ragged = context->num_inputs() - 1;
  const Value& values = context->input_at(ragged);
  std::vector<Splits> splits;
  int64_t* dense_shape = context->output<int64_t>(2);
  for (int i = 0; i < ragged; ++i) splits.push_back(IntegersOf(context, i));
  for (int i = 0; i < ragged; ++i) {
    const int64_t inner = i + 1 < ragged ? static_cast<int64_t>(splits[i + 1].size()) - 1 : values.shape.dim(0);
    if (splits[i].empty()) return absl::InvalidArgumentError("the splits are empty, expected a 0");
    PF_RETURN_IF_ERROR(CheckSplits(splits[i].data(), static_cast<int64_t>(splits[i].size()), inner));
    int64_t longest = 0;
    for (size_t k = 0; k + 1 < splits[i].size(); ++k) longest = std::max(longest, splits[i][k + 1] - splits[i][k]);
    dense_shape[i + 1] = longest;
  }
  dense_shape[0] = static_cast<int64_t>(splits[0].size()) - 1;
  for (int d = 1; d < values.shape.rank(); ++d) dense_shape[ragged + d] = values.shape.dim(d);
  const int64_t row_elements = ProductOfDims(values.shape, 1, values.shape.rank());
  int64_t* index = context->output<int64_t>(0);
  // The current row at each level.
  std::vector<int64_t> row(static_cast<size_t>(ragged), 0);
  for (int64_t value = 0; value < values.shape.dim(0); ++value) {
    int64_t inner = value;
    for (int level = ragged - 1; level >= 0; --level) {
      while (splits[level][row[level] + 1] <= inner) ++row[level];
      inner = row[level];
    }
    for (int64_t e = 0; e < row_elements; ++e) {
      *index++ = row[0];
      for (int level = 0; level < ragged; ++level) {
        const int64_t place = level + 1 < ragged ? row[level + 1] : value;
        *index++ = place - splits[level][row[level]];
      }
      int64_t rest = e, stride = row_elements;
      for (int d = 1; d < values.shape.rank(); ++d) {
        stride /= values.shape.dim(d);
        *index++ = rest / stride;
        rest %= stride;
      }
    }
  }
  CopyElements(context, ragged, 0, values.shape.num_elements(), 1, 0);
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(RaggedRange) {
  return Kernel(
             "a ragged tensor with a row start, start + delta, ... before limit for each of starts, limits and deltas")
      .Types<float, double, int32_t, int64_t>("T")
      .TypeNumbers("Tsplits", IndexTypes())
      .Prepare(PrepareRange)
      .Compute(ComputeRange);
}
DEFINE_KERNEL(RaggedGather) {
  return Kernel("the rows of a ragged tensor at the given indices")
      .TypeNumbers("Tvalues", MovableAndStringTypes())
      .TypeNumbers("Tsplits", IndexTypes())
      .Prepare(PrepareGather)
      .Compute(ComputeGather);
}
DEFINE_KERNEL(RaggedTensorToTensor) {
  return Kernel("a dense tensor with the rows of a ragged tensor, truncated or padded with a default value")
      .TypeNumbers("T", MovableAndStringTypes())
      .Prepare(PrepareToTensor)
      .Compute(ComputeToTensor);
}
DEFINE_KERNEL(RaggedTensorToSparse) {
  return Kernel("a ragged tensor converted to a sparse tensor: indices, values and dense shape")
      .TypeNumbers("T", MovableAndStringTypes())
      .TypeNumbers("Tsplits", IndexTypes())
      .Prepare(PrepareToSparse)
      .Compute(ComputeToSparse);
}

}  // namespace permafrost
