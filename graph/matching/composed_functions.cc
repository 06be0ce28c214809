// Implements the recognition by the structure of the ops, with constants compared by value.
#include "graph/matching/composed_functions.h"

#include <cmath>
#include <utility>

#include "graph/analysis/uniform_quantization.h"
#include "graph/matching/matcher.h"

namespace permafrost {
namespace {

// Relative difference up to which a constant of a formula is recognised: about 8 roundings of float.
constexpr double kSameConstant = 1e-6;
// That of the bound of a length, which exporters square in float.
constexpr double kSameBound = 1e-3;
// The bound of the length in LiteRT's L2_NORMALIZATION.
constexpr double kLeastLength = 1e-6;

bool IsSum(Op op) { return op == ops::kAdd || op == ops::kAddV2; }

// A product as its constant factor and other factors.
struct Product {
  double constant = 1;
  std::vector<TensorRef> factors;
};

class Reader {
 public:
  explicit Reader(const CompositionContext& context) : context_(context) {}

  std::optional<Composition> Match(Node& root) {
    for (const auto attempt : {&Reader::HardSwish, &Reader::Gelu, &Reader::PRelu, &Reader::L2Normalization}) {
      inner_.clear();
      std::optional<Composition> found = (this->*attempt)(root);
      if (!found.has_value()) continue;
      found->inner = std::move(inner_);
      return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<Tensor> Constant(TensorRef ref) const {
    const Node* constant = ConstantBehind(ref);
    if (constant == nullptr || constant->graph().IsInput(constant)) return std::nullopt;
    absl::StatusOr<Tensor> value = ConstValue(*constant);
    if (!value.ok()) return std::nullopt;
    return *std::move(value);
  }

  std::optional<double> Scalar(TensorRef ref) const {
    const std::optional<Tensor> value = Constant(ref);
    if (!value.has_value() || value->num_elements() != 1) return std::nullopt;
    if (value->dtype() == DType::kFloat) return value->elements<float>()[0];
    if (value->dtype() == DType::kDouble) return value->elements<double>()[0];
    if (value->dtype() == DType::kInt32) return value->elements<int32_t>()[0];
    return std::nullopt;
  }

  bool IsConstant(TensorRef ref, double value) const {
    const std::optional<double> constant = Scalar(ref);
    return constant.has_value() && std::abs(*constant - value) <= kSameConstant * std::abs(value);
  }

  // True if the tensor is output 0 of a node that only the function reads. The node belongs to the function then.
  bool Takes(TensorRef ref) {
    if (ref.port != 0 || !context_.is_read_once(*ref.node)) return false;
    inner_.push_back(ref.node);
    return true;
  }
  bool Takes(TensorRef ref, Op op) { return ref.node->op() == op && Takes(ref); }

  // The operand of a commutative node other than the constant `value`; without node if there is none.
  TensorRef Beside(const Node& node, double value) const {
    if (node.num_data_inputs() != 2) return {};
    for (const int side : {0, 1}) {
      if (IsConstant(node.input(side), value)) return node.input(1 - side);
    }
    return {};
  }

  // Adds the factors of `ref` to the product. Divisions by a constant count as products.
  void AddFactors(TensorRef ref, bool is_root, int depth, Product* product) {
    constexpr int kMostDepth = 3;  // x * gate * constant is two products; one more for a halved x.
    if (const std::optional<double> constant = Scalar(ref); constant.has_value()) {
      product->constant *= *constant;
      return;
    }
    const Node& node = *ref.node;
    const bool may_open =
        ref.port == 0 && depth < kMostDepth && node.num_data_inputs() == 2 && (is_root || context_.is_read_once(node));
    if (may_open && node.op() == ops::kMul) {
      if (!is_root) inner_.push_back(ref.node);
      AddFactors(node.input(0), false, depth + 1, product);
      AddFactors(node.input(1), false, depth + 1, product);
      return;
    }
    if (may_open && node.op() == ops::kRealDiv) {
      const std::optional<double> divisor = Scalar(node.input(1));
      if (divisor.has_value() && *divisor != 0) {
        if (!is_root) inner_.push_back(ref.node);
        product->constant /= *divisor;
        AddFactors(node.input(0), false, depth + 1, product);
        return;
      }
    }
    product->factors.push_back(ref);
  }

  static bool HasConstant(const Product& product, double value) {
    return std::abs(product.constant - value) <= kSameConstant * std::abs(value);
  }

  // True if the tensor is x * factor.
  bool IsScaled(TensorRef ref, TensorRef x, double factor) {
    Product product;
    AddFactors(ref, false, 0, &product);
    return product.factors.size() == 1 && product.factors[0] == x && HasConstant(product, factor);
  }

  bool IsCube(TensorRef ref, TensorRef x) {
    if (ref.node->op() == ops::kPow) {
      return Takes(ref) && ref.node->input(0) == x && IsConstant(ref.node->input(1), 3);
    }
    if (!Takes(ref, ops::kMul)) return false;
    for (const int side : {0, 1}) {
      const TensorRef square = ref.node->input(side);
      if (ref.node->input(1 - side) != x || square.port != 0 || square == x) continue;
      if (square.node->op() == ops::kSquare && square.node->input(0) == x) return Takes(square);
      if (square.node->op() == ops::kMul && square.node->input(0) == x && square.node->input(1) == x) {
        return Takes(square);
      }
    }
    return false;
  }

  // True for x + 0.044715 x^3.
  bool IsCubicSum(TensorRef ref, TensorRef x) {
    if (!IsSum(ref.node->op()) || !Takes(ref)) return false;
    for (const int side : {0, 1}) {
      if (ref.node->input(side) != x) continue;
      const TensorRef scaled = ref.node->input(1 - side);
      if (scaled.node->op() != ops::kMul) continue;
      const TensorRef cube = Beside(*scaled.node, 0.044715);
      if (cube.node != nullptr && Takes(scaled) && IsCube(cube, x)) return true;
    }
    return false;
  }

  std::optional<Composition> HardSwish(Node& root) {
    if (root.op() != ops::kMul && root.op() != ops::kRealDiv) return std::nullopt;
    Product product;
    AddFactors({&root, 0}, true, 0, &product);
    if (product.factors.size() != 2 || !HasConstant(product, 1.0 / 6)) return std::nullopt;
    for (const size_t gate : {size_t{0}, size_t{1}}) {
      const TensorRef relu = product.factors[gate], x = product.factors[1 - gate];
      if (relu.node->op() != ops::kRelu6) continue;
      const TensorRef sum = relu.node->input(0);
      if (!IsSum(sum.node->op()) || Beside(*sum.node, 3) != x) continue;
      if (!Takes(relu) || !Takes(sum)) continue;
      return Composition{ComposedFunction::kHardSwish, x, {}, {}, 1, {}};
    }
    return std::nullopt;
  }

  std::optional<Composition> Gelu(Node& root) {
    constexpr double kRootOfHalf = 0.7071067811865476, kRootOfTwoOverPi = 0.7978845608028654;
    if (root.op() != ops::kMul && root.op() != ops::kRealDiv) return std::nullopt;
    Product product;
    AddFactors({&root, 0}, true, 0, &product);
    if (product.factors.size() != 2 || !HasConstant(product, 0.5)) return std::nullopt;
    const std::vector<Node*> of_product = inner_;
    for (const size_t gate : {size_t{0}, size_t{1}}) {
      inner_ = of_product;
      const TensorRef sum = product.factors[gate], x = product.factors[1 - gate];
      if (!Takes(sum)) continue;
      if (sum.node->op() == ops::kErfc) {
        if (IsScaled(sum.node->input(0), x, -kRootOfHalf)) {
          return Composition{ComposedFunction::kGelu, x, {}, {}, 1, {}};
        }
        continue;
      }
      if (!IsSum(sum.node->op())) continue;
      const TensorRef inner = Beside(*sum.node, 1);
      if (inner.node == nullptr) continue;
      if (Takes(inner, ops::kErf) && IsScaled(inner.node->input(0), x, kRootOfHalf)) {
        return Composition{ComposedFunction::kGelu, x, {}, {}, 1, {}};
      }
      if (Takes(inner, ops::kTanh) && Takes(inner.node->input(0), ops::kMul)) {
        const TensorRef cubic = Beside(*inner.node->input(0).node, kRootOfTwoOverPi);
        if (cubic.node != nullptr && IsCubicSum(cubic, x)) {
          return Composition{ComposedFunction::kGeluApproximate, x, {}, {}, 1, {}};
        }
      }
    }
    return std::nullopt;
  }

  std::optional<Composition> PRelu(Node& root) {
    const bool is_difference = root.op() == ops::kSub;
    if ((!is_difference && !IsSum(root.op())) || root.num_data_inputs() != 2) return std::nullopt;
    for (const int side : {0, 1}) {
      if (is_difference && side == 1) break;
      const TensorRef positive = root.input(side), scaled = root.input(1 - side);
      inner_.clear();
      if (!Takes(positive, ops::kRelu) || !Takes(scaled, ops::kMul)) continue;
      const TensorRef x = positive.node->input(0);
      for (const int factor : {0, 1}) {
        inner_.resize(2);
        const TensorRef part = scaled.node->input(1 - factor);
        Composition found{ComposedFunction::kPRelu, x, scaled.node->input(factor), {}, 1, {}};
        const bool is_dequantized = found.slope.node->op() == UniformDequantizeOp();
        Shape slope = context_.shape_of(found.slope);
        if (!is_dequantized) {
          std::optional<Tensor> value = Constant(found.slope);
          if (!value.has_value() || value->dtype() != DType::kFloat) continue;
          found.slope_value = *std::move(value);
          slope = found.slope_value.shape();
        }
        if (part.node->op() == ops::kRelu && part.node->input(0).node->op() == ops::kNeg &&
            part.node->input(0).node->input(0) == x) {
          if (!Takes(part) || !Takes(part.node->input(0))) continue;
          found.slope_factor = -1;
        } else if (part.node->op() == ops::kSub && part.node->input(0) == x &&
                   part.node->input(1).node->op() == ops::kAbs && part.node->input(1).node->input(0) == x) {
          if (!Takes(part) || !Takes(part.node->input(1))) continue;
          found.slope_factor = 2;
        } else {
          continue;
        }
        if (is_difference) found.slope_factor = -found.slope_factor;
        if (is_dequantized && found.slope_factor != 1) continue;
        // The constant may not enlarge the result, and it is aligned with the last dimensions.
        const Shape shape = context_.shape_of(x);
        if (!shape.has_rank() || !slope.has_rank() || slope.rank() > shape.rank()) continue;
        return found;
      }
    }
    return std::nullopt;
  }

  std::optional<Composition> L2Normalization(Node& root) {
    const bool is_quotient = root.op() == ops::kRealDiv;
    if ((!is_quotient && root.op() != ops::kMul) || root.num_data_inputs() != 2) return std::nullopt;
    for (const int side : {0, 1}) {
      if (is_quotient && side == 1) break;
      inner_.clear();
      const TensorRef x = root.input(side);
      TensorRef length = root.input(1 - side);
      if (!is_quotient) {
        if (!Takes(length, ops::kRsqrt)) continue;
        length = length.node->input(0);
      }
      if (!Takes(length, ops::kMaximum) || length.node->num_data_inputs() != 2) continue;
      const double bound = is_quotient ? kLeastLength : kLeastLength * kLeastLength;
      TensorRef sum;
      for (const int k : {0, 1}) {
        const std::optional<double> least = Scalar(length.node->input(k));
        if (least.has_value() && std::abs(*least - bound) <= kSameBound * bound) sum = length.node->input(1 - k);
      }
      if (sum.node == nullptr) continue;
      if (is_quotient) {
        if (!Takes(sum, ops::kSqrt)) continue;
        sum = sum.node->input(0);
      }
      if (!Takes(sum, ops::kSum) || sum.node->num_data_inputs() != 2) continue;
      if (!Takes(sum.node->input(0), ops::kSquare)) continue;
      if (sum.node->input(0).node->input(0) != x || !BoolAttr(*sum.node, "keep_dims").value_or(false)) continue;
      const std::optional<Tensor> axes = Constant(sum.node->input(1));
      if (!axes.has_value()) continue;
      const absl::StatusOr<std::vector<int64_t>> axis = IntegerValues(*axes);
      const Shape shape = context_.shape_of(x);
      if (!axis.ok() || axis->size() != 1 || !shape.has_rank() ||
          ((*axis)[0] != -1 && (*axis)[0] != shape.rank() - 1)) {
        continue;
      }
      return Composition{ComposedFunction::kL2Normalization, x, {}, {}, 1, {}};
    }
    return std::nullopt;
  }

  const CompositionContext& context_;
  std::vector<Node*> inner_;
};

}  // namespace

std::optional<Composition> MatchComposition(Node& root, const CompositionContext& context) {
  return Reader(context).Match(root);
}

}  // namespace permafrost
