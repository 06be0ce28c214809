// Matches the float ops of quantised operators and replaces them by integer nodes.
#include "runtime_check/program/integer_fusion.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

// Further problems are counted but not listed.
constexpr size_t kMostProblems = 20;
// Maximum number of nodes of an elementwise formula. The longest that importers make, GELU with tanh, has 16.
constexpr int kMostFormulaNodes = 64;

constexpr absl::string_view kDynamic = "dynamic";

// A tensor of codes and the numbers that they represent.
struct Coded {
  TensorRef codes;
  DType dtype = DType::kInvalid;
  UniformScales scales;
};

// A fused activation, by its name in the attribute `activation`.
struct Activated {
  TensorRef value;
  absl::string_view activation = "NONE";
};

// The formulas of elementwise operators of one or two operands, as Formula() writes them, with 6 digits of constants.
// `function` is the attribute of _IntegerUnary or _IntegerBinary.
struct FormulaRow {
  absl::string_view formula;
  absl::string_view op;
  absl::string_view function;
};
constexpr FormulaRow kFormulas[] = {
    {"a", "_IntegerUnary", "Requantize"},
    {"Relu(a)", "_IntegerUnary", "Relu"},
    {"Relu6(a)", "_IntegerUnary", "Relu6"},
    {"Maximum(Minimum(a,1),-1)", "_IntegerUnary", "ReluN1To1"},
    {"Maximum(Minimum(a,1),0)", "_IntegerUnary", "Relu0To1"},
    {"LeakyRelu(a)", "_IntegerUnary", "LeakyRelu"},
    {"Sigmoid(a)", "_IntegerUnary", "Sigmoid"},
    {"Tanh(a)", "_IntegerUnary", "Tanh"},
    {"Elu(a)", "_IntegerUnary", "Elu"},
    {"Exp(a)", "_IntegerUnary", "Exp"},
    {"Log(a)", "_IntegerUnary", "Log"},
    {"Sqrt(a)", "_IntegerUnary", "Sqrt"},
    {"Rsqrt(a)", "_IntegerUnary", "Rsqrt"},
    {"Abs(a)", "_IntegerUnary", "Abs"},
    {"Neg(a)", "_IntegerUnary", "Neg"},
    {"Sin(a)", "_IntegerUnary", "Sin"},
    {"Cos(a)", "_IntegerUnary", "Cos"},
    {"Mul(a,Mul(Relu6(AddV2(a,3)),0.166667))", "_IntegerUnary", "HardSwish"},
    {"Mul(Mul(a,0.5),AddV2(Erf(Mul(a,0.707107)),1))", "_IntegerUnary", "Gelu"},
    {"Mul(Mul(a,0.5),AddV2(Tanh(Mul(AddV2(a,Mul(Mul(Square(a),a),0.044715)),0.797885)),1))", "_IntegerUnary",
     "GeluApproximate"},
    {"RealDiv(a,Maximum(Sqrt(SumOfLastKept(Square(a))),1e-06))", "_IntegerL2Normalize", ""},
    {"Sub(Relu(a),Mul(b,Relu(Neg(a))))", "_IntegerBinary", "PRelu"},
};

// The binary ops, whose operands may be the same tensor.
struct BinaryRow {
  ops::OpId op;
  absl::string_view fused;
  absl::string_view function;
};
constexpr BinaryRow kBinaries[] = {
    {ops::kAddV2, "_IntegerBinary", "Add"},
    {ops::kSub, "_IntegerBinary", "Sub"},
    {ops::kMul, "_IntegerBinary", "Mul"},
    {ops::kRealDiv, "_IntegerBinary", "Div"},
    {ops::kSquaredDifference, "_IntegerBinary", "SquaredDifference"},
    {ops::kEqual, "_IntegerCompare", "Equal"},
    {ops::kNotEqual, "_IntegerCompare", "NotEqual"},
    {ops::kLess, "_IntegerCompare", "Less"},
    {ops::kLessEqual, "_IntegerCompare", "LessEqual"},
    {ops::kGreater, "_IntegerCompare", "Greater"},
    {ops::kGreaterEqual, "_IntegerCompare", "GreaterEqual"},
};

absl::Status NoForm(absl::string_view reason) { return absl::UnimplementedError(reason); }

// Returns the scalar of a Const, or NoForm.
absl::StatusOr<float> ScalarConst(TensorRef ref) {
  if (ref.node->op() != ops::kConst) return NoForm("no constant");
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*ref.node));
  if (value.dtype() != DType::kFloat || value.num_elements() != 1) return NoForm("no scalar");
  return value.elements<float>()[0];
}

class Fuser {
 public:
  Fuser(const absl::flat_hash_set<TensorRef>& fed, Graph* graph) : fed_(fed), graph_(graph) {}

  // Replaces the operator that ends at `end`, or returns NoForm without changes that a reader could notice.
  absl::Status Fuse(Node* end) {
    PF_ASSIGN_OR_RETURN(rounding_, StringAttr(*end, kRoundingAttr));
    TensorRef value{end, 0};
    has_output_scale_ = end->op() == UniformQuantizeOp();
    output_ = Coded();
    if (has_output_scale_) {
      if (end->num_data_inputs() != 3) return NoForm("it has no scales");
      value = end->input(0);
      PF_ASSIGN_OR_RETURN(output_.scales, ReadUniformScales(*end));
      if (output_.scales.scales.size() != 1) return NoForm("its result has a scale for each slice");
      PF_ASSIGN_OR_RETURN(output_.dtype, TypeAttr(*end, "Tout"));
    }
    // A reshape of the numbers is one of the codes.
    std::vector<TensorRef> shapes;
    std::vector<Op> reshapes;
    while (Is(value, ops::kReshape) && value.node->num_data_inputs() == 2) {
      shapes.push_back(value.node->input(1));
      value = value.node->input(0);
    }
    PF_ASSIGN_OR_RETURN(const Form form, Match(value));
    return Replace(end, form, shapes);
  }

 private:
  // The integer node to make.
  struct Form {
    absl::string_view op;
    std::vector<TensorRef> inputs;
    std::vector<std::pair<absl::string_view, AttrValue>> attrs;
  };

  bool Is(TensorRef ref, Op op) const { return ref.port == 0 && ref.node->op() == op && !fed_.contains(ref); }

  // --- Operands -----------------------------------------------------------------------------------------------------
  // Reads an operand behind reshapes, which become reshapes of the codes.
  absl::StatusOr<Coded> Operand(TensorRef ref) {
    if (Is(ref, ops::kReshape) && ref.node->num_data_inputs() == 2) {
      const Node& reshape = *ref.node;
      PF_ASSIGN_OR_RETURN(Coded inner, Operand(reshape.input(0)));
      PF_ASSIGN_OR_RETURN(Node * node,
                          graph_->AddNode(graph_->UniqueName(absl::StrCat(reshape.name(), "/codes")), ops::kReshape));
      node->CopyAttrs(reshape);
      node->SetAttr("T", AttrValue::Type(inner.dtype));
      graph_->AddInput(node, inner.codes);
      graph_->AddInput(node, reshape.input(1));
      inner.codes = {node, 0};
      return inner;
    }
    if (!Is(ref, UniformDequantizeOp()) || ref.node->num_data_inputs() != 3) {
      return NoForm(absl::StrCat(ref.node->Describe(), " reads no codes"));
    }
    Coded result;
    result.codes = ref.node->input(0);
    PF_ASSIGN_OR_RETURN(result.dtype, TypeAttr(*ref.node, "Tin"));
    const absl::StatusOr<UniformScales> scales = ReadUniformScales(*ref.node);
    if (!scales.ok()) return Annotate(scales.status(), ref.node->Describe());
    result.scales = *scales;
    return result;
  }

  absl::StatusOr<Coded> Activations(TensorRef ref) {
    PF_ASSIGN_OR_RETURN(Coded result, Operand(ref));
    if (result.scales.scales.size() == 1) return result;
    return NoForm(absl::StrCat(ref.node->Describe(), " has a scale for each slice, where one scale is expected"));
  }

  // Reads weights, whose scales are along `axis` of the tensor that `ref` is.
  absl::StatusOr<Coded> Weights(TensorRef ref, int axis) {
    PF_ASSIGN_OR_RETURN(Coded result, Operand(ref));
    for (const int32_t point : result.scales.zero_points) {
      if (point != result.scales.zero_points[0]) return NoForm("its weights have several zero points");
    }
    if (result.scales.scales.size() > 1 && result.scales.axis != axis) {
      return NoForm(absl::StrCat("its weights have scales along axis ", result.scales.axis, ", expected ", axis));
    }
    return result;
  }

  // --- Attributes ---------------------------------------------------------------------------------------------------
  void AddScales(absl::Span<const Coded> inputs, Form* form) const {
    std::vector<float> scales;
    std::vector<int64_t> points;
    for (const Coded& input : inputs) {
      scales.push_back(input.scales.scales[0]);
      points.push_back(input.scales.zero_points[0]);
    }
    form->attrs.emplace_back("input_scales", AttrValue::FloatList(scales));
    form->attrs.emplace_back("input_zero_points", AttrValue::IntList(points));
    if (!has_output_scale_) return;
    form->attrs.emplace_back("output_scale", AttrValue::Float(output_.scales.scales[0]));
    form->attrs.emplace_back("output_zero_point", AttrValue::Int(output_.scales.zero_points[0]));
  }

  void AddString(absl::string_view key, absl::string_view value, Form* form) const {
    form->attrs.emplace_back(key, AttrValue::String(value));
  }

  static void CopyAttr(const Node& from, absl::string_view key, Form* form) {
    if (const AttrValue* value = from.FindAttr(key); value != nullptr) form->attrs.emplace_back(key, *value);
  }

  // --- Forms --------------------------------------------------------------------------------------------------------
  absl::StatusOr<Form> Match(TensorRef value) {
    const Activated activated = Activation(value);
    const Node& root = *activated.value.node;
    // An activation alone is an elementwise formula.
    if (fed_.contains(activated.value)) return NoForm("a value inside of it is fed");
    switch (root.op().is_known() ? static_cast<ops::OpId>(root.op().id()) : ops::kNumKnownOps) {
      case ops::kBiasAdd:
      case ops::kConv2D:
      case ops::kDepthwiseConv2dNative:
      case ops::kConv2DBackpropInput:
      case ops::kMatMul:
        return Weighted(activated);
      case ops::kBatchMatMulV2:
        if (activated.activation != "NONE") break;
        return BatchProduct(root);
      case ops::kAvgPool:
        return Pool(activated);
      case ops::kMean:
      case ops::kSum:
      case ops::kProd:
        if (activated.activation != "NONE") break;
        return Reduction(root);
      case ops::kSoftmax:
      case ops::kLogSoftmax:
        if (activated.activation != "NONE") break;
        return Softmax(root);
      case ops::kResizeBilinear:
        if (activated.activation != "NONE") break;
        return Resize(root);
      case ops::kConcatV2:
        if (activated.activation != "NONE") break;
        return Concat(root);
      default:
        break;
    }
    return Elementwise(value, activated);
  }

  // Separates a fused activation from its operand.
  Activated Activation(TensorRef value) const {
    if (Is(value, ops::kRelu)) return {value.node->input(0), "RELU"};
    if (Is(value, ops::kRelu6)) return {value.node->input(0), "RELU6"};
    if (Is(value, ops::kMaximum) && value.node->num_data_inputs() == 2) {
      const TensorRef inner = value.node->input(0);
      const absl::StatusOr<float> low = ScalarConst(value.node->input(1));
      if (Is(inner, ops::kMinimum) && inner.node->num_data_inputs() == 2 && low.ok() && *low == -1) {
        const absl::StatusOr<float> high = ScalarConst(inner.node->input(1));
        if (high.ok() && *high == 1) return {inner.node->input(0), "RELU_N1_TO_1"};
      }
    }
    return {value, "NONE"};
  }

  // Convolutions and matrix products, with a bias or not.
  absl::StatusOr<Form> Weighted(const Activated& activated) {
    TensorRef value = activated.value;
    TensorRef bias;
    if (value.node->op() == ops::kBiasAdd) {
      if (value.node->num_data_inputs() != 2) return NoForm("its BiasAdd lacks inputs");
      bias = value.node->input(1);
      value = value.node->input(0);
      if (fed_.contains(value)) return NoForm("a value inside of it is fed");
    }
    const Node& root = *value.node;
    const bool is_dynamic = rounding_ == kDynamic;
    Form form;
    int x = 0, filter = 1;
    if (root.op() == ops::kConv2D) {
      form.op = is_dynamic ? "_HybridConv2D" : "_IntegerConv2D";
    } else if (root.op() == ops::kDepthwiseConv2dNative) {
      form.op = is_dynamic ? "_HybridDepthwiseConv2dNative" : "_IntegerDepthwiseConv2dNative";
    } else if (root.op() == ops::kMatMul) {
      form.op = is_dynamic ? "_HybridMatMul" : "_IntegerMatMul";
    } else if (root.op() == ops::kConv2DBackpropInput && !is_dynamic) {
      form.op = "_IntegerConv2DBackpropInput";
      x = 2;
    } else {
      return NoForm(absl::StrCat("found ", root.Describe(), ", expected a convolution or a matrix product"));
    }
    if (root.num_data_inputs() != x + (x == 0 ? 2 : 1)) return NoForm("it lacks inputs");
    if (root.op() != ops::kMatMul) {
      const absl::StatusOr<std::string> format = StringAttr(root, "data_format");
      if (!format.ok() || *format != "NHWC") return NoForm("its data_format is not NHWC");
      for (const absl::string_view key : {"strides", "padding", "dilations", "explicit_paddings"}) {
        CopyAttr(root, key, &form);
      }
    } else if (BoolAttr(root, "transpose_a").value_or(false)) {
      return NoForm("it transposes its input");
    }
    PF_ASSIGN_OR_RETURN(const Coded weights, FilterOf(root, root.input(filter), &form));
    if (is_dynamic) {
      form.inputs = {root.input(x), weights.codes};
      if (bias.node != nullptr) form.inputs.push_back(bias);
    } else {
      PF_ASSIGN_OR_RETURN(const Coded input, Activations(root.input(x)));
      form.inputs = {input.codes, weights.codes};
      AddScales({input}, &form);
      form.attrs.emplace_back("filter_zero_point", AttrValue::Int(weights.scales.zero_points[0]));
      AddString("rounding", rounding_, &form);
      if (x == 2) form.inputs.push_back(root.input(0));  // The shape of the result.
      if (bias.node != nullptr) {
        PF_ASSIGN_OR_RETURN(const Coded addend, Operand(bias));
        form.inputs.push_back(addend.codes);
      }
    }
    form.attrs.emplace_back("filter_scales", AttrValue::FloatList(weights.scales.scales));
    AddString("activation", activated.activation, &form);
    return form;
  }

  // Reads the filter. The kernel takes it in its layout before a transposition to the layout of TensorFlow's op.
  absl::StatusOr<Coded> FilterOf(const Node& root, TensorRef filter, Form* form) {
    if (root.op() == ops::kMatMul) {
      const bool transposes = BoolAttr(root, "transpose_b").value_or(false);
      form->attrs.emplace_back("transpose_b", AttrValue::Bool(transposes));
      return Weights(filter, transposes ? 0 : 1);
    }
    if (root.op() == ops::kDepthwiseConv2dNative) {
      // [1, height, width, output] reshaped to [height, width, input, multiplier].
      PF_ASSIGN_OR_RETURN(Coded weights, Operand(filter));
      const bool is_reshaped = Is(filter, ops::kReshape);
      if (weights.scales.scales.size() > 1 && (!is_reshaped || weights.scales.axis != 3)) {
        return NoForm(absl::StrCat("its filter has scales along axis ", weights.scales.axis, ", expected channels"));
      }
      for (const int32_t point : weights.scales.zero_points) {
        if (point != weights.scales.zero_points[0]) return NoForm("its weights have several zero points");
      }
      return weights;
    }
    const bool is_backward = root.op() == ops::kConv2DBackpropInput;
    AddString("filter_format", is_backward ? "HWOI" : "HWIO", form);
    if (!Is(filter, ops::kTranspose) || filter.node->num_data_inputs() != 2)
      return Weights(filter, is_backward ? 2 : 3);
    const TensorRef order = filter.node->input(1);
    const std::vector<int32_t> expected =
        is_backward ? std::vector<int32_t>{1, 2, 0, 3} : std::vector<int32_t>{1, 2, 3, 0};
    if (order.node->op() != ops::kConst) return NoForm("its filter is transposed by an order that is not constant");
    PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*order.node));
    if (value.dtype() != DType::kInt32 || value.num_elements() != 4) return NoForm("its filter is transposed");
    for (size_t i = 0; i < 4; ++i) {
      if (value.elements<int32_t>()[i] != expected[i]) return NoForm("its filter is transposed to another layout");
    }
    form->attrs.back().second = AttrValue::String("OHWI");
    return Weights(filter.node->input(0), 0);
  }

  absl::StatusOr<Form> BatchProduct(const Node& root) {
    if (root.num_data_inputs() != 2) return NoForm("it lacks inputs");
    Form form;
    PF_ASSIGN_OR_RETURN(const Coded right, Activations(root.input(1)));
    if (rounding_ == kDynamic) {
      form.op = "_HybridBatchMatMul";
      form.inputs = {root.input(0), right.codes};
      form.attrs.emplace_back("filter_scales", AttrValue::FloatList(right.scales.scales));
    } else {
      PF_ASSIGN_OR_RETURN(const Coded left, Activations(root.input(0)));
      form.op = "_IntegerBatchMatMul";
      form.inputs = {left.codes, right.codes};
      AddScales({left, right}, &form);
      AddString("rounding", rounding_, &form);
    }
    CopyAttr(root, "adj_x", &form);
    CopyAttr(root, "adj_y", &form);
    return form;
  }

  absl::StatusOr<Form> Pool(const Activated& activated) {
    const Node& root = *activated.value.node;
    PF_ASSIGN_OR_RETURN(const Coded input, Activations(root.input(0)));
    if (StringAttr(root, "data_format").value_or("") != "NHWC") return NoForm("its data_format is not NHWC");
    Form form;
    form.op = "_IntegerPool";
    form.inputs = {input.codes};
    AddScales({input}, &form);
    for (const absl::string_view key : {"ksize", "strides", "padding"}) CopyAttr(root, key, &form);
    AddString("activation", activated.activation, &form);
    return form;
  }

  absl::StatusOr<Form> Reduction(const Node& root) {
    if (root.num_data_inputs() != 2) return NoForm("it lacks inputs");
    PF_ASSIGN_OR_RETURN(const Coded input, Activations(root.input(0)));
    Form form;
    form.op = "_IntegerReduce";
    form.inputs = {input.codes, root.input(1)};
    AddScales({input}, &form);
    AddString("function", root.op().name(), &form);
    AddString("rounding", rounding_, &form);
    CopyAttr(root, "keep_dims", &form);
    return form;
  }

  // Softmax of the operand, or of the operand times a constant.
  absl::StatusOr<Form> Softmax(const Node& root) {
    TensorRef x = root.input(0);
    float beta = 1;
    if (root.op() == ops::kSoftmax && Is(x, ops::kMul) && x.node->num_data_inputs() == 2) {
      PF_ASSIGN_OR_RETURN(beta, ScalarConst(x.node->input(1)));
      x = x.node->input(0);
    }
    PF_ASSIGN_OR_RETURN(const Coded input, Activations(x));
    Form form;
    form.op = root.op() == ops::kSoftmax ? "_IntegerSoftmax" : "_IntegerLogSoftmax";
    form.inputs = {input.codes};
    AddScales({input}, &form);
    form.attrs.emplace_back("beta", AttrValue::Float(beta));
    return form;
  }

  absl::StatusOr<Form> Resize(const Node& root) {
    if (root.num_data_inputs() != 2) return NoForm("it lacks inputs");
    PF_ASSIGN_OR_RETURN(const Coded input, Activations(root.input(0)));
    if (!has_output_scale_ || input.scales.scales != output_.scales.scales ||
        input.scales.zero_points != output_.scales.zero_points) {
      return NoForm("its operand and its result have different scales");
    }
    Form form;
    form.op = "_IntegerResizeBilinear";
    form.inputs = {input.codes, root.input(1)};
    CopyAttr(root, "align_corners", &form);
    CopyAttr(root, "half_pixel_centers", &form);
    return form;
  }

  absl::StatusOr<Form> Concat(const Node& root) {
    const int count = root.num_data_inputs() - 1;
    if (count < 1) return NoForm("it lacks inputs");
    Form form;
    form.op = "_IntegerConcat";
    std::vector<Coded> inputs;
    for (int i = 0; i < count; ++i) {
      PF_ASSIGN_OR_RETURN(inputs.emplace_back(), Activations(root.input(i)));
      form.inputs.push_back(inputs.back().codes);
    }
    form.inputs.push_back(root.input(count));
    AddScales(inputs, &form);
    return form;
  }

  absl::StatusOr<Form> Elementwise(TensorRef value, const Activated& activated) {
    Form form;
    const Node& root = *activated.value.node;
    for (const BinaryRow& row : kBinaries) {
      if (root.op() != row.op || root.num_data_inputs() != 2) continue;
      const absl::StatusOr<Coded> a = Activations(root.input(0));
      const absl::StatusOr<Coded> b = Activations(root.input(1));
      if (!a.ok() || !b.ok()) break;
      form.op = row.fused;
      form.inputs = {a->codes, b->codes};
      AddScales({*a, *b}, &form);
      AddString("function", row.function, &form);
      if (row.fused == "_IntegerCompare") return form;
      AddString("activation", activated.activation, &form);
      AddString("rounding", rounding_, &form);
      return form;
    }
    operands_.clear();
    num_formula_nodes_ = 0;
    alpha_ = 0;
    PF_ASSIGN_OR_RETURN(const std::string formula, Formula(value));
    for (const FormulaRow& row : kFormulas) {
      if (row.formula != formula) continue;
      form.op = row.op;
      for (const Coded& operand : operands_) form.inputs.push_back(operand.codes);
      AddScales(operands_, &form);
      if (row.op == "_IntegerL2Normalize") return form;
      AddString("function", row.function, &form);
      AddString("rounding", rounding_, &form);
      if (row.op == "_IntegerUnary") {
        form.attrs.emplace_back("alpha", AttrValue::Float(alpha_));
      } else {
        AddString("activation", "NONE", &form);
      }
      return form;
    }
    return NoForm(absl::StrCat("no integer kernel computes ", formula));
  }

  // Writes the float ops as a formula. Operands are a, b, ... in the order of their first use.
  absl::StatusOr<std::string> Formula(TensorRef ref) {
    if (++num_formula_nodes_ > kMostFormulaNodes) return NoForm("its formula has too many nodes");
    if (fed_.contains(ref)) return NoForm("a value inside of it is fed");
    if (Is(ref, UniformDequantizeOp()) || Is(ref, ops::kReshape)) {
      PF_ASSIGN_OR_RETURN(Coded operand, Activations(ref));
      for (size_t i = 0; i < operands_.size(); ++i) {
        if (operands_[i].codes == operand.codes) return std::string(1, static_cast<char>('a' + i));
      }
      operands_.push_back(std::move(operand));
      return std::string(1, static_cast<char>('a' + operands_.size() - 1));
    }
    if (ref.node->op() == ops::kConst) {
      PF_ASSIGN_OR_RETURN(const float value, ScalarConst(ref));
      return absl::StrCat(value);
    }
    if (ref.port != 0 || ref.node->num_data_inputs() < 1) {
      return NoForm(absl::StrCat("found ", ref.node->Describe(), ", expected codes or a constant"));
    }
    const Node& node = *ref.node;
    if (node.op() == ops::kLeakyRelu) {
      PF_ASSIGN_OR_RETURN(alpha_, FloatAttr(node, "alpha"));
    } else if (node.op() == ops::kSum) {
      return SumOfLast(node);
    }
    std::vector<std::string> parts;
    for (int i = 0; i < node.num_data_inputs(); ++i) {
      PF_ASSIGN_OR_RETURN(parts.emplace_back(), Formula(node.input(i)));
    }
    return absl::StrCat(node.op().name(), "(", absl::StrJoin(parts, ","), ")");
  }

  absl::StatusOr<std::string> SumOfLast(const Node& node) {
    if (node.num_data_inputs() != 2 || node.input(1).node->op() != ops::kConst) return NoForm("its axes vary");
    PF_ASSIGN_OR_RETURN(const Tensor axes, ConstValue(*node.input(1).node));
    PF_ASSIGN_OR_RETURN(const bool keeps, BoolAttr(node, "keep_dims"));
    if (axes.dtype() != DType::kInt32 || axes.num_elements() != 1 || axes.elements<int32_t>()[0] != -1 || !keeps) {
      return NoForm("it reduces other axes than the last");
    }
    PF_ASSIGN_OR_RETURN(const std::string inner, Formula(node.input(0)));
    return absl::StrCat("SumOfLastKept(", inner, ")");
  }

  // --- Edits --------------------------------------------------------------------------------------------------------
  absl::Status Replace(Node* end, const Form& form, const std::vector<TensorRef>& shapes) {
    DType dtype = output_.dtype;
    if (!has_output_scale_) {
      PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*end));
      dtype = types[0];
    }
    const bool is_asymmetric = BoolAttr(*end, kAsymmetricAttr).value_or(false);
    const bool aligns = BoolAttr(*end, kPowersOfTwoAttr).value_or(false);
    std::vector<Node*> controls;
    for (int i = end->num_data_inputs(); i < end->num_inputs(); ++i) controls.push_back(end->input(i).node);
    Node* node = end;
    if (!shapes.empty()) {
      PF_ASSIGN_OR_RETURN(
          node, graph_->AddNode(graph_->UniqueName(absl::StrCat(end->name(), "/", form.op)), Op::Named(form.op), end));
    }
    std::vector<DType> types;
    for (const TensorRef input : form.inputs) {
      PF_ASSIGN_OR_RETURN(const std::vector<DType> of_node, OutputTypes(*input.node));
      if (input.port < 0 || static_cast<size_t>(input.port) >= of_node.size()) return NoForm("it lacks an input");
      types.push_back(of_node[static_cast<size_t>(input.port)]);
    }
    graph_->ClearInputs(end);
    end->ClearAttrs();
    for (const TensorRef input : form.inputs) graph_->AddInput(node, input);
    node->set_op(Op::Named(form.op));
    node->SetAttr("Tin", AttrValue::TypeList(types));
    node->SetAttr("Tout", AttrValue::Type(dtype));
    for (const auto& [key, value] : form.attrs) node->SetAttr(key, value);
    if (rounding_ == kDynamic) node->SetAttr("asymmetric_quantize_inputs", AttrValue::Bool(is_asymmetric));
    if (form.op == "_IntegerBinary") node->SetAttr("powers_of_two", AttrValue::Bool(aligns));
    // Reshapes of the result, the last one first.
    for (size_t i = shapes.size(); i-- > 0;) {
      Node* reshape = end;
      if (i > 0) {
        PF_ASSIGN_OR_RETURN(
            reshape, graph_->AddNode(graph_->UniqueName(absl::StrCat(end->name(), "/Reshape")), ops::kReshape, end));
      }
      reshape->set_op(ops::kReshape);
      graph_->AddInput(reshape, {node, 0});
      graph_->AddInput(reshape, shapes[i]);
      reshape->SetAttr("T", AttrValue::Type(dtype));
      PF_ASSIGN_OR_RETURN(const std::vector<DType> shape_types, OutputTypes(*shapes[i].node));
      reshape->SetAttr("Tshape", AttrValue::Type(shape_types[static_cast<size_t>(shapes[i].port)]));
      node = reshape;
    }
    for (Node* control : controls) graph_->AddControlInput(end, control);
    return absl::OkStatus();
  }

  const absl::flat_hash_set<TensorRef>& fed_;
  Graph* graph_;
  // State of the operator that is being matched.
  std::string rounding_;
  bool has_output_scale_ = false;
  Coded output_;
  std::vector<Coded> operands_;  // Of its formula.
  int num_formula_nodes_ = 0;
  float alpha_ = 0;
};

}  // namespace

bool HasQuantizedOperators(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->HasAttr(kRoundingAttr)) return true;
  }
  return false;
}

absl::Status FuseQuantizedOperators(const std::vector<bool>& is_needed, const absl::flat_hash_set<TensorRef>& fed,
                                    Graph* graph) {
  std::vector<std::string> problems;
  std::vector<Node*> marked;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->id() < is_needed.size() && is_needed[node->id()] && node->HasAttr(kRoundingAttr)) marked.push_back(node);
  }
  Fuser fuser(fed, graph);
  for (Node* node : marked) {
    const absl::Status status = fuser.Fuse(node);
    if (status.ok()) continue;
    if (problems.size() == kMostProblems) problems.push_back("and more");
    if (problems.size() < kMostProblems) problems.push_back(absl::StrCat(node->Describe(), ": ", status.message()));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("quantised operators without an integer kernel: ", absl::StrJoin(problems, "; ")));
}

}  // namespace permafrost
