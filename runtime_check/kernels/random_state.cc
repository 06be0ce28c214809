// Generators of random numbers whose state is a variable: the counter and the key of a Philox stream. The numbers are
// equal to TensorFlow's.
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

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

// Advances the counter by the blocks that TensorFlow reserves for `delta` numbers, and returns the stream from the
// counter before.
absl::StatusOr<Philox> Skip(const Variable& variable, int64_t algorithm, uint64_t delta) {
  if (algorithm != kPhiloxAlgorithm) {
    return absl::UnimplementedError(absl::StrCat("input 1 asks for algorithm ", algorithm, ", expected 1 (Philox)"));
  }
  const Shape& shape = variable.value.shape();
  if (shape.rank() != 1 || shape.dim(0) < kPhiloxStateSize) {
    return absl::InvalidArgumentError(absl::StrCat("the state of the generator has the shape ", shape.ToString(),
                                                   ", expected a vector of at least ", kPhiloxStateSize));
  }
  uint64_t state[kPhiloxStateSize];
  std::memcpy(state, variable.elements, sizeof state);
  const Philox stream(/*key=*/state[2], /*upper=*/state[1], /*lower=*/state[0]);
  const uint64_t before = state[0];
  state[0] += delta * kBlocksPerNumber;
  if (state[0] < before) ++state[1];
  std::memcpy(variable.elements, state, sizeof state);
  return stream;
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
  return Skip(*variable, *context->input<int32_t>(1), *context->input<uint64_t>(2)).status();
}

absl::Status PrepareSkip(PrepareContext*) { return absl::OkStatus(); }

absl::Status ComputeSkip(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, InitializedVariable(context, DType::kInt64));
  PF_ASSIGN_OR_RETURN(const int64_t algorithm, IntegerOf(context->input_at(1)));
  PF_ASSIGN_OR_RETURN(const int64_t delta, IntegerOf(context->input_at(2)));
  return Skip(*variable, algorithm, static_cast<uint64_t>(delta)).status();
}

// --- Numbers ---------------------------------------------------------------------------------------------------------

// Inputs: (resource, algorithm, shape, ...).
absl::Status PrepareNumbers(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 0));
  for (int i = 3; i < context->num_inputs(); ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 0));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegerVectorInput(context, 2));
  return SetCheckedShape(context, 0, Shape(dims));
}

// Takes the stream for the elements of output 0 from the variable.
absl::StatusOr<Philox> TakeStream(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, InitializedVariable(context, DType::kInt64));
  return Skip(*variable, *context->input<int64_t>(1), static_cast<uint64_t>(context->output_shape(0).num_elements()));
}

template <Distribution distribution>
absl::Status ComputeFloats(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Philox bits, TakeStream(context));
  FillFloats<distribution>(context, bits);
  return absl::OkStatus();
}

absl::Status ComputeIntegers(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Philox bits, TakeStream(context));
  FillIntegers(context, bits);
  return absl::OkStatus();
}

absl::Status ComputeIntegersBetween(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Philox bits, TakeStream(context));
  return FillIntegersBetween(context, bits);
}

Kernel NumbersKernel(const char* formula, std::vector<DType> types, ComputeFunction compute) {
  return Kernel(formula)
      .TypeNumbers("dtype", std::move(types))
      .TypeNumbers("shape_dtype", IndexTypes())
      .UsesState()
      .Prepare(PrepareNumbers)
      .Compute(compute);
}

}  // namespace

DEFINE_KERNEL(StatefulUniform) {
  return NumbersKernel("uniform random numbers in [0, 1), by the state of a generator", FloatingTypes(),
                       ComputeFloats<Distribution::kUniform>);
}

DEFINE_KERNEL(StatefulStandardNormalV2) {
  return NumbersKernel("normal random numbers with mean 0 and standard deviation 1, by the state of a generator",
                       FloatingTypes(), ComputeFloats<Distribution::kNormal>);
}

DEFINE_KERNEL(StatefulTruncatedNormal) {
  return NumbersKernel("StatefulStandardNormalV2, redrawing magnitudes of 2 or more", FloatingTypes(),
                       ComputeFloats<Distribution::kTruncated>);
}

DEFINE_KERNEL(StatefulUniformInt) {
  return NumbersKernel("uniform random integers in [minval, maxval), by the state of a generator", IndexTypes(),
                       ComputeIntegersBetween);
}

DEFINE_KERNEL(StatefulUniformFullInt) {
  return NumbersKernel("uniform random integers over the range of the type, by the state of a generator",
                       {DType::kInt32, DType::kInt64, DType::kUint32, DType::kUint64}, ComputeIntegers);
}

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
