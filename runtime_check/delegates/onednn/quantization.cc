// Quantises weights once per model.
#include "runtime_check/delegates/onednn/quantization.h"

#include <algorithm>
#include <cmath>

#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/loops.h"

namespace permafrost {
namespace onednn {
namespace {

// Returns, for each tap, the fraction of the output positions for which it is inside the image.
std::vector<double> PartsInside(const WindowAxis& axis) {
  std::vector<double> parts(static_cast<size_t>(axis.taps), 0.0);
  for (int64_t position = 0; position < axis.output; ++position) {
    int64_t begin, end;
    axis.TapsInside(position, &begin, &end);
    for (int64_t tap = begin; tap < end; ++tap) parts[static_cast<size_t>(tap)] += 1.0;
  }
  for (double& part : parts) part /= static_cast<double>(std::max<int64_t>(1, axis.output));
  return parts;
}

}  // namespace

StorageType EightBitType(const TensorStatistics& statistics) {
  const bool is_signed = statistics.least < 0;
  // For zeros any scale is correct.
  const float bound = statistics.bound > 0 ? statistics.bound : 1.0f;
  return {is_signed ? Element::kS8 : Element::kU8, std::max(bound / (is_signed ? 127.0f : 255.0f), 1e-30f)};
}

std::vector<float> ScaledWeights(const WeightedOp& op) {
  std::vector<float> weights = FloatsOf(op.weights);
  if (op.scale.empty()) return weights;
  const OutputsOf output_of(op);
  float* at = weights.data();
  for (float* const end = at + weights.size(); at < end;) {
    if (output_of.inner == 1) {
      for (size_t o = 0; o < output_of.outputs; ++o) *at++ *= op.scale[o];
      continue;
    }
    for (size_t o = 0; o < output_of.outputs; ++o) {
      for (size_t i = 0; i < output_of.inner; ++i) *at++ *= op.scale[o];
    }
  }
  return weights;
}

absl::StatusOr<EightBitWeights> QuantizeWeights(const WeightedOp& op, const std::vector<float>& weights) {
  constexpr float kLast = 127.0f;
  constexpr float kParts[] = {1.0f, 0.95f, 0.9f, 0.85f, 0.8f, 0.7f};
  if (HasNonFinite(reinterpret_cast<const char*>(weights.data()), static_cast<int64_t>(weights.size()))) {
    return absl::UnimplementedError("nonfinite weights cannot be quantised");
  }
  const OutputsOf output_of(op);
  std::vector<float> most(output_of.outputs, 0.0f);
  for (size_t i = 0; i < weights.size(); ++i) {
    float& of_channel = most[output_of(i)];
    of_channel = std::max(of_channel, std::fabs(weights[i]));
  }
  EightBitWeights result;
  result.scales.assign(output_of.outputs, 1.0f);
  const auto rounded = [&](float weight, float scale) {
    return std::min(kLast, std::max(-kLast, std::nearbyint(weight / scale)));
  };
  std::vector<double> least(output_of.outputs, 0.0);
  for (const float part : kParts) {
    std::vector<double> errors(output_of.outputs, 0.0);
    std::vector<float> scales(output_of.outputs);
    for (size_t o = 0; o < scales.size(); ++o) scales[o] = std::max(most[o] * part / kLast, 1e-30f);
    for (size_t i = 0; i < weights.size(); ++i) {
      const size_t o = output_of(i);
      const double error = static_cast<double>(rounded(weights[i], scales[o])) * scales[o] - weights[i];
      errors[o] += error * error;
    }
    for (size_t o = 0; o < scales.size(); ++o) {
      if (part != kParts[0] && errors[o] >= least[o]) continue;
      least[o] = errors[o];
      result.scales[o] = scales[o];
    }
  }
  result.values.resize(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    result.values[i] = static_cast<int8_t>(rounded(weights[i], result.scales[output_of(i)]));
  }
  return result;
}

void CorrectBias(const std::vector<float>& exact, const std::vector<float>& actual, WeightedOp* op) {
  const ParsedNode& parsed = op->parsed;
  const WindowGeometry& window = parsed.window;
  const auto outputs = static_cast<size_t>(op->output_channels());
  const bool is_product = parsed.kind == NodeKind::kMatMul;
  const size_t inputs = static_cast<size_t>(is_product ? parsed.depth : window.input_channels);
  if (op->means.size() != inputs || parsed.kind == NodeKind::kTransposedConvolution) return;
  std::vector<double> added(outputs, 0.0);
  if (is_product) {
    for (size_t i = 0; i < exact.size(); ++i) {
      const size_t o = parsed.transpose_b ? i / inputs : i % outputs;
      const size_t c = parsed.transpose_b ? i % inputs : i / outputs;
      added[o] += (static_cast<double>(actual[i]) - exact[i]) * op->means[c];
    }
  } else {
    const std::vector<double> rows = PartsInside(window.y), columns = PartsInside(window.x);
    const auto groups = static_cast<size_t>(window.groups);
    const size_t inputs_each = inputs / groups, outputs_each = outputs / groups;
    size_t i = 0;
    for (const double row : rows) {
      for (const double column : columns) {
        for (size_t c = 0; c < inputs_each; ++c) {
          for (size_t o = 0; o < outputs; ++o, ++i) {
            const double mean = op->means[o / outputs_each * inputs_each + c];
            added[o] += (static_cast<double>(actual[i]) - exact[i]) * mean * row * column;
          }
        }
      }
    }
  }
  op->bias.resize(outputs, 0.0f);
  for (size_t o = 0; o < outputs; ++o) {
    if (std::isfinite(added[o])) op->bias[o] -= static_cast<float>(added[o]);
  }
}

absl::StatusOr<EightBitWeights> QuantizeAndCorrect(WeightedOp* op) {
  const std::vector<float> exact = ScaledWeights(*op);
  PF_ASSIGN_OR_RETURN(EightBitWeights weights, QuantizeWeights(*op, exact));
  const OutputsOf output_of(*op);
  std::vector<float> actual(exact.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    actual[i] = static_cast<float>(weights.values[i]) * weights.scales[output_of(i)];
  }
  CorrectBias(exact, actual, op);
  return weights;
}

std::vector<float> RoundedToBf16(const std::vector<float>& values) {
  std::vector<uint16_t> narrow(values.size());
  std::vector<float> rounded(values.size());
  const auto count = static_cast<int64_t>(values.size());
  ToBf16(count, values.data(), narrow.data());
  FromBf16(count, narrow.data(), rounded.data());
  return rounded;
}

}  // namespace onednn
}  // namespace permafrost
