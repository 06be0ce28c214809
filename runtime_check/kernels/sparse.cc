// SparseToDense: writes values at given positions of a tensor filled with a default value.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

struct DenseState : KernelState {
  std::vector<int64_t> dims;
  int64_t count = 0;       // Number of positions.
  bool one_value = false;  // One value for all positions.
  bool validates = false;  // Positions must be sorted and distinct.
};

absl::Status Prepare(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> dims, IntegerVectorInput(context, 1));
  auto state = std::make_unique<DenseState>();
  PF_ASSIGN_OR_RETURN(state->validates, BoolAttr(context->node(), "validate_indices"));
  const Shape& places = context->input_shape(0);
  const Shape& values = context->input_shape(2);
  if (places.rank() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("sparse_indices has the shape ", places.ToString(), ", expected a rank of at most 2"));
  }
  state->count = places.rank() == 0 ? 1 : places.dim(0);
  const int64_t rank = places.rank() == 2 ? places.dim(1) : 1;
  if (rank != static_cast<int64_t>(dims.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("sparse_indices has ", rank, " numbers for a place, and output_shape has ", dims.size()));
  }
  state->one_value = values.rank() == 0;
  if (values.rank() > 1 || (!state->one_value && values.dim(0) != state->count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sparse_values has the shape ", values.ToString(), ", expected [] or [", state->count, "]"));
  }
  PF_RETURN_IF_ERROR(RequireRank(context, 3, 0));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape(dims)));
  state->dims = std::move(dims);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Calls put(element of the output, number of the value) for each position.
template <typename Index, typename Put>
absl::Status ForPlaces(ComputeContext* context, Put put) {
  const auto& state = context->state<DenseState>();
  const Index* places = context->input<Index>(0);
  const int64_t rank = static_cast<int64_t>(state.dims.size());
  int64_t last = -1;
  for (int64_t i = 0; i < state.count; ++i) {
    int64_t at = 0;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t index = static_cast<int64_t>(places[i * rank + d]);
      if (index < 0 || index >= state.dims[d]) {
        return absl::InvalidArgumentError(absl::StrCat("sparse_indices[", i, "] has ", index, " in dimension ", d,
                                                       ", expected 0 to ", state.dims[d] - 1));
      }
      at = at * state.dims[d] + index;
    }
    if (state.validates && at <= last) {
      return absl::InvalidArgumentError(absl::StrCat("sparse_indices[", i, "] is ",
                                                     at == last ? "repeated" : "out of order",
                                                     ", expected places in row-major order"));
    }
    last = at;
    put(at, state.one_value ? 0 : i);
  }
  return absl::OkStatus();
}

template <typename Put>
absl::Status ForPlaces(ComputeContext* context, Put put) {
  return context->input_at(0).dtype == DType::kInt64 ? ForPlaces<int64_t>(context, put)
                                                     : ForPlaces<int32_t>(context, put);
}

// Writes `count` copies of one element. Each step copies what is already written, so small elements are as fast as
// large ones.
void FillWith(const char* from, size_t element, int64_t count, char* output) {
  if (count == 0) return;
  const size_t total = static_cast<size_t>(count) * element;
  std::memcpy(output, from, element);
  for (size_t done = element; done < total;) {
    const size_t more = std::min(done, total - done);
    std::memcpy(output + done, output, more);
    done += more;
  }
}

absl::Status Compute(ComputeContext* context) {
  const int64_t size = context->output_shape(0).num_elements();
  if (context->output_at(0).dtype == DType::kString) {
    std::vector<std::string>& output = context->output_strings(0);
    const std::vector<std::string>& values = context->input_strings(2);
    output.assign(size, (context->input_strings(3))[0]);
    return ForPlaces(context, [&](int64_t at, int64_t value) { output[at] = values[value]; });
  }
  const size_t element = SizeOf(context->output_at(0).dtype);
  char* output = context->output_bytes(0);
  const char* values = context->input_bytes(2);
  FillWith(context->input_bytes(3), element, size, output);
  return ForPlaces(context, [&](int64_t at, int64_t value) {
    std::memcpy(output + at * element, values + value * element, element);
  });
}

}  // namespace

DEFINE_KERNEL(SparseToDense) {
  return Kernel("a dense tensor with sparse_values at sparse_indices and default_value elsewhere")
      .TypeNumbers("T", MovableAndStringTypes())
      .TypeNumbers("Tindices", IndexTypes())
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost
