// Rounds float constants to few values, so that the file compresses better.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/pipeline/thread_team.h"
#include "transforms/rewrites/channel_rows.h"
#include "transforms/rewrites/compact_constants.h"
#include "transforms/rewrites/float_constants.h"
#include "transforms/rewrites/float_ranges.h"
#include "transforms/rewrites/weight_channels.h"

namespace permafrost {
namespace {

struct Params {
  int32_t num_steps = 256;
  bool per_channel = false;
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

void RoundPiece(UnalignedSpan<float> values, size_t start, size_t end, const Buckets& buckets, char* out) {
  alignas(64) float block[kBlock];
  alignas(64) float result[kBlock];
  Multiversion([&]() PF_INLINE {
    for (; start < end; start += kBlock) {
      const size_t count = LoadBlock(values, start, block);
      RoundBlock(block, buckets, result);
      std::memcpy(out + start * sizeof(float), result, count * sizeof(float));
    }
  });
}

absl::StatusOr<Tensor> RoundTensor(const Tensor& tensor, const Buckets& buckets, ThreadTeam* team) {
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor rounded, Tensor::Allocate(DType::kFloat, tensor.shape(), &out));
  const UnalignedSpan<float> values = tensor.elements<float>();
  team->ForPieces(values.size(), [&](size_t start, size_t end) { RoundPiece(values, start, end, buckets, out); });
  return rounded;
}

// Nothing, and why, when the range of `values` is not to be divided.
std::optional<Buckets> BucketsOf(UnalignedSpan<float> values, int32_t num_steps, ThreadTeam* team, std::string* why) {
  const FloatRange range = FindRange(values, team);
  if (!range.any_finite || range.min == range.max) {
    *why = "has a single value already";
    return std::nullopt;
  }
  const Buckets buckets = {range.min, (range.max - range.min) / num_steps, static_cast<float>(num_steps - 1)};
  if (std::isfinite(buckets.width) && buckets.width >= __FLT_MIN__) return buckets;
  *why = absl::StrCat("its range from ", range.min, " to ", range.max, " cannot be divided into ", num_steps,
                      " steps in float");
  return std::nullopt;
}

// Each channel by itself; one that cannot be divided stays.
absl::StatusOr<Tensor> RoundChannels(const Tensor& tensor, Channels channels, int32_t num_steps, ThreadTeam* team) {
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor rounded, Tensor::Allocate(DType::kFloat, tensor.shape(), &out));
  const ChannelRows<float> rows(tensor.elements<float>(), channels);
  rows.ForEach(team, out, [&](int64_t, const float* row, float* result) {
    ThreadTeam alone(1);
    std::string why;
    const UnalignedSpan<float> values(reinterpret_cast<const char*>(row), rows.size());
    const std::optional<Buckets> buckets = BucketsOf(values, num_steps, &alone, &why);
    if (!buckets.has_value()) {
      std::copy(row, row + rows.size(), result);
      return;
    }
    RoundPiece(values, 0, rows.size(), *buckets, reinterpret_cast<char*>(result));
  });
  return rounded;
}

absl::StatusOr<int64_t> Round(Graph* graph, const Params& params, PassContext* context) {
  int64_t rewrites = 0;
  ThreadTeam team(context->num_threads);
  for (Node* node : graph->Nodes()) {
    PF_ASSIGN_OR_RETURN(const std::optional<int64_t> elements, FloatConstantSize(*node));
    if (!elements.has_value() || *elements < kMinElements || IsRangeOfDequantize(*node)) continue;
    PF_ASSIGN_OR_RETURN(const Tensor tensor, ConstValue(*node));
    const int dim = params.per_channel ? FindWeightChannels(*node, tensor.shape()).dim : -1;
    Tensor rounded;
    if (dim >= 0) {
      PF_ASSIGN_OR_RETURN(rounded, RoundChannels(tensor, ChannelsAlong(tensor.shape(), dim), params.num_steps, &team));
    } else {
      std::string why;
      const std::optional<Buckets> buckets = BucketsOf(tensor.elements<float>(), params.num_steps, &team, &why);
      if (!buckets.has_value()) {
        context->MissIfWanted(*node, why);
        continue;
      }
      PF_ASSIGN_OR_RETURN(rounded, RoundTensor(tensor, *buckets, &team));
    }
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
// per_channel=true divides the range of each output channel of a convolution or matrix product, of each row of a table,
// of other constants along the last dimension: as much is lost with fewer steps, and a channel of small weights next to
// one of large ones is not lost. Channels of fewer than 8 elements are divided together.
//
// Left alone: other types, fewer than 16 elements, a single value, a range that float cannot divide, the ranges of a
// Dequantize.
DEFINE_PASS(round_weights) {
  return Pass<Params>("Rounds float constants to few distinct values, so that the file compresses better.")
      .Why(
          "A zip or an app store compresses the file by itself, and few distinct values compress well, without any "
          "change to the graph or its kernels.")
      .Param("num_steps", &Params::num_steps, "How many distinct values other than zero a constant keeps.",
             Between(1, 1 << 24))
      .Param("per_channel", &Params::per_channel, "Divides the range of each output channel instead of the tensor's.")
      .Numerics(Changes("weights are rounded"))
      .Run(Round);
}

}  // namespace permafrost
