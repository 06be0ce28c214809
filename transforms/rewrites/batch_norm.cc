// Reads the parameters of batch norms.
#include "transforms/rewrites/batch_norm.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/matching/near_miss.h"

namespace permafrost {
namespace {

// Input indices and attributes of an op's parameters.
struct Layout {
  Op op;
  int gamma, beta, mean, variance;
  const char* epsilon;
};
constexpr Layout kLayouts[] = {
    {ops::kBatchNormWithGlobalNormalization, 4, 3, 1, 2, "variance_epsilon"},
    {ops::kFusedBatchNorm, 1, 2, 3, 4, "epsilon"},
    {ops::kFusedBatchNormV2, 1, 2, 3, 4, "epsilon"},
    {ops::kFusedBatchNormV3, 1, 2, 3, 4, "epsilon"},
};
constexpr int kNumParameters = 4;

const Layout* LayoutOf(Op op) {
  for (const Layout& layout : kLayouts) {
    if (layout.op == op) return &layout;
  }
  return nullptr;
}

absl::StatusOr<Tensor> Parameter(const Node& node, int index, absl::string_view name) {
  const Node* constant = ConstantBehind(node.input(index));
  if (constant == nullptr) {
    return NotMatched(NearMiss::Kind::kNotConstant, node.input(index),
                      absl::StrCat("its ", name, ", ", node.input(index).node->Describe(), ", is not constant"));
  }
  PF_ASSIGN_OR_RETURN(Tensor value, ConstValue(*constant));
  if (value.dtype() != DType::kFloat) {
    return absl::FailedPreconditionError(
        absl::StrCat("its ", name, " has the type ", DTypeName(value.dtype()), ", expected float"));
  }
  return value;
}

absl::Status CheckShape(const Node& node, const Tensor& value, const Tensor& mean, absl::string_view name) {
  if (value.shape().rank() == 1 && value.shape() == mean.shape()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(node.Describe(), ": its ", name, " has the shape ", value.shape().ToString(),
                   ", expected rank 1 and the length of the mean, ", mean.shape().ToString()));
}

absl::Status CheckUses(const Node& node) {
  for (const Use& use : node.uses()) {
    const TensorRef used = use.consumer->input(use.index);
    if (used.port > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("its output ", used.port, " is used by ", use.consumer->Describe()));
    }
  }
  for (const Endpoint& output : node.graph().outputs()) {
    if (output.node == &node && output.port > 0) {
      return absl::FailedPreconditionError(absl::StrCat("its output ", output.port, " is an output of the graph"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsBatchNorm(Op op) { return LayoutOf(op) != nullptr; }

absl::StatusOr<BatchNorm> BatchNormOf(const Node& node) {
  const Layout* layout = LayoutOf(node.op());
  if (layout == nullptr || node.num_data_inputs() != kNumParameters + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.Describe(), " has ", node.num_data_inputs(), " inputs, expected ", kNumParameters + 1));
  }
  PF_RETURN_IF_ERROR(CheckUses(node));
  bool has_gamma = true;
  BatchNorm norm;
  if (node.op() == ops::kBatchNormWithGlobalNormalization) {
    PF_ASSIGN_OR_RETURN(has_gamma, BoolAttr(node, "scale_after_normalization"));
  } else {
    PF_ASSIGN_OR_RETURN(const bool is_training, BoolAttr(node, "is_training"));
    if (is_training) return absl::FailedPreconditionError("it computes the statistics itself (is_training)");
    PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(node, "data_format"));
    if (format != "NHWC" && format != "NCHW") {
      return absl::FailedPreconditionError(absl::StrCat("it has the data_format '", format, "'"));
    }
    norm.channel_dim = format == "NHWC" ? 3 : 1;
  }
  PF_ASSIGN_OR_RETURN(const float epsilon, FloatAttr(node, layout->epsilon));
  PF_ASSIGN_OR_RETURN(const Tensor mean, Parameter(node, layout->mean, "mean"));
  PF_ASSIGN_OR_RETURN(const Tensor variance, Parameter(node, layout->variance, "variance"));
  PF_ASSIGN_OR_RETURN(const Tensor beta, Parameter(node, layout->beta, "beta"));
  PF_ASSIGN_OR_RETURN(const Tensor gamma, Parameter(node, layout->gamma, "gamma"));
  PF_RETURN_IF_ERROR(CheckShape(node, mean, mean, "mean"));
  PF_RETURN_IF_ERROR(CheckShape(node, variance, mean, "variance"));
  PF_RETURN_IF_ERROR(CheckShape(node, beta, mean, "beta"));
  PF_RETURN_IF_ERROR(CheckShape(node, gamma, mean, "gamma"));
  const size_t channels = static_cast<size_t>(mean.num_elements());
  norm.scale.resize(channels);
  norm.offset.resize(channels);
  for (size_t i = 0; i < channels; ++i) {
    float scale = 1.0f / std::sqrt(variance.elements<float>()[i] + epsilon);
    if (has_gamma) scale *= gamma.elements<float>()[i];
    norm.scale[i] = scale;
    norm.offset[i] = beta.elements<float>()[i] - mean.elements<float>()[i] * scale;
  }
  return norm;
}

std::vector<Node*> ParametersOf(const Node& node) {
  std::vector<Node*> parameters;
  for (int i = 1; i < node.num_data_inputs(); ++i) {
    Node* parameter = node.input(i).node;
    bool is_new = true;
    for (const Node* other : parameters) is_new &= other != parameter;
    if (is_new) parameters.push_back(parameter);
  }
  return parameters;
}

}  // namespace permafrost
