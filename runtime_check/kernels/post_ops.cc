// Reads and applies the post-ops of the _Fused ops.
#include "runtime_check/kernels/post_ops.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/kernels/channel_rows.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

struct NamedActivation {
  const char* name;
  PostOps::Activation activation;
};
constexpr NamedActivation kActivations[] = {
    {"Relu", PostOps::Activation::kRelu}, {"Relu6", PostOps::Activation::kRelu6},
    {"Elu", PostOps::Activation::kElu},   {"LeakyRelu", PostOps::Activation::kLeakyRelu},
    {"Tanh", PostOps::Activation::kTanh}, {"Sigmoid", PostOps::Activation::kSigmoid},
};

// Parses the list of fused ops. Returns false for an unsupported list.
bool Parse(const std::vector<std::string>& names, PostOps* ops) {
  if (names.empty() || names.size() > 2) return false;
  if (names[0] == "BiasAdd") {
    ops->scaling = PostOps::Scaling::kBias;
  } else if (names[0] == "FusedBatchNorm") {
    ops->scaling = PostOps::Scaling::kBatchNorm;
  } else {
    return false;
  }
  if (names.size() == 1) return true;
  for (const NamedActivation& known : kActivations) {
    if (names[1] == known.name) ops->activation = known.activation;
  }
  return ops->activation != PostOps::Activation::kNone;
}

}  // namespace

absl::StatusOr<PostOps> ReadPostOps(PrepareContext* context, int first_arg, int64_t channels, ScratchParts* parts) {
  PostOps ops;
  if constexpr (!selection::kHoldsFusedOps) return ops;
  const Node& node = context->node();
  const OpSchema* schema = FindSchema(node.op());
  if (schema == nullptr || schema->FindAttr("fused_ops") == nullptr) return ops;
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> names, StringListAttr(node, "fused_ops"));
  if (!Parse(names, &ops)) {
    return absl::UnimplementedError(
        absl::StrCat("attr 'fused_ops' is '", absl::StrJoin(names, ","),
                     "', expected BiasAdd or FusedBatchNorm, and then Relu, Relu6, Elu, LeakyRelu, Tanh, Sigmoid or "
                     "nothing"));
  }
  ops.first_arg = first_arg;
  ops.channels = channels;
  PF_ASSIGN_OR_RETURN(ops.epsilon, FloatAttr(node, "epsilon"));
  PF_ASSIGN_OR_RETURN(ops.alpha, FloatAttr(node, "leakyrelu_alpha"));
  const bool is_batch_norm = ops.scaling == PostOps::Scaling::kBatchNorm;
  const int expected_inputs = first_arg + (is_batch_norm ? 4 : 1);
  if (context->num_inputs() != expected_inputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", context->num_inputs(), " inputs, expected ", expected_inputs, " with ", names[0]));
  }
  for (int i = first_arg; i < expected_inputs; ++i) {
    const DType output_type = context->output_type(0);
    const DType expected_type = is_batch_norm && output_type != DType::kDouble ? DType::kFloat : output_type;
    if (context->input_type(i) != expected_type) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the type ", DTypeName(context->input_type(i)),
                                                     ", expected ", DTypeName(expected_type)));
    }
    PF_RETURN_IF_ERROR(RequireRank(context, i, 1));
    if (context->input_shape(i).dim(0) != channels) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", context->input_shape(i).dim(0),
                                                     " elements, expected one for each of ", channels, " channels"));
    }
  }
  if (is_batch_norm && context->output_type(0) != DType::kDouble) {
    if (context->output_type(0) != DType::kFloat) {
      return absl::UnimplementedError(
          absl::StrCat("a batch norm on ", DTypeName(context->output_type(0)), ", expected float"));
    }
    PF_ASSIGN_OR_RETURN(ops.factor_part, parts->Add(channels));
  }
  return ops;
}

BoundPostOps::BoundPostOps(const PostOps& ops, ComputeContext* context) : ops_(ops) {
  if (ops.is_empty()) return;
  if (ops.scaling == PostOps::Scaling::kBias) bias_ = context->input_bytes(ops.first_arg);
  if (ops.scaling != PostOps::Scaling::kBatchNorm) return;
  if (context->output_at(0).dtype == DType::kDouble) {
    for (int i = 0; i < 4; ++i) doubles_[i] = context->input<double>(ops.first_arg + i);
    return;
  }
  const float* scale = context->input<float>(ops.first_arg);
  const float* variance = context->input<float>(ops.first_arg + 3);
  offset_ = context->input<float>(ops.first_arg + 1);
  mean_ = context->input<float>(ops.first_arg + 2);
  float* factor = ScratchAt(context, ops.factor_part);
  for (int64_t c = 0; c < ops.channels; ++c) factor[c] = scale[c] / std::sqrt(variance[c] + ops.epsilon);
  factor_ = factor;
}

void BoundPostOps::Activate(int64_t count, float* row) const {
  const InnerLoops& loops = BestInnerLoops();
  switch (ops_.activation) {
    case PostOps::Activation::kNone:
      return;
    case PostOps::Activation::kRelu:
      return loops.relu(count, row, row);
    case PostOps::Activation::kRelu6:
      return loops.relu6(count, row, row);
    case PostOps::Activation::kElu:
      for (int64_t i = 0; i < count; ++i) row[i] = row[i] < 0 ? std::expm1(row[i]) : row[i];
      return;
    case PostOps::Activation::kLeakyRelu:
      return loops.leaky_relu(count, ops_.alpha, row, row);
    case PostOps::Activation::kTanh:
      return loops.tanh(count, row, row);
    case PostOps::Activation::kSigmoid:
      return loops.sigmoid(count, row, row);
  }
}

void BoundPostOps::Apply(int64_t rows, int64_t first, int64_t count, float* data, int64_t stride) const {
  const InnerLoops& loops = BestInnerLoops();
  if (stride == count && ops_.scaling == PostOps::Scaling::kBias) {
    AddToRows(rows, count, data, static_cast<const float*>(bias_) + first, data);
    return Activate(rows * count, data);
  }
  for (int64_t r = 0; r < rows; ++r, data += stride) {
    if (ops_.scaling == PostOps::Scaling::kBias) {
      AddRow(count, data, static_cast<const float*>(bias_) + first, data);
    } else if (ops_.scaling == PostOps::Scaling::kBatchNorm) {
      loops.normalize(count, data, mean_ + first, factor_ + first, offset_ + first, data);
    }
    Activate(count, data);
  }
}

double BoundPostOps::Of(int64_t channel, double x) const {
  if (is_empty()) return x;
  if (ops_.scaling == PostOps::Scaling::kBias) {
    x += static_cast<const double*>(bias_)[channel];
  } else if (ops_.scaling == PostOps::Scaling::kBatchNorm) {
    const double scale = doubles_[0][channel], offset = doubles_[1][channel];
    const double mean = doubles_[2][channel], variance = doubles_[3][channel];
    x = (x - mean) * (scale / std::sqrt(variance + static_cast<double>(ops_.epsilon))) + offset;
  }
  switch (ops_.activation) {
    case PostOps::Activation::kNone:
      return x;
    case PostOps::Activation::kRelu:
      return x < 0 ? 0 : x;
    case PostOps::Activation::kRelu6:
      return x < 0 ? 0 : x > 6 ? 6 : x;
    case PostOps::Activation::kElu:
      return x < 0 ? std::expm1(x) : x;
    case PostOps::Activation::kLeakyRelu:
      return x < 0 ? x * static_cast<double>(ops_.alpha) : x;
    case PostOps::Activation::kTanh:
      return std::tanh(x);
    case PostOps::Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return x;
}

template <typename T>
void BoundPostOps::ApplyTo16Bits(int64_t rows, T* data) const {
  constexpr int64_t kBlock = 256;  // Floats per block, on the stack.
  float block[kBlock];
  const T* bias = static_cast<const T*>(bias_);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t first = 0; first < ops_.channels; first += kBlock) {
      const int64_t count = std::min(kBlock, ops_.channels - first);
      T* row = data + r * ops_.channels + first;
      for (int64_t i = 0; i < count; ++i) block[i] = ToFloat(row[i]) + ToFloat(bias[first + i]);
      Activate(count, block);
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<T, Half>) {
          row[i] = ToHalf(block[i]);
        } else {
          row[i] = ToBFloat16(block[i]);
        }
      }
    }
  }
}

void BoundPostOps::ApplyToRows(ComputeContext* context, DType dtype, int64_t rows, void* data) const {
  if (is_empty()) return;
  // 16K elements take longer than waking a thread.
  context->threads().ParallelFor(
      rows, 1 + (16 << 10) / std::max<int64_t>(1, ops_.channels), [&](int64_t begin, int64_t end) {
        if (dtype == DType::kFloat) {
          Apply(end - begin, 0, ops_.channels, static_cast<float*>(data) + begin * ops_.channels, ops_.channels);
        } else if (dtype == DType::kHalf) {
          ApplyTo16Bits(end - begin, static_cast<Half*>(data) + begin * ops_.channels);
        } else {
          ApplyTo16Bits(end - begin, static_cast<BFloat16*>(data) + begin * ops_.channels);
        }
      });
}

}  // namespace permafrost
