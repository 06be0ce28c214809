// Random numbers that are functions of a seed, or of a key and a counter: the StatelessRandom ops, StatelessMultinomial
// and Multinomial. The numbers are equal to TensorFlow's.
//
// A seed is converted to a key and a counter, which determine the start of a Philox stream. Versions of an op that end
// in V2, and gamma's V3, have these as inputs.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/philox.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// TensorFlow's algorithm numbers. AUTO_SELECT is Philox on the CPU.
constexpr int32_t kPhiloxAlgorithm = 1;
constexpr int32_t kAutoSelect = 3;
// Blocks reserved per number of a gamma distribution.
constexpr uint64_t kBlocksPerGamma = 256;

struct KeyAndCounter {
  uint64_t key = 0;
  uint64_t lower = 0, upper = 0;

  Philox Stream() const { return Philox(key, upper, lower); }
};

// Scrambles the seed with a block of another stream, so that seeds that differ in one bit give unrelated streams.
KeyAndCounter FromSeed(uint64_t seed0, uint64_t seed1) {
  constexpr uint64_t kScramblingKey = 0x02461e293ec8f720;  // TensorFlow's constant.
  const Block mixed = Philox(kScramblingKey, seed1, seed0)(0);
  return {uint64_t{mixed[0]} | uint64_t{mixed[1]} << 32, 0, uint64_t{mixed[2]} | uint64_t{mixed[3]} << 32};
}

// Reads input i, two integers of 32 or 64 bits.
KeyAndCounter SeedInput(ComputeContext* context, int i) {
  KeyAndCounter result;
  DispatchOn<int32_t, int64_t, uint32_t, uint64_t>(context->input_at(i).dtype, [&](auto tag) {
    const auto* seed = context->input<typename decltype(tag)::type>(i);
    result = FromSeed(static_cast<uint64_t>(seed[0]), static_cast<uint64_t>(seed[1]));
  });
  return result;
}

absl::Status RequireVector(PrepareContext* context, int i, int64_t size) {
  const Shape& shape = context->input_shape(i);
  if (shape.rank() == 1 && shape.dim(0) == size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " has the shape ", shape.ToString(), ", expected [", size, "]"));
}

// Returns true if the inputs from 1 on are (key, counter, algorithm), false if (seed). A seed may be of uint64, too.
template <typename Context>
bool HasKeyInput(const Context& context) {
  return context.num_inputs() >= 4 && context.input_type(1) == DType::kUint64;
}

absl::StatusOr<KeyAndCounter> StreamInput(ComputeContext* context) {
  if (!HasKeyInput(*context)) return SeedInput(context, 1);
  const int32_t algorithm = context->input<int32_t>(3)[0];
  if (algorithm != kPhiloxAlgorithm && algorithm != kAutoSelect) {
    return absl::UnimplementedError(
        absl::StrCat("input 3 asks for algorithm ", algorithm, ", expected 1 (Philox) or 3 (any)"));
  }
  const uint64_t* counter = context->input<uint64_t>(2);
  return KeyAndCounter{context->input<uint64_t>(1)[0], counter[0], counter[1]};
}

absl::Status PrepareStreamInputs(PrepareContext* context) {
  if (!HasKeyInput(*context)) return RequireVector(context, 1, 2);
  PF_RETURN_IF_ERROR(RequireVector(context, 1, 1));
  PF_RETURN_IF_ERROR(RequireVector(context, 2, 2));
  return RequireRank(context, 3, 0);
}

// Inputs: (shape, seed ...) or (shape, key, counter, algorithm ...).
absl::Status Prepare(PrepareContext* context) {
  PF_RETURN_IF_ERROR(PrepareStreamInputs(context));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegerVectorInput(context, 0));
  return SetCheckedShape(context, 0, Shape(dims));
}

template <Distribution distribution>
absl::Status Compute(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const KeyAndCounter start, StreamInput(context));
  FillFloats<distribution>(context, start.Stream());
  return absl::OkStatus();
}

// --- Integers --------------------------------------------------------------------------------------------------------

absl::Status PrepareBetween(PrepareContext* context) {
  const int last = context->num_inputs() - 1;
  PF_RETURN_IF_ERROR(RequireRank(context, last - 1, 0));
  PF_RETURN_IF_ERROR(RequireRank(context, last, 0));
  return Prepare(context);
}

absl::Status ComputeBetween(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const KeyAndCounter start, StreamInput(context));
  return FillIntegersBetween(context, start.Stream());
}

absl::Status ComputeBits(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const KeyAndCounter start, StreamInput(context));
  FillIntegers(context, start.Stream());
  return absl::OkStatus();
}

// --- Gamma -----------------------------------------------------------------------------------------------------------

// Inputs: (shape, seed, alpha) or (shape, key, counter, algorithm, alpha). The shape ends with that of alpha.
absl::Status PrepareGamma(PrepareContext* context) {
  PF_RETURN_IF_ERROR(Prepare(context));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegerVectorInput(context, 0));
  const Shape& alpha = context->input_shape(context->num_inputs() - 1);
  const int leading = static_cast<int>(dims.size()) - alpha.rank();
  bool fits = leading >= 0;
  for (int d = 0; fits && d < alpha.rank(); ++d) fits = dims[static_cast<size_t>(leading + d)] == alpha.dim(d);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the output has the shape ", Shape(dims).ToString(),
                                                 " and alpha the shape ", alpha.ToString(),
                                                 ", expected the end of that of the output"));
}

// The random numbers that a distribution derives from a block, used from the last to the first as in TensorFlow.
template <typename Pair>
class Drawn {
 public:
  explicit Drawn(Pair pair) : pair_(pair) {}
  template <typename Next>
  double Take(Next&& next_block) {
    if (left_ == 0) {
      numbers_ = pair_(next_block());
      left_ = 2;
    }
    return numbers_[static_cast<size_t>(--left_)];
  }

 private:
  Pair pair_;
  std::array<double, 2> numbers_ = {};
  int left_ = 0;
};

// Returns a number of the gamma distribution (Marsaglia and Tsang: "A simple method for generating gamma variables",
// 2000).
double GammaNumber(double alpha, const Philox& bits, uint64_t block) {
  const auto next = [&] { return bits(block++); };
  Drawn uniform(&UniformGroup<double>);
  if (alpha == 1) return -std::log1p(-uniform.Take(next));
  Drawn normal(&NormalGroup<double>);
  const bool is_below_one = alpha < 1;
  const double d = alpha + (is_below_one ? 2.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / std::sqrt(d);
  // Limit on rejected candidates. About one in twenty is rejected; a stream that reaches the limit has numbers that are
  // not finite.
  constexpr int kMostCandidates = 1 << 16;
  if (std::isnan(c)) return c;  // No candidate is accepted.
  for (int i = 0; i < kMostCandidates; ++i) {
    const double x = normal.Take(next);
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = uniform.Take(next);
    if (u < 1 - 0.0331 * (x * x) * (x * x) || std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      const double number = d * v;
      return is_below_one ? number * std::pow(uniform.Take(next), 1 / alpha) : number;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

absl::Status ComputeGamma(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const KeyAndCounter start, StreamInput(context));
  const Philox bits = start.Stream();
  const int alpha_input = context->num_inputs() - 1;
  const int64_t alphas = context->input_shape(alpha_input).num_elements();
  const int64_t count = context->output_shape(0).num_elements();
  if (count == 0) return absl::OkStatus();
  const int64_t samples = count / alphas;
  DispatchOn<float, double, Half>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* alpha = context->input<T>(alpha_input);
    T* output = context->output<T>(0);
    context->threads().ParallelFor(count, kGrainGroups, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end && !RunIsCancelled(); ++i) {
        double a;
        if constexpr (std::is_same_v<T, Half>) {
          a = ToFloat(alpha[i / samples]);
        } else {
          a = alpha[i / samples];
        }
        const double number = GammaNumber(a, bits, kBlocksPerGamma * static_cast<uint64_t>(i));
        T& place = output[i % samples * alphas + i / samples];
        if constexpr (std::is_same_v<T, Half>) {
          place = ToHalf(static_cast<float>(number));
        } else {
          place = static_cast<T>(number);
        }
      }
    });
  });
  return absl::OkStatus();
}

// --- Multinomial -----------------------------------------------------------------------------------------------------

struct MultinomialState : KernelState {
  uint64_t seed = 0, seed2 = 0;
};

// Inputs: (logits, num_samples, seed) or, with the seed as attributes, (logits, num_samples).
absl::Status PrepareMultinomial(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 0));
  if (context->num_inputs() > 2) {
    PF_RETURN_IF_ERROR(RequireVector(context, 2, 2));
  } else {
    auto state = std::make_unique<MultinomialState>();
    PF_ASSIGN_OR_RETURN(const int64_t seed, IntAttr(context->node(), "seed"));
    PF_ASSIGN_OR_RETURN(const int64_t seed2, IntAttr(context->node(), "seed2"));
    state->seed = static_cast<uint64_t>(seed);
    state->seed2 = static_cast<uint64_t>(seed2);
    if (seed == 0 && seed2 == 0) state->seed = SeedOfName(context->node().name());
    context->SetState(std::move(state));
  }
  PF_ASSIGN_OR_RETURN(const int64_t samples, IntegerInput(context, 1));
  const Shape& logits = context->input_shape(0);
  if (logits.dim(1) == 0 || logits.dim(1) > INT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("found ", logits.dim(1), " classes, expected 1 to 2^31 - 1"));
  }
  if (logits.dim(0) > 0) context->RequestScratch(static_cast<size_t>(logits.dim(1)) * sizeof(double));
  return SetCheckedShape(context, 0, Shape({logits.dim(0), samples}));
}

// Draws from consecutive words of a stream, as TensorFlow does with one thread.
template <typename T, typename Index>
void DrawClasses(ComputeContext* context, const Philox& bits) {
  const T* logits = context->input<T>(0);
  const int64_t rows = context->input_shape(0).dim(0), classes = context->input_shape(0).dim(1);
  const int64_t samples = context->output_shape(0).dim(1);
  double* sums = reinterpret_cast<double*>(context->scratch());
  Index* output = context->output<Index>(0);
  const auto value = [](T x) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return static_cast<double>(ToFloat(x));
    } else {
      return static_cast<double>(x);
    }
  };
  // Samples between two questions whether the run is cancelled: about a millisecond.
  constexpr uint64_t kSamplesPerBlock = 1 << 14;
  Block block = {};
  uint64_t next = 0;
  for (int64_t row = 0; row < rows && !RunIsCancelled(); ++row, logits += classes) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t c = 0; c < classes; ++c) {
      if (std::isfinite(value(logits[c]))) largest = std::max(largest, value(logits[c]));
    }
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) {
      if (std::isfinite(value(logits[c]))) total += std::exp(value(logits[c]) - largest);
      sums[c] = total;
    }
    for (int64_t s = 0; s < samples; ++s, ++next) {
      if (next % kSamplesPerBlock == 0 && RunIsCancelled()) return;
      if (next % 2 == 0) block = bits(next / 2);
      const size_t word = next % 2 * 2;
      const double wanted = UnitDouble(block[word], block[word + 1]) * total;
      *output++ = static_cast<Index>(std::upper_bound(sums, sums + classes, wanted) - sums);
    }
  }
}

absl::Status ComputeMultinomial(ComputeContext* context) {
  Philox bits(0, 0);
  if (context->num_inputs() > 2) {
    bits = SeedInput(context, 2).Stream();
  } else {
    const auto& state = context->state<MultinomialState>();
    // TensorFlow rounds row lengths up to multiples of 4.
    const int64_t samples = context->output_shape(0).dim(1);
    PF_ASSIGN_OR_RETURN(const uint64_t first,
                        TakeBlocks(context, static_cast<uint64_t>((samples + 3) / 4 * 4) *
                                                static_cast<uint64_t>(context->output_shape(0).dim(0))));
    bits = Philox(state.seed, state.seed2, first);
  }
  DispatchOn<float, double, Half, BFloat16>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    DispatchOn<int32_t, int64_t>(context->output_at(0).dtype,
                                 [&](auto index) { DrawClasses<T, typename decltype(index)::type>(context, bits); });
  });
  return absl::OkStatus();
}

// --- From seeds to keys ----------------------------------------------------------------------------------------------

absl::Status PrepareKey(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireVector(context, 0, 2));
  context->SetOutputShape(0, Shape({1}));
  context->SetOutputShape(1, Shape({2}));
  if (context->num_outputs() > 2) context->SetOutputShape(2, Shape());
  return absl::OkStatus();
}

absl::Status ComputeKey(ComputeContext* context) {
  const KeyAndCounter start = SeedInput(context, 0);
  context->output<uint64_t>(0)[0] = start.key;
  context->output<uint64_t>(1)[0] = start.lower;
  context->output<uint64_t>(1)[1] = start.upper;
  if (context->num_outputs() > 2) context->output<int32_t>(2)[0] = kPhiloxAlgorithm;
  return absl::OkStatus();
}

absl::Status PrepareAlgorithm(PrepareContext* context) {
  context->SetOutputShape(0, Shape());
  return absl::OkStatus();
}

absl::Status ComputeAlgorithm(ComputeContext* context) {
  context->output<int32_t>(0)[0] = kPhiloxAlgorithm;
  return absl::OkStatus();
}

std::vector<DType> IntegerBitTypes() { return {DType::kInt32, DType::kInt64, DType::kUint32, DType::kUint64}; }

template <Distribution distribution>
Kernel FloatingKernel(const char* formula) {
  return Kernel(formula).TypeNumbers("dtype", FloatingTypes()).Prepare(Prepare).Compute(Compute<distribution>);
}
Kernel BetweenKernel() {
  return Kernel("uniform random integers in [minval, maxval), determined by the seed or key")
      .TypeNumbers("dtype", IndexTypes())
      .Prepare(PrepareBetween)
      .Compute(ComputeBetween);
}
Kernel BitsKernel() {
  return Kernel("uniform random integers over the range of the type, determined by the seed or key")
      .TypeNumbers("dtype", IntegerBitTypes())
      .Prepare(Prepare)
      .Compute(ComputeBits);
}
Kernel GammaKernel() {
  return Kernel("random numbers from the gamma distribution with shape alpha, determined by the seed or key")
      .Types<float, double, Half>("dtype")
      .Prepare(PrepareGamma)
      .Compute(ComputeGamma);
}
Kernel UniformKernel() {
  return FloatingKernel<Distribution::kUniform>("uniform random numbers in [0, 1), determined by the seed or key");
}
Kernel NormalKernel() {
  return FloatingKernel<Distribution::kNormal>(
      "normal random numbers with mean 0 and standard deviation 1, determined by the seed or key");
}
Kernel TruncatedKernel() {
  return FloatingKernel<Distribution::kTruncated>("StatelessRandomNormal, redrawing magnitudes of 2 or more");
}
Kernel MultinomialKernel(const char* formula) {
  return Kernel(formula)
      .TypeNumbers("T", FloatingTypes())
      .TypeNumbers("output_dtype", IndexTypes())
      .Prepare(PrepareMultinomial)
      .Compute(ComputeMultinomial);
}

}  // namespace

DEFINE_KERNEL(StatelessRandomUniform) { return UniformKernel(); }
DEFINE_KERNEL(StatelessRandomUniformV2) { return UniformKernel(); }
DEFINE_KERNEL(StatelessRandomNormal) { return NormalKernel(); }
DEFINE_KERNEL(StatelessRandomNormalV2) { return NormalKernel(); }
DEFINE_KERNEL(StatelessTruncatedNormal) { return TruncatedKernel(); }
DEFINE_KERNEL(StatelessTruncatedNormalV2) { return TruncatedKernel(); }
DEFINE_KERNEL(StatelessRandomUniformInt) { return BetweenKernel(); }
DEFINE_KERNEL(StatelessRandomUniformIntV2) { return BetweenKernel(); }
DEFINE_KERNEL(StatelessRandomUniformFullInt) { return BitsKernel(); }
DEFINE_KERNEL(StatelessRandomUniformFullIntV2) { return BitsKernel(); }
DEFINE_KERNEL(StatelessRandomGammaV2) { return GammaKernel(); }
DEFINE_KERNEL(StatelessRandomGammaV3) { return GammaKernel(); }
DEFINE_KERNEL(StatelessMultinomial) {
  return MultinomialKernel("classes sampled with probabilities softmax(logits), determined by the seed");
}
DEFINE_KERNEL(Multinomial) {
  return MultinomialKernel(
      "classes sampled with probabilities softmax(logits); identical to TensorFlow's if a seed is set");
}
DEFINE_KERNEL(StatelessRandomGetKeyCounter) {
  return Kernel("the key and counter derived from the seed").Prepare(PrepareKey).Compute(ComputeKey);
}
DEFINE_KERNEL(StatelessRandomGetKeyCounterAlg) {
  return Kernel("the key and counter derived from the seed, and 1, the id of the Philox algorithm")
      .Prepare(PrepareKey)
      .Compute(ComputeKey);
}
DEFINE_KERNEL(StatelessRandomGetAlg) {
  return Kernel("1, the id of the Philox algorithm").Prepare(PrepareAlgorithm).Compute(ComputeAlgorithm);
}

}  // namespace permafrost
