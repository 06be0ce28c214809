// Random numbers: RandomUniform, RandomUniformInt, RandomStandardNormal and TruncatedNormal.
//
// The bits come from the counter-based generator Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers:
// as easy as 1, 2, 3", 2011): block number n of 128 bits is a function of n and a key. The attributes seed and seed2
// are the key and the upper half of the block numbers. Numbers are taken from blocks in TensorFlow's order, so nodes
// with seeds give TensorFlow's numbers. A node without seeds uses a hash of its name: each session gives the same
// numbers, and a rewritten graph gives the same numbers as the original if the node keeps its name. Each run of a
// session continues the stream of the previous run.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/philox.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

struct RandomState : KernelState {
  uint64_t seed = 0, seed2 = 0;
};

absl::Status Prepare(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegerVectorInput(context, 0));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape(dims)));
  auto state = std::make_unique<RandomState>();
  PF_ASSIGN_OR_RETURN(const int64_t seed, IntAttr(context->node(), "seed"));
  PF_ASSIGN_OR_RETURN(const int64_t seed2, IntAttr(context->node(), "seed2"));
  state->seed = static_cast<uint64_t>(seed);
  state->seed2 = static_cast<uint64_t>(seed2);
  if (seed == 0 && seed2 == 0) state->seed = SeedOfName(context->node().name());
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareIntegers(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 0));
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 0));
  return Prepare(context);
}

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Takes the blocks of the output's numbers from the stream of the node.
absl::StatusOr<Philox> TakeStream(ComputeContext* context) {
  const auto& state = context->state<RandomState>();
  const auto numbers = static_cast<uint64_t>(context->output_shape(0).num_elements());
  PF_ASSIGN_OR_RETURN(const uint64_t first, TakeBlocks(context, numbers));
  return Philox(state.seed, state.seed2, first);
}

template <Distribution distribution>
absl::Status Compute(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Philox bits, TakeStream(context));
  FillFloats<distribution>(context, bits);
  return absl::OkStatus();
}

absl::Status ComputeIntegers(ComputeContext* context) {
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const Philox bits, TakeStream(context));
  return FillIntegersBetween(context, bits);
}

}  // namespace

DEFINE_KERNEL(RandomUniform) {
  return Kernel("uniform random numbers in [0, 1); identical to TensorFlow's if a seed is set")
      .TypeNumbers("dtype", FloatingTypes())
      .Prepare(Prepare)
      .Compute(Compute<Distribution::kUniform>);
}

DEFINE_KERNEL(RandomUniformInt) {
  return Kernel("uniform random integers in [minval, maxval); identical to TensorFlow's if a seed is set")
      .TypeNumbers("Tout", IndexTypes())
      .Prepare(PrepareIntegers)
      .Compute(ComputeIntegers);
}

DEFINE_KERNEL(RandomStandardNormal) {
  return Kernel(
             "normal random numbers with mean 0 and standard deviation 1; identical to TensorFlow's if a seed is set")
      .TypeNumbers("dtype", FloatingTypes())
      .Prepare(Prepare)
      .Compute(Compute<Distribution::kNormal>);
}

DEFINE_KERNEL(TruncatedNormal) {
  return Kernel("RandomStandardNormal, redrawing magnitudes of 2 or more; identical to TensorFlow's if a seed is set")
      .TypeNumbers("dtype", FloatingTypes())
      .Prepare(Prepare)
      .Compute(Compute<Distribution::kTruncated>);
}

}  // namespace permafrost
