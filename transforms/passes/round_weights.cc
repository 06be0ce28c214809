// Rounds float constants to few values, so that the file compresses better.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "graph/multiversion.h"
#include "graph/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/float_constants.h"
#include "transforms/rewrites/float_ranges.h"

namespace permafrost {
namespace {

struct Params {
  int32_t num_steps = 256;
};

// The original leaves smaller constants alone.
constexpr int64_t kMinElements = 16;

struct Buckets {
  float min;
  float width;
  float last;  // The number of the last bucket.
};

// Every value becomes the middle of its bucket; what equals the maximum belongs to the last bucket. Zeros, NaN and
// infinities stay.
inline PF_INLINE void RoundBlock(const float* __restrict values, const Buckets& buckets, float* __restrict out) {
  const float min = buckets.min, width = buckets.width, last = buckets.last;
  // Several loops, because the compiler makes branches of two bounds in one, and then does not vectorise.
  for (size_t i = 0; i < kBlock; ++i) {
    const float position = (values[i] - min) / width;
    out[i] = position < last ? position : last;
  }
  // Positions of finite values are not negative, so truncation is floor; the bound keeps infinity out of the
  // conversion.
  for (size_t i = 0; i < kBlock; ++i) out[i] = out[i] > 0.0f ? out[i] : 0.0f;
  for (size_t i = 0; i < kBlock; ++i) {
    out[i] = min + width * (static_cast<float>(static_cast<int32_t>(out[i])) + 0.5f);
  }
  for (size_t i = 0; i < kBlock; ++i) {
    const float value = values[i];
    const float kept = __builtin_fabsf(value) <= __FLT_MAX__ ? out[i] : value;
    out[i] = value == 0.0f ? value : kept;
  }
}

absl::StatusOr<Tensor> RoundTensor(const Tensor& tensor, const Buckets& buckets, int num_threads) {
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor rounded, Tensor::Allocate(DType::kFloat, tensor.shape(), &out));
  const UnalignedSpan<float> values = tensor.elements<float>();
  ForPieces(values.size(), num_threads, [&](size_t start, size_t end) {
    alignas(64) float block[kBlock];
    alignas(64) float result[kBlock];
    Multiversion([&]() PF_INLINE {
      for (; start < end; start += kBlock) {
        const size_t count = LoadBlock(values, start, block);
        RoundBlock(block, buckets, result);
        std::memcpy(out + start * sizeof(float), result, count * sizeof(float));
      }
    });
  });
  return rounded;
}

absl::StatusOr<int64_t> Round(Graph* graph, const Params& params, PassContext* context) {
  int64_t rewrites = 0;
  for (Node* node : graph->Nodes()) {
    PF_ASSIGN_OR_RETURN(const std::optional<int64_t> elements, FloatConstantSize(*node));
    if (!elements.has_value()) continue;
    if (*elements < kMinElements) {
      context->MissIfWanted(*node, "has ", *elements, " elements, expected at least ", kMinElements);
      continue;
    }
    PF_ASSIGN_OR_RETURN(const Tensor tensor, ConstValue(*node));
    const FloatRange range = FindRange(tensor.elements<float>(), context->num_threads);
    if (!range.any_finite || range.min == range.max) {
      context->MissIfWanted(*node, "has a single value already");
      continue;
    }
    const Buckets buckets = {range.min, (range.max - range.min) / params.num_steps,
                             static_cast<float>(params.num_steps - 1)};
    if (!std::isfinite(buckets.width) || buckets.width < __FLT_MIN__) {
      context->MissIfWanted(*node, "its range from ", range.min, " to ", range.max, " cannot be divided into ",
                            params.num_steps, " steps in float");
      continue;
    }
    PF_ASSIGN_OR_RETURN(Tensor rounded, RoundTensor(tensor, buckets, context->num_threads));
    if (rounded == tensor || !context->AllowRewrite(*node)) continue;
    node->SetAttr("value", AttrValue::OfTensor(std::move(rounded)));
    ++rewrites;
  }
  return rewrites;
}

}  // namespace

// Divides the range of each float constant into buckets of equal width and puts every value into the middle of its
// bucket.
//
//   Const n [0 0.1 0.9 1]   =>   Const n [0 0.25 0.75 0.75]     (num_steps=2)
//
// The file keeps its size, but has few distinct values and compresses better. Zeros, NaN and infinities stay exactly.
// Left alone: other types, fewer than 16 elements, a single value, a range that float cannot divide.
DEFINE_PASS(round_weights) {
  return Pass<Params>("Rounds float constants to few distinct values, so that the file compresses better.")
      .Param("num_steps", &Params::num_steps, "How many distinct values other than zero a constant keeps.",
             Between(1, 1 << 24))
      .Numerics(Changes("weights are rounded"))
      .Run(Round);
}

}  // namespace permafrost
