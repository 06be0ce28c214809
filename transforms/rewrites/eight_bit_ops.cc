// Converts single nodes to their eight-bit forms.
#include "transforms/rewrites/eight_bit_ops.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/ops/op_schema.h"
#include "transforms/pipeline/thread_team.h"
#include "transforms/rewrites/float_ranges.h"

namespace permafrost {
namespace {

// The order of the rows is irrelevant.
const std::vector<EightBitForm>& Forms() {
  static const auto* const forms = new std::vector<EightBitForm>{
      {ops::kAdd, ops::kQuantizedAdd, {}, {"T1", "T2"}, "Toutput"},
      {ops::kAvgPool, ops::kQuantizedAvgPool, {"ksize", "strides", "padding"}, {"T"}, ""},
      {ops::kBiasAdd, ops::kQuantizedBiasAdd, {}, {"T1", "T2"}, "out_type"},
      {ops::kConcat, ops::kQuantizedConcat, {"N"}, {"T"}, "", /*raw_input=*/0, /*ranges_by_kind=*/true},
      {ops::kConv2D, ops::kQuantizedConv2D, {"strides", "padding"}, {"Tinput", "Tfilter"}, "out_type"},
      {ops::kMatMul, ops::kQuantizedMatMul, {"transpose_a", "transpose_b"}, {"T1", "T2"}, "Toutput"},
      {ops::kMaxPool, ops::kQuantizedMaxPool, {"ksize", "strides", "padding"}, {"T"}, ""},
      {ops::kMul, ops::kQuantizedMul, {}, {"T1", "T2"}, "Toutput"},
      {ops::kRelu, ops::kQuantizedRelu, {}, {"Tinput"}, ""},
      {ops::kRelu6, ops::kQuantizedRelu6, {}, {"Tinput"}, ""},
      {ops::kReshape, ops::kQuantizedReshape, {}, {"T"}, "", /*raw_input=*/1},
      {ops::kResizeBilinear, ops::kQuantizedResizeBilinear, {"align_corners"}, {"T"}, "", /*raw_input=*/1},
  };
  return *forms;
}

// Returns the attribute of the node, or its default. Returns InvalidArgument if there is neither.
absl::StatusOr<AttrValue> AttrOrDefault(const Node& node, absl::string_view key) {
  const AttrValue* value = node.FindAttr(key);
  if (value == nullptr) value = DefaultAttr(node.op(), key);
  if (value == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": attr '", key, "' is missing"));
  }
  return *value;
}

bool AreOnes(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t value) { return value == 1; });
}

// Returns the attribute that the eight-bit form does not support; empty if it supports all.
absl::StatusOr<std::string> AttrObjection(const Node& node) {
  const OpSchema* schema = FindSchema(node.op());
  const auto has = [&](absl::string_view key) { return schema->FindAttr(key) != nullptr; };
  if (has("data_format")) {
    PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(node, "data_format"));
    if (format != "NHWC") return absl::StrCat("its data_format is ", format, ", expected NHWC");
  }
  if (has("padding")) {
    PF_ASSIGN_OR_RETURN(const std::string padding, StringAttr(node, "padding"));
    if (padding != "SAME" && padding != "VALID") {
      return absl::StrCat("its padding is ", padding, ", expected SAME or VALID: put a Pad before it instead");
    }
  }
  if (node.op() == ops::kConv2D) {
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, IntListAttr(node, "dilations"));
    if (!AreOnes(dilations)) return "it has dilations";
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, IntListAttr(node, "strides"));
    if (strides.size() != 4 || strides[0] != 1 || strides[3] != 1 || strides[1] != strides[2]) {
      return "its strides differ along height and width";
    }
  }
  if (node.op() == ops::kAvgPool) {
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> ksize, IntListAttr(node, "ksize"));
    if (ksize.size() != 4 || ksize[0] != 1 || ksize[3] != 1) return "it pools over the batch or the channels";
  }
  return "";
}

// Returns true if the kernels of eight-bit additions and products broadcast correctly. They repeat the smaller operand
// in element order, whatever its shape: correct if it has one element, or if its shape is a suffix of the other's.
// Otherwise results are silently wrong, and the kernels read out of bounds.
bool RepeatsAtTheEnd(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return true;
  // `small` repeats along `large`.
  const auto repeats = [](const Shape& small, const Shape& large) {
    bool must_be_one = false;
    for (int back = 1; back <= small.rank(); ++back) {
      const int64_t dim = small.dim(small.rank() - back);
      const int64_t other = back <= large.rank() ? large.dim(large.rank() - back) : 1;
      if (must_be_one && dim != 1) return false;
      if (dim != other) {
        if (dim != 1 && dim != kUnknownDim && other != kUnknownDim) return false;
        must_be_one = dim == 1;
      }
    }
    return true;
  };
  return repeats(a, b) || repeats(b, a);
}

// Padding with infinity, as in a PadV2 before a MaxPool, has no finite range, and neither has its result.
std::string PaddingObjection(const Node& node, const EightBitForm& form) {
  for (int i = 0; i < node.num_data_inputs(); ++i) {
    if (i == form.raw_input) continue;
    const Node* pad = node.input(i).node;
    for (int reads = 0; reads < kMaxReads && pad->op() == ops::kIdentity && pad->num_data_inputs() == 1; ++reads) {
      pad = pad->input(0).node;
    }
    if (pad->op() != ops::kPadV2 || pad->num_data_inputs() != 3) continue;
    const Node* constant = ConstantBehind(pad->input(2));
    const absl::StatusOr<Tensor> value = constant == nullptr ? Tensor() : ConstValue(*constant);
    if (!value.ok() || value->dtype() != DType::kFloat || value->num_elements() != 1) continue;
    const float padded = value->elements<float>()[0];
    if (!std::isfinite(padded)) return absl::StrCat("it reads ", pad->Describe(), ", which pads with ", padded);
  }
  return "";
}

}  // namespace

const EightBitForm* FindEightBitForm(Op op) {
  for (const EightBitForm& form : Forms()) {
    if (form.op == op) return &form;
  }
  return nullptr;
}

absl::string_view WayToEightBits(Op op) {
  if (op == ops::kConcatV2) return "run backport_concatv2 first";
  if (op == ops::kAddV2) return "run rename_op(old_op_name=AddV2, new_op_name=Add) first";
  for (const Op norm :
       {ops::kFusedBatchNorm, ops::kFusedBatchNormV2, ops::kFusedBatchNormV3, ops::kBatchNormWithGlobalNormalization}) {
    if (op == norm) return "run fold_old_batch_norms first";
  }
  return "";
}

EightBitConverter::EightBitConverter(Graph* graph, std::optional<FloatBounds> fallback, const ShapeMap& shapes,
                                     PassContext* context)
    : graph_(graph),
      fallback_(fallback),
      shapes_(shapes),
      context_(context),
      has_loops_(HasLoops(*graph)),
      quantizer_(graph) {}

absl::StatusOr<bool> EightBitConverter::Convert(Node* node, const EightBitForm& form) {
  PF_ASSIGN_OR_RETURN(const bool is_float, IsFloat(*node, form));
  if (!is_float) return false;
  PF_ASSIGN_OR_RETURN(const std::string objection, Objection(*node, form));
  if (!objection.empty()) {
    context_->MissIfWanted(*node, objection);
    return false;
  }
  const RewriteScope rewrite(context_, graph_, {node});
  if (!rewrite) return false;
  PF_ASSIGN_OR_RETURN(Node * main, AddMain(node, form));
  if (!form.output_type.empty()) {
    PF_ASSIGN_OR_RETURN(main, Narrow(node, main));
  }
  BecomeDequantize(graph_, node, CodedOutputOf(main));
  return true;
}

// Returns true if every output, and every input to be quantised, is float.
absl::StatusOr<bool> EightBitConverter::IsFloat(const Node& node, const EightBitForm& form) const {
  PF_ASSIGN_OR_RETURN(const std::vector<DType> inputs, InputTypes(node));
  PF_ASSIGN_OR_RETURN(const std::vector<DType> outputs, OutputTypes(node));
  if (static_cast<size_t>(node.num_data_inputs()) != inputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (static_cast<int>(i) != form.raw_input && inputs[i] != DType::kFloat) return false;
  }
  return std::all_of(outputs.begin(), outputs.end(), [](DType type) { return type == DType::kFloat; });
}

absl::StatusOr<std::string> EightBitConverter::Objection(const Node& node, const EightBitForm& form) {
  if (graph_->IsInput(&node)) return "is a declared input";
  PF_ASSIGN_OR_RETURN(std::string objection, AttrObjection(node));
  if (objection.empty()) objection = ShapeObjection(node);
  if (objection.empty()) objection = ConstantObjection(node, form);
  if (objection.empty()) objection = PaddingObjection(node, form);
  return objection;
}

std::string EightBitConverter::ShapeObjection(const Node& node) const {
  if (node.op() == ops::kAdd || node.op() == ops::kMul) {
    const Shape a = shapes_.Of(node.input(0)), b = shapes_.Of(node.input(1));
    if (!RepeatsAtTheEnd(a, b)) {
      return absl::StrCat("its operands are ", a.ToString(), " and ", b.ToString(),
                          ", and in eight bits only a last part of a shape may repeat");
    }
  }
  if (node.op() == ops::kConv2D) {
    const Shape data = shapes_.Of(node.input(0)), filter = shapes_.Of(node.input(1));
    if (data.has_rank() && filter.has_rank() && data.rank() == 4 && filter.rank() == 4 && data.dim(3) != kUnknownDim &&
        filter.dim(2) != kUnknownDim && data.dim(3) != filter.dim(2)) {
      return "it convolves in groups of channels";
    }
  }
  if (node.op() == ops::kConcat) {
    if (const Node* axis = ConstantBehind(node.input(0)); axis != nullptr) {
      const absl::StatusOr<Tensor> tensor = ConstValue(*axis);
      const absl::StatusOr<std::vector<int64_t>> values = tensor.ok() ? IntegerValues(*tensor) : tensor.status();
      if (values.ok() && values->size() == 1 && values->front() < 0) {
        return absl::StrCat("its axis is ", values->front(), ", expected one counted from the front");
      }
    }
  }
  return "";
}

// A range exists only if there are values and none is NaN or infinite.
std::string EightBitConverter::ConstantObjection(const Node& node, const EightBitForm& form) {
  ThreadTeam team(context_->num_threads);
  for (int i = 0; i < node.num_data_inputs(); ++i) {
    if (i == form.raw_input) continue;
    const Node* constant = ConstantBehind(node.input(i));
    if (constant == nullptr) continue;
    const auto [entry, is_new] = constants_.try_emplace(constant);
    if (is_new) {
      const absl::StatusOr<Tensor> value = ConstValue(*constant);
      if (!value.ok() || value->dtype() != DType::kFloat) {
        entry->second = "which cannot be read as float";
      } else if (value->num_elements() == 0) {
        entry->second = "which has no elements";
      } else if (!FindRange(value->elements<float>(), &team).all_finite) {
        entry->second = "which holds NaN or infinity";
      }
    }
    if (!entry->second.empty()) return absl::StrCat("it reads ", constant->Describe(), ", ", entry->second);
  }
  return "";
}

absl::StatusOr<Node*> EightBitConverter::AddMain(Node* node, const EightBitForm& form) {
  std::vector<std::pair<absl::string_view, AttrValue>> copied;
  for (const absl::string_view key : form.copied) {
    PF_ASSIGN_OR_RETURN(AttrValue value, AttrOrDefault(*node, key));
    copied.emplace_back(key, std::move(value));
  }
  std::vector<EightBitTensor> coded;
  std::vector<TensorRef> inputs;
  for (int i = 0; i < node->num_data_inputs(); ++i) {
    if (i == form.raw_input) {
      inputs.push_back(node->input(i));
      continue;
    }
    PF_ASSIGN_OR_RETURN(coded.emplace_back(), quantizer_.Quantize(node->input(i), node));
    inputs.push_back(coded.back().codes);
  }
  if (form.ranges_by_kind) {
    for (const EightBitTensor& tensor : coded) inputs.push_back(tensor.min);
    for (const EightBitTensor& tensor : coded) inputs.push_back(tensor.max);
  } else {
    for (const EightBitTensor& tensor : coded) {
      inputs.push_back(tensor.min);
      inputs.push_back(tensor.max);
    }
  }
  PF_ASSIGN_OR_RETURN(Node * main, AddNodeAt(graph_, absl::StrCat(node->name(), "/eightbit"), form.quantized, node));
  for (auto& [key, value] : copied) main->SetAttr(key, std::move(value));
  for (const absl::string_view key : form.input_types) main->SetAttr(key, AttrValue::Type(DType::kQUint8));
  if (!form.output_type.empty()) main->SetAttr(form.output_type, AttrValue::Type(DType::kQInt32));
  if (node->op() == ops::kReshape) {
    PF_ASSIGN_OR_RETURN(const DType shape_type, TypeAttr(*node, "Tshape"));
    if (shape_type != DType::kInt32) main->SetAttr("Tshape", AttrValue::Type(shape_type));
  }
  if (node->op() == ops::kResizeBilinear) {
    PF_ASSIGN_OR_RETURN(const bool is_half_pixel, BoolAttr(*node, "half_pixel_centers"));
    if (is_half_pixel) main->SetAttr("half_pixel_centers", AttrValue::Bool(true));
  }
  for (const TensorRef& input : inputs) graph_->AddInput(main, input);
  for (int i = node->num_data_inputs(); i < node->num_inputs(); ++i) {
    graph_->AddControlInput(main, node->input(i).node);
  }
  return main;
}

// Requantises the 32-bit result of `main` to eight bits.
absl::StatusOr<Node*> EightBitConverter::Narrow(Node* node, Node* main) {
  const EightBitTensor wide = CodedOutputOf(main);
  const std::string prefix = absl::StrCat(node->name(), "/eightbit/");
  TensorRef min, max;
  if (fallback_.has_value()) {
    Node* wait_for = has_loops_ ? main : nullptr;
    PF_ASSIGN_OR_RETURN(min.node,
                        AddScalarAt(graph_, absl::StrCat(prefix, "fallback_min"), fallback_->min, node, wait_for));
    PF_ASSIGN_OR_RETURN(max.node,
                        AddScalarAt(graph_, absl::StrCat(prefix, "fallback_max"), fallback_->max, node, wait_for));
  } else {
    PF_ASSIGN_OR_RETURN(Node * range,
                        AddNodeAt(graph_, absl::StrCat(prefix, "requant_range"), ops::kRequantizationRange, node));
    range->SetAttr("Tinput", AttrValue::Type(DType::kQInt32));
    for (const TensorRef& input : {wide.codes, wide.min, wide.max}) graph_->AddInput(range, input);
    min = {range, 0};
    max = {range, 1};
  }
  return AddRequantize(graph_, absl::StrCat(prefix, "requantize"), wide, min, max, node);
}

}  // namespace permafrost
