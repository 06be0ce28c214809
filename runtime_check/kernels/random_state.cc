// Generators of random numbers whose state is a variable: the counter and the key of a Philox stream.
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/element_store.h"
#include "runtime_check/kernels/philox.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/variable.h"

namespace permafrost {
namespace {

// TensorFlow's number of the algorithm, and the layout of its state: the lower and upper half of the counter, the key.
constexpr int64_t kPhiloxAlgorithm = 1;
constexpr int64_t kPhiloxStateSize = 3;

// Advances the counter by the blocks that TensorFlow reserves for `delta` numbers.
absl::Status Skip(const Variable& variable, int64_t algorithm, uint64_t delta) {
  if (algorithm != kPhiloxAlgorithm) {
    return absl::UnimplementedError(absl::StrCat("input 1 asks for algorithm ", algorithm, ", expected 1 (Philox)"));
  }
  const Shape& shape = variable.value.shape();
  if (shape.rank() != 1 || shape.dim(0) < kPhiloxStateSize) {
    return absl::InvalidArgumentError(absl::StrCat("the state of the generator has the shape ", shape.ToString(),
                                                   ", expected a vector of at least ", kPhiloxStateSize));
  }
  uint64_t counter[2];
  std::memcpy(counter, variable.elements, sizeof counter);
  const uint64_t before = counter[0];
  counter[0] += delta * kBlocksPerNumber;
  if (counter[0] < before) ++counter[1];
  std::memcpy(variable.elements, counter, sizeof counter);
  return absl::OkStatus();
}

absl::Status PrepareReadAndSkip(PrepareContext* context) {
  context->OutputShapeDependsOnValues(0);
  return absl::OkStatus();
}

absl::Status ComputeReadAndSkip(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, InitializedVariable(context, DType::kInt64));
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, variable->value.shape()));
  if (variable->value.shape().num_elements() > 0) {
    std::memcpy(context->output_bytes(0), variable->elements, variable->value.bytes().size());
  }
  if (context->input_shape(1).num_elements() != 1 || context->input_shape(2).num_elements() != 1) {
    return absl::InvalidArgumentError("algorithm and delta must be scalars");
  }
  return Skip(*variable, *context->input<int32_t>(1), *context->input<uint64_t>(2));
}

absl::Status PrepareSkip(PrepareContext*) { return absl::OkStatus(); }

absl::Status ComputeSkip(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, InitializedVariable(context, DType::kInt64));
  PF_ASSIGN_OR_RETURN(const int64_t algorithm, IntegerOf(context->input_at(1)));
  PF_ASSIGN_OR_RETURN(const int64_t delta, IntegerOf(context->input_at(2)));
  return Skip(*variable, algorithm, static_cast<uint64_t>(delta));
}

}  // namespace

DEFINE_KERNEL(RngReadAndSkip) {
  return Kernel("the state of a generator, which is then advanced by delta numbers")
      .UsesState()
      .Prepare(PrepareReadAndSkip)
      .Compute(ComputeReadAndSkip);
}

DEFINE_KERNEL(RngSkip) {
  return Kernel("advances the state of a generator by delta numbers")
      .UsesState()
      .Prepare(PrepareSkip)
      .Compute(ComputeSkip);
}

}  // namespace permafrost
