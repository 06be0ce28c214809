// Writes elementwise operators, comparisons, reductions and selections.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/forms.h"
#include "io/formats/tflite/operator_export.h"

namespace permafrost {
namespace {

// Relative difference up to which a constant of a formula is recognised: about 8 roundings of float.
constexpr double kSameConstant = 1e-6;

absl::Status NoForm(absl::string_view expected) {
  return absl::UnimplementedError(absl::StrCat("expected ", expected));
}

bool IsConstant(const OperatorExport& op, TensorRef ref, double value) {
  const absl::StatusOr<double> constant = op.ConstantScalar(ref);
  return constant.ok() && std::abs(*constant - value) <= kSameConstant * std::abs(value);
}

// True if the tensor is output 0 of a node with this op that only the form reads.
bool IsInner(const OperatorExport& op, TensorRef ref, Op inner) {
  return ref.port == 0 && ref.node->op() == inner && op.IsReadOnce(*ref.node);
}

// The operand of a commutative node other than the constant `value`; without node if there is none.
TensorRef Beside(const OperatorExport& op, const Node& node, double value) {
  if (node.num_data_inputs() != 2) return {};
  for (const int side : {0, 1}) {
    if (IsConstant(op, node.input(side), value)) return node.input(1 - side);
  }
  return {};
}

bool IsSum(Op op) { return op == ops::kAdd || op == ops::kAddV2; }

// A product as its constant factor and other factors.
struct Product {
  double constant = 1;
  std::vector<TensorRef> factors;
};

// Adds the factors of `ref` to the product. Divisions by a constant count as products.
void AddFactors(const OperatorExport& op, TensorRef ref, bool is_root, int depth, Product* product) {
  constexpr int kMostDepth = 3;  // x * gate * constant is two products; one more for a halved x.
  const absl::StatusOr<double> constant = op.ConstantScalar(ref);
  if (constant.ok()) {
    product->constant *= *constant;
    return;
  }
  const Node& node = *ref.node;
  const bool may_open = ref.port == 0 && depth < kMostDepth && (is_root || op.IsReadOnce(node));
  if (may_open && node.op() == ops::kMul && node.num_data_inputs() == 2) {
    AddFactors(op, node.input(0), false, depth + 1, product);
    AddFactors(op, node.input(1), false, depth + 1, product);
    return;
  }
  if (may_open && node.op() == ops::kRealDiv && node.num_data_inputs() == 2) {
    const absl::StatusOr<double> divisor = op.ConstantScalar(node.input(1));
    if (divisor.ok() && *divisor != 0) {
      product->constant /= *divisor;
      AddFactors(op, node.input(0), false, depth + 1, product);
      return;
    }
  }
  product->factors.push_back(ref);
}

bool IsConstantFactor(const Product& product, double value) {
  return std::abs(product.constant - value) <= kSameConstant * std::abs(value);
}

// Returns `factor` if the tensor is x * factor.
bool IsScaled(const OperatorExport& op, TensorRef ref, TensorRef x, double factor) {
  Product product;
  AddFactors(op, ref, false, 0, &product);
  return product.factors.size() == 1 && product.factors[0] == x && IsConstantFactor(product, factor);
}

// True for x^3.
bool IsCube(const OperatorExport& op, TensorRef ref, TensorRef x) {
  if (IsInner(op, ref, ops::kPow)) return ref.node->input(0) == x && IsConstant(op, ref.node->input(1), 3);
  if (!IsInner(op, ref, ops::kMul)) return false;
  for (const int side : {0, 1}) {
    const TensorRef square = ref.node->input(side);
    if (ref.node->input(1 - side) != x || square.port != 0) continue;
    if (IsInner(op, square, ops::kSquare) && square.node->input(0) == x) return true;
    if (IsInner(op, square, ops::kMul) && square.node->input(0) == x && square.node->input(1) == x) return true;
  }
  return false;
}

// True for x + 0.044715 x^3.
bool IsCubicSum(const OperatorExport& op, TensorRef ref, TensorRef x) {
  if (ref.port != 0 || !IsSum(ref.node->op()) || !op.IsReadOnce(*ref.node)) return false;
  for (const int side : {0, 1}) {
    if (ref.node->input(side) != x) continue;
    const TensorRef scaled = ref.node->input(1 - side);
    if (!IsInner(op, scaled, ops::kMul)) continue;
    const TensorRef cube = Beside(op, *scaled.node, 0.044715);
    if (cube.node != nullptr && IsCube(op, cube, x)) return true;
  }
  return false;
}

absl::Status AddAll(OperatorExport* op, int least) {
  if (op->num_inputs() < least) {
    return absl::UnimplementedError(absl::StrCat("has ", op->num_inputs(), " inputs, expected ", least));
  }
  for (int i = 0; i < op->num_inputs(); ++i) op->AddOperand(op->input(i));
  return absl::OkStatus();
}

int LargestRank(const OperatorExport& op) {
  int largest = 0;
  for (int i = 0; i < op.num_inputs(); ++i) {
    const Shape shape = op.ShapeOf(op.input(i));
    if (shape.has_rank()) largest = std::max(largest, shape.rank());
  }
  return largest;
}

}  // namespace

absl::Status ExportElementwise(OperatorExport* op) { return AddAll(op, 1); }

absl::Status ExportBroadcast(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  if (LargestRank(*op) > 4) op->RequireVersion(3);
  return absl::OkStatus();
}

absl::Status ExportAdd(OperatorExport* op) {
  const absl::StatusOr<std::string> format = StringAttr(op->node(), "data_format");
  if (format.ok() && *format != "NHWC") {
    return absl::UnimplementedError(absl::StrCat("has the data_format ", *format, ", expected NHWC"));
  }
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  op->SetOptions(tflite::CreateAddOptions(op->builder(), op->activation(), /*pot_scale_int16=*/false));
  return absl::OkStatus();
}

absl::Status ExportSub(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  if (LargestRank(*op) > 4) op->RequireVersion(3);
  op->SetOptions(tflite::CreateSubOptions(op->builder(), op->activation(), /*pot_scale_int16=*/false));
  return absl::OkStatus();
}

absl::Status ExportMul(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  op->SetOptions(tflite::CreateMulOptions(op->builder(), op->activation()));
  return absl::OkStatus();
}

absl::Status ExportDiv(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  if (LargestRank(*op) > 4) op->RequireVersion(2);
  op->SetOptions(tflite::CreateDivOptions(op->builder(), op->activation()));
  return absl::OkStatus();
}

absl::Status ExportReluN1To1(OperatorExport* op) {
  TensorRef x;
  if (!IsClamp(op->node(), -1, 1, &x)) return NoForm("a clamp to -1 and 1");
  op->AddOperand(x);
  return absl::OkStatus();
}

absl::Status ExportRelu0To1(OperatorExport* op) {
  TensorRef x;
  if (!IsClamp(op->node(), 0, 1, &x)) return NoForm("a clamp to 0 and 1");
  op->AddOperand(x);
  return absl::OkStatus();
}

absl::Status ExportLeakyRelu(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 1));
  PF_ASSIGN_OR_RETURN(const float alpha, FloatAttr(op->node(), "alpha"));
  op->SetOptions(tflite::CreateLeakyReluOptions(op->builder(), alpha));
  return absl::OkStatus();
}

// Relu(x) - a Relu(-x), Relu(x) + a' Relu(-x) and Relu(x) + a'' (x - |x|), with constants a, a' = -a and a'' = a / 2.
absl::Status ExportPRelu(OperatorExport* op) {
  const Node& root = op->node();
  const bool is_difference = root.op() == ops::kSub;
  if (root.num_data_inputs() != 2) return NoForm("two inputs");
  for (const int side : {0, 1}) {
    if (is_difference && side == 1) break;
    const TensorRef positive = root.input(side), scaled = root.input(1 - side);
    if (!IsInner(*op, positive, ops::kRelu) || !IsInner(*op, scaled, ops::kMul)) continue;
    const TensorRef x = positive.node->input(0);
    for (const int factor : {0, 1}) {
      const TensorRef part = scaled.node->input(1 - factor);
      const absl::StatusOr<Tensor> slope = op->Constant(scaled.node->input(factor));
      if (!slope.ok() || slope->dtype() != DType::kFloat) continue;
      float multiple = 0;  // alpha as a multiple of the constant.
      if (IsInner(*op, part, ops::kRelu) && IsInner(*op, part.node->input(0), ops::kNeg) &&
          part.node->input(0).node->input(0) == x) {
        multiple = -1;
      } else if (IsInner(*op, part, ops::kSub) && part.node->input(0) == x &&
                 IsInner(*op, part.node->input(1), ops::kAbs) && part.node->input(1).node->input(0) == x) {
        multiple = 2;
      } else {
        continue;
      }
      if (is_difference) multiple = -multiple;
      // The constant may not enlarge the result, and PRELU aligns it with the last dimensions.
      const Shape shape = op->ShapeOf(x);
      if (!shape.has_rank() || slope->shape().rank() > shape.rank()) continue;
      std::vector<float> alpha;
      for (size_t i = 0; i < slope->elements<float>().size(); ++i) {
        alpha.push_back(multiple * slope->elements<float>()[i]);
      }
      op->AddOperand(x);
      op->AddConstant(Tensor::FromVector(slope->shape(), std::move(alpha)));
      return absl::OkStatus();
    }
  }
  return NoForm("Relu(x) plus a constant times the negative part of x");
}

// x Relu6(x + 3) / 6, in any order of the factors.
absl::Status ExportHardSwish(OperatorExport* op) {
  Product product;
  AddFactors(*op, {&op->node(), 0}, true, 0, &product);
  if (product.factors.size() == 2 && IsConstantFactor(product, 1.0 / 6)) {
    for (const size_t gate : {size_t{0}, size_t{1}}) {
      const TensorRef relu = product.factors[gate], x = product.factors[1 - gate];
      if (!IsInner(*op, relu, ops::kRelu6)) continue;
      const TensorRef sum = relu.node->input(0);
      if (sum.port != 0 || !IsSum(sum.node->op()) || !op->IsReadOnce(*sum.node)) continue;
      if (Beside(*op, *sum.node, 3) != x) continue;
      op->AddOperand(x);
      return absl::OkStatus();
    }
  }
  return NoForm("x Relu6(x + 3) / 6");
}

// x (1 + erf(x / sqrt(2))) / 2, or x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
absl::Status ExportGelu(OperatorExport* op) {
  constexpr double kRootOfHalf = 0.7071067811865476, kRootOfTwoOverPi = 0.7978845608028654;
  Product product;
  AddFactors(*op, {&op->node(), 0}, true, 0, &product);
  if (product.factors.size() == 2 && IsConstantFactor(product, 0.5)) {
    for (const size_t gate : {size_t{0}, size_t{1}}) {
      const TensorRef sum = product.factors[gate], x = product.factors[1 - gate];
      if (sum.port != 0 || !op->IsReadOnce(*sum.node)) continue;
      bool is_exact = false, is_approximate = false;
      if (sum.node->op() == ops::kErfc) {
        is_exact = IsScaled(*op, sum.node->input(0), x, -kRootOfHalf);
      } else if (IsSum(sum.node->op())) {
        const TensorRef inner = Beside(*op, *sum.node, 1);
        if (inner.node == nullptr) continue;
        if (IsInner(*op, inner, ops::kErf)) is_exact = IsScaled(*op, inner.node->input(0), x, kRootOfHalf);
        if (IsInner(*op, inner, ops::kTanh) && IsInner(*op, inner.node->input(0), ops::kMul)) {
          const TensorRef cubic = Beside(*op, *inner.node->input(0).node, kRootOfTwoOverPi);
          is_approximate = cubic.node != nullptr && IsCubicSum(*op, cubic, x);
        }
      }
      if (!is_exact && !is_approximate) continue;
      op->AddOperand(x);
      op->SetOptions(tflite::CreateGeluOptions(op->builder(), is_approximate));
      return absl::OkStatus();
    }
  }
  return NoForm("x (1 + erf(x / sqrt(2))) / 2 or its approximation by tanh");
}

absl::Status ExportReduction(OperatorExport* op) {
  if (op->num_inputs() < 2) return NoForm("two inputs");
  PF_ASSIGN_OR_RETURN(const bool keep_dims, BoolAttr(op->node(), "keep_dims"));
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateReducerOptions(op->builder(), keep_dims));
  return absl::OkStatus();
}

absl::Status ExportArgMax(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(op->node(), "output_type"));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType type, TfliteTypeOf(dtype));
  op->SetOptions(tflite::CreateArgMaxOptions(op->builder(), type));
  return absl::OkStatus();
}

absl::Status ExportArgMin(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(op->node(), "output_type"));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType type, TfliteTypeOf(dtype));
  op->SetOptions(tflite::CreateArgMinOptions(op->builder(), type));
  return absl::OkStatus();
}

absl::Status ExportCast(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 1));
  PF_ASSIGN_OR_RETURN(const DType from, TypeAttr(op->node(), "SrcT"));
  PF_ASSIGN_OR_RETURN(const DType to, TypeAttr(op->node(), "DstT"));
  // DEQUANTIZE is the form of weights of half that runtimes expect.
  if (from == DType::kHalf && to == DType::kFloat && op->Constant(op->input(0)).ok()) {
    return NoForm("no conversion of a constant of half");
  }
  PF_RETURN_IF_ERROR(op->RequireVersionFor(to));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType from_type, TfliteTypeOf(from));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType to_type, TfliteTypeOf(to));
  op->SetOptions(tflite::CreateCastOptions(op->builder(), from_type, to_type));
  return absl::OkStatus();
}

absl::Status ExportDequantize(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 1));
  PF_ASSIGN_OR_RETURN(const DType to, TypeAttr(op->node(), "DstT"));
  if (to != DType::kFloat) return NoForm("a conversion to float");
  op->SetOptions(tflite::CreateDequantizeOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportFakeQuant(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 1));
  PF_ASSIGN_OR_RETURN(const float least, FloatAttr(op->node(), "min"));
  PF_ASSIGN_OR_RETURN(const float most, FloatAttr(op->node(), "max"));
  PF_ASSIGN_OR_RETURN(const int64_t num_bits, IntAttr(op->node(), "num_bits"));
  PF_ASSIGN_OR_RETURN(const bool narrow_range, BoolAttr(op->node(), "narrow_range"));
  if (narrow_range) op->RequireVersion(2);
  op->SetOptions(
      tflite::CreateFakeQuantOptions(op->builder(), least, most, static_cast<int32_t>(num_bits), narrow_range));
  return absl::OkStatus();
}

absl::Status ExportCumsum(OperatorExport* op) {
  if (op->num_inputs() < 2) return NoForm("two inputs");
  PF_ASSIGN_OR_RETURN(const bool exclusive, BoolAttr(op->node(), "exclusive"));
  PF_ASSIGN_OR_RETURN(const bool reverse, BoolAttr(op->node(), "reverse"));
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateCumsumOptions(op->builder(), exclusive, reverse));
  return absl::OkStatus();
}

absl::Status ExportBucketize(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 1));
  PF_ASSIGN_OR_RETURN(const std::vector<float> boundaries, FloatListAttr(op->node(), "boundaries"));
  op->SetOptions(tflite::CreateBucketizeOptions(op->builder(), op->builder().CreateVector(boundaries)));
  return absl::OkStatus();
}

absl::Status ExportSelect(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 3));
  const Shape condition = op->ShapeOf(op->input(0)), x = op->ShapeOf(op->input(1));
  const bool is_row = condition.has_rank() && x.has_rank() && condition.rank() == 1 && x.rank() > 1;
  if (op->target() == tflite::BuiltinOperator::SELECT) {
    // SELECT has no condition of one value; SELECT_V2 broadcasts one.
    if (!is_row) return NoForm("a condition with one value for each row");
    if (x.rank() > 4) op->RequireVersion(3);
  } else if (op->node().op() == ops::kSelect && (is_row || !condition.has_rank() || !x.has_rank())) {
    return NoForm("a condition that broadcasts");
  }
  return absl::OkStatus();
}

absl::Status ExportSegments(OperatorExport* op) {
  if (op->num_inputs() < 2) return NoForm("two inputs");
  op->AddOperand(op->input(0));
  for (int i = 1; i < op->num_inputs(); ++i) op->AddIntegers(op->input(i));
  return absl::OkStatus();
}

}  // namespace permafrost
