// Rounds float constants to few values, so that the file compresses better.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/pipeline/thread_team.h"
#include "transforms/rewrites/channel_rows.h"
#include "transforms/rewrites/compact_constants.h"
#include "transforms/rewrites/float_constants.h"
#include "transforms/rewrites/float_ranges.h"
#include "transforms/rewrites/function_bodies.h"
#include "transforms/rewrites/weight_channels.h"

namespace permafrost {
namespace {

struct Params {
  int32_t num_steps = 256;
  bool per_channel = false;
  std::string levels = "mean";
};

// Smaller constants are unchanged, as in TensorFlow.
constexpr int64_t kMinElements = 16;
// Means have a smaller error than midpoints of buckets, so buckets may be wider than a step for the same error.
// Measured with 256 steps on the models in ../shared: with this factor each compresses to less than with TensorFlow's
// algorithm (gzip by up to 14 %, zstd by up to 21 %) at about the same error.
constexpr double kWidening = 17.0 / 16.0;
// Levels with at most the significant bits of bfloat16 have two zero bytes.
constexpr int kFewestBits = 8;
constexpr int kFloatBits = 24;
// Rounding the levels may add this share to the mean square error.
constexpr double kMostAddedError = 1.0 / 16;
// With more buckets than this no means are computed: the table would be larger than most constants.
constexpr double kMostBuckets = 1 << 16;

bool IsFinite(float value) { return std::fabs(value) <= __FLT_MAX__; }

// Returns `value` rounded to the given number of significant bits, at most `largest` in magnitude.
float WithBits(double value, int bits, double largest) {
  int exponent = 0;
  const double scale = std::ldexp(1.0, bits);
  const double mantissa = std::frexp(value, &exponent) * scale;
  double rounded = std::ldexp(std::nearbyint(mantissa) / scale, exponent);
  if (std::fabs(rounded) > largest) rounded = std::ldexp(std::trunc(mantissa) / scale, exponent);
  return static_cast<float>(rounded);
}

// Buckets of equal width. If the range contains zero, zero is the midpoint of a bucket.
class Buckets {
 public:
  // REQUIRES: range.min < range.max.
  Buckets(const FloatRange& range, int32_t num_steps)
      : largest_(std::max(std::fabs(double{range.min}), std::fabs(double{range.max}))) {
    width_ = (double{range.max} - double{range.min}) / num_steps * kWidening;
    start_ = range.min;
    if (range.min <= 0 && range.max >= 0) {
      const double below_zero = std::floor(0.5 - range.min / width_);
      start_ = -(below_zero + 0.5) * width_;
      zero_ = below_zero;
    }
    last_ = std::floor((range.max - start_) / width_);
  }

  // Writes the rounded `values` to `out`: each becomes the level of its bucket; NaN and infinities are unchanged.
  void Round(UnalignedSpan<float> values, char* out) const {
    if (last_ >= kMostBuckets) {
      for (size_t i = 0; i < values.size(); ++i) {
        const double bucket = BucketOf(values[i]);
        Put(values[i], bucket == zero_ ? 0 : static_cast<float>(start_ + (bucket + 0.5) * width_), i, out);
      }
      return;
    }
    const double squares = FindBuckets(values, out);
    const std::vector<float> levels = FindLevels(values, out, squares);
    for (size_t i = 0; i < values.size(); ++i) Put(values[i], levels[BucketIn(out, i)], i, out);
  }

 private:
  // Returns the index of the bucket; arbitrary for a value that is not finite.
  double BucketOf(float value) const {
    const double bucket = (value - start_) / width_;
    return bucket > 0 ? std::floor(std::min(bucket, last_)) : 0;
  }

  // Writes the index of the bucket of each value to `out`, as a 32-bit integer in place of the result; last_ + 1 for a
  // value that is not finite. Returns the sum of the squares of the finite values.
  double FindBuckets(UnalignedSpan<float> values, char* out) const {
    constexpr size_t kStep = 16;  // Short, because a channel may have few values.
    const double start = start_, width = width_, last = last_;
    const int32_t none = static_cast<int32_t>(last_) + 1;
    alignas(64) float block[kBlock];
    alignas(64) int32_t buckets[kBlock];
    alignas(64) double squares[kStep] = {};
    Multiversion([&]() PF_INLINE {
      for (size_t first = 0; first < values.size(); first += kBlock) {
        const size_t count = LoadBlock(values, first, block);
        for (size_t step = 0; step < count; step += kStep) {
          // Three loops, because the compiler vectorises none that mixes types of different sizes with conditions.
          float finite[kStep];
          int32_t outside[kStep];
          for (size_t i = 0; i < kStep; ++i) {
            const float value = block[step + i];
            finite[i] = __builtin_fabsf(value) <= __FLT_MAX__ ? value : 0.0f;
            outside[i] = __builtin_fabsf(value) <= __FLT_MAX__ ? 0 : none;
          }
          for (size_t i = 0; i < kStep; ++i) {
            const double value = finite[i];
            const double bucket = (value - start) / width;
            const double below = bucket < last ? bucket : last;
            buckets[step + i] = static_cast<int32_t>(bucket > 0 ? below : 0.0);
            squares[i] += value * value;
          }
          for (size_t i = 0; i < kStep; ++i) buckets[step + i] = outside[i] != 0 ? outside[i] : buckets[step + i];
        }
        std::memcpy(out + first * sizeof(float), buckets, count * sizeof(int32_t));
      }
    });
    return std::accumulate(squares, squares + kStep, 0.0);
  }

  static size_t BucketIn(const char* out, size_t i) {
    int32_t bucket;
    std::memcpy(&bucket, out + i * sizeof(float), sizeof(bucket));
    return static_cast<size_t>(bucket);
  }

  static void Put(float value, float level, size_t i, char* out) {
    const float result = IsFinite(value) ? level : value;
    std::memcpy(out + i * sizeof(float), &result, sizeof(float));
  }

  // Returns the mean of each bucket, and zero for the bucket of zero, with as few bits as add little error. The last
  // level is that of values that are not finite. `buckets` was filled by FindBuckets, which returned `squares`.
  std::vector<float> FindLevels(UnalignedSpan<float> values, const char* buckets, double squares) const {
    const auto count = static_cast<size_t>(last_) + 1;
    struct Bucket {
      double sum = 0;
      int64_t members = 0;
    };
    std::vector<Bucket> found(count + 1);
    for (size_t i = 0; i < values.size(); ++i) {
      Bucket& bucket = found[BucketIn(buckets, i)];
      bucket.sum += values[i];
      ++bucket.members;
    }
    // The sum of the squares of value - middle.
    double error = squares;
    for (size_t i = 0; i < count; ++i) {
      const double middle = start_ + (static_cast<double>(i) + 0.5) * width_;
      error += middle * (static_cast<double>(found[i].members) * middle - 2 * found[i].sum);
    }
    std::vector<float> levels(count + 1, 0);
    for (int bits = kFewestBits; bits <= kFloatBits; ++bits) {
      double added = 0;
      for (size_t i = 0; i < count; ++i) {
        const auto members = static_cast<double>(found[i].members);
        if (members == 0 || static_cast<double>(i) == zero_) continue;
        const double mean = found[i].sum / members;
        levels[i] = WithBits(mean, bits, largest_);
        added += (levels[i] - mean) * (levels[i] - mean) * members;
      }
      if (added <= kMostAddedError * error) break;
    }
    return levels;
  }

  double largest_;
  double start_, width_;
  double zero_ = -1;  // The bucket of zero; -1 if the range does not contain it.
  double last_;
};

// Rounds with TensorFlow's float arithmetic: the maximum has a bucket of its own, zeros move, a tensor without positive
// values is divided up to the smallest normal float, and a constant tensor changes its value.
std::optional<std::string> RoundAsOriginal(UnalignedSpan<float> values, const FloatRange& range, int32_t num_steps,
                                           char* out) {
  float min = range.min, max = std::max(range.max, __FLT_MIN__);
  if (min == max) {
    if (std::fabs(min) < 1e-6f) {
      max = min + 1;
    } else if (min > 0) {
      max = 2 * min;
    } else {
      min = 2 * max;
    }
  }
  const float width = (max - min) / static_cast<float>(num_steps);
  if (!std::isfinite(width) || width < __FLT_MIN__) {
    return absl::StrCat("its range from ", min, " to ", max, " cannot be divided into ", num_steps, " steps in float");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    float value = values[i];
    if (IsFinite(value)) value = min + width * (std::floor((value - min) / width) + 0.5f);
    std::memcpy(out + i * sizeof(float), &value, sizeof(float));
  }
  return std::nullopt;
}

// Rounds `values` into `out`, or returns why they are unchanged.
std::optional<std::string> RoundValues(UnalignedSpan<float> values, const Params& params, char* out) {
  ThreadTeam alone(1);
  const FloatRange range = FindRange(values, &alone);
  if (!range.any_finite) return "has no finite value";
  if (params.levels == "original") return RoundAsOriginal(values, range, params.num_steps, out);
  if (range.min == range.max) return "has a single value already";
  Buckets(range, params.num_steps).Round(values, out);
  return std::nullopt;
}

struct Job {
  Node* node = nullptr;
  Tensor tensor;
  int channel_dim = -1;
  absl::Status status;
  std::optional<std::string> objection;
  Tensor rounded;
};

absl::Status RoundTensor(const Params& params, Job* job) {
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(job->rounded, Tensor::Allocate(DType::kFloat, job->tensor.shape(), &out));
  if (job->channel_dim < 0) {
    job->objection = RoundValues(job->tensor.elements<float>(), params, out);
    return absl::OkStatus();
  }
  ThreadTeam alone(1);
  const ChannelRows<float> rows(job->tensor.elements<float>(), ChannelsAlong(job->tensor.shape(), job->channel_dim));
  rows.ForEach(&alone, out, [&](int64_t, const float* row, float* result) {
    const UnalignedSpan<float> values(reinterpret_cast<const char*>(row), rows.size());
    // A channel that cannot be rounded is unchanged.
    if (RoundValues(values, params, reinterpret_cast<char*>(result)).has_value()) {
      std::copy(row, row + rows.size(), result);
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RoundIn(Graph* graph, const Params& params, PassContext* context) {
  std::vector<Job> jobs;
  for (Node* node : graph->Nodes()) {
    PF_ASSIGN_OR_RETURN(const std::optional<int64_t> elements, FloatConstantSize(*node));
    if (!elements.has_value() || *elements < kMinElements || IsQuantizationParameter(*node)) continue;
    Job job;
    job.node = node;
    PF_ASSIGN_OR_RETURN(job.tensor, ConstValue(*node));
    if (params.per_channel) job.channel_dim = FindWeightChannels(*node, job.tensor.shape()).dim;
    jobs.push_back(std::move(job));
  }
  ThreadTeam team(context->num_threads);
  team.ForEach(jobs.size(), [&](size_t i) { jobs[i].status = RoundTensor(params, &jobs[i]); });
  int64_t rewrites = 0;
  for (Job& job : jobs) {
    PF_RETURN_IF_ERROR(Annotate(job.status, job.node->Describe()));
    if (job.objection.has_value()) {
      context->MissIfWanted(*job.node, *job.objection);
      continue;
    }
    if (job.rounded == job.tensor || !context->AllowRewrite(*job.node)) continue;
    job.node->SetAttr("value", AttrValue::OfTensor(std::move(job.rounded)));
    ++rewrites;
  }
  return rewrites;
}

absl::StatusOr<int64_t> Round(Graph* graph, const Params& params, PassContext* context) {
  if (params.levels != "mean" && params.levels != "original") {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'levels' is '", params.levels, "', expected mean or original"));
  }
  PF_ASSIGN_OR_RETURN(const int64_t in_graph, RoundIn(graph, params, context));
  PF_ASSIGN_OR_RETURN(const int64_t in_bodies,
                      EditFunctionBodies(graph, context, [&](Graph* body) { return RoundIn(body, params, context); }));
  return in_graph + in_bodies;
}

}  // namespace

// Divides the range of each float constant into buckets of equal width and replaces each value by the mean of its
// bucket. The bucket around zero becomes zero.
//
//   Const n [0 0.1 0.9 1]   =>   Const n [0 0 0.95 0.95]     (num_steps=2)
//
// The size of the file does not change, but it has few distinct values and compresses better. Zeros, NaN and infinities
// are preserved, so that a sparse constant stays sparse. Means are rounded to the fewest bits that hardly add to the
// error (eight or a few more), because bytes of zeros compress as well. Buckets are 17/16 of a step wide, which offsets
// the gain in accuracy from using means: compared with levels=original, the arithmetic of the original tool, the error
// on each of the eleven models measured by the project is about the same, and the files are up to 14 % smaller with
// gzip and 21 % smaller with zstd.
//
// per_channel=true divides the range of each output channel of a convolution or matrix product, of each row of a table,
// and of other constants along the last dimension. It reaches the same error with fewer steps and preserves channels of
// small weights. Channels with fewer than 8 elements share a range. Constants in the bodies of functions that the graph
// may call are rounded as well.
//
// Leaves unchanged constants of other types, with fewer than 16 elements or with a single value, and parameters of
// quantisation.
DEFINE_PASS(round_weights) {
  return Pass<Params>("Rounds float constants to few distinct values, so that the file compresses better.")
      .Why(
          "Archives and app stores compress files, and few distinct values compress well, without any change to the "
          "graph or its kernels.")
      .Param("num_steps", &Params::num_steps, "Maximum number of distinct nonzero values of a constant.",
             Between(1, 1 << 24))
      .Param("per_channel", &Params::per_channel,
             "Divide the range of each output channel instead of the range of the tensor.")
      .Param("levels", &Params::levels,
             "Value of a bucket: mean (the mean of its members) or original (as in the original tool).")
      .Numerics(Changes("weights are rounded"))
      .Run(Round);
}

}  // namespace permafrost
