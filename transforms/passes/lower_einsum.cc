// Replaces Einsum by transposes, reshapes and one matrix product.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/image_windows.h"
#include "transforms/rewrites/node_expansion.h"

namespace permafrost {
namespace {

// Maximum rank of a matrix product with batch dimensions that runtimes have: that of TensorFlow Lite.
constexpr size_t kMostRank = 5;

class Lowering : private NodeExpansion {
 public:
  Lowering(Graph* graph, Node* node, const ShapeMap* shapes, PassContext* context)
      : NodeExpansion(graph, node), shapes_(shapes), context_(context) {}

  // Returns OK if the node was rewritten, FailedPrecondition with the reason for a near miss.
  absl::Status Run() {
    if (graph_->IsInput(node_)) return LimitReached();
    PF_RETURN_IF_ERROR(Parse());
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    return Rewrite();
  }

 private:
  // Sorts the labels by their part in the product, and finds the dimensions.
  absl::Status Parse() {
    const absl::StatusOr<std::string> equation = StringAttr(*node_, "equation");
    const absl::StatusOr<DType> dtype = TypeAttr(*node_, "T");
    if (!equation.ok() || !dtype.ok() || node_->num_data_inputs() != 2) {
      return Blocked(*node_, "has not two operands");
    }
    type_ = AttrValue::Type(*dtype);
    std::string text = *equation;
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    const std::vector<std::string> sides = absl::StrSplit(text, "->");
    if (sides.size() != 2) return Blocked(*node_, absl::StrCat("has the equation '", text, "' without a result"));
    const std::vector<std::string> operands = absl::StrSplit(sides[0], ',');
    if (operands.size() != 2) return Blocked(*node_, absl::StrCat("has the equation '", text, "'"));
    labels_[0] = operands[0];
    labels_[1] = operands[1];
    result_ = sides[1];
    for (const std::string* part : {&labels_[0], &labels_[1], &result_}) {
      for (const char label : *part) {
        if (!absl::ascii_isalpha(static_cast<unsigned char>(label)) ||
            std::count(part->begin(), part->end(), label) != 1) {
          return Blocked(*node_, absl::StrCat("has the equation '", text, "' with an ellipsis or a diagonal"));
        }
      }
    }
    for (int side : {0, 1}) {
      inputs_[side] = node_->input(side);
      const Shape shape = KnownShape(inputs_[side], shapes_);
      if (shape.has_rank() && static_cast<size_t>(shape.rank()) != labels_[side].size()) {
        return Blocked(*node_,
                       absl::StrCat("has the equation '", text, "' and an operand of shape ", shape.ToString()));
      }
      for (size_t i = 0; i < labels_[side].size(); ++i) {
        const int64_t dim = shape.has_rank() ? shape.dim(static_cast<int>(i)) : kUnknownDim;
        Dimension& known = dimensions_[labels_[side][i]];
        if (known.size >= 0 && dim >= 0 && known.size != dim) {
          return Blocked(*node_, "has operands that do not fit");
        }
        if (known.source.node == nullptr || (known.size < 0 && dim >= 0)) {
          known = {dim, inputs_[side], static_cast<int>(i)};
        }
      }
    }
    for (const char label : result_) {
      if (dimensions_.count(label) == 0) return Blocked(*node_, absl::StrCat("has the equation '", text, "'"));
    }
    for (int side : {0, 1}) {
      for (const char label : labels_[side]) {
        const bool is_in_other = Has(labels_[1 - side], label), is_result = Has(result_, label);
        if (!is_in_other && !is_result) {
          return Blocked(*node_, absl::StrCat("sums dimension '", std::string(1, label), "' of one operand"));
        }
        if (!is_in_other) free_[side] += label;
        if (side == 0 && is_in_other) (is_result ? batch_ : summed_) += label;
      }
    }
    // The order of batch and free dimensions is that of the result, so that it needs no transpose.
    const auto by_result = [this](char a, char b) { return result_.find(a) < result_.find(b); };
    for (std::string* part : {&batch_, &free_[0], &free_[1]}) std::sort(part->begin(), part->end(), by_result);
    if (!free_[0].empty() && !free_[1].empty() && result_.find(free_[1][0]) < result_.find(free_[0][0])) {
      std::swap(labels_[0], labels_[1]);
      std::swap(free_[0], free_[1]);
      std::swap(inputs_[0], inputs_[1]);
    }
    if (batch_.size() + 2 > kMostRank) return Blocked(*node_, "has too many batch dimensions");
    return absl::OkStatus();
  }

  absl::Status Rewrite() {
    // [batch, rows, summed] times [batch, summed, columns], or [batch, columns, summed] if that is the operand's order.
    const std::string columns_last = absl::StrCat(batch_, summed_, free_[1]);
    const bool is_transposed =
        labels_[1] != columns_last && Kept(labels_[1], batch_) == Kept(absl::StrCat(batch_, free_[1], summed_), batch_);
    const std::string order[2] = {absl::StrCat(batch_, free_[0], summed_),
                                  is_transposed ? absl::StrCat(batch_, free_[1], summed_) : columns_last};
    TensorRef operands[2];
    for (int side : {0, 1}) {
      PF_ASSIGN_OR_RETURN(operands[side],
                          Transposed(absl::StrCat("operand_", side), inputs_[side], labels_[side], order[side]));
    }
    std::vector<std::string> groups[2];
    for (const char label : batch_) {
      groups[0].emplace_back(1, label);
      groups[1].emplace_back(1, label);
    }
    groups[0].push_back(free_[0]);
    groups[0].push_back(summed_);
    groups[1].push_back(is_transposed ? free_[1] : summed_);
    groups[1].push_back(is_transposed ? summed_ : free_[1]);
    for (int side : {0, 1}) {
      PF_ASSIGN_OR_RETURN(operands[side], Reshaped(absl::StrCat("matrix_", side), operands[side], groups[side]));
    }
    const std::string product = absl::StrCat(batch_, free_[0], free_[1]);
    std::vector<std::string> single;
    for (const char label : product) single.emplace_back(1, label);
    const bool needs_reshape = free_[0].size() != 1 || free_[1].size() != 1;
    const bool needs_transpose = product != result_;
    const AttrValue is_adjoint = AttrValue::Bool(is_transposed);
    const Op op = batch_.empty() ? ops::kMatMul : ops::kBatchMatMulV2;
    NamedAttrs attrs = {{"T", type_}};
    if (batch_.empty()) {
      attrs.emplace_back("transpose_a", AttrValue::Bool(false));
      attrs.emplace_back("transpose_b", is_adjoint);
    } else {
      attrs.emplace_back("adj_x", AttrValue::Bool(false));
      attrs.emplace_back("adj_y", is_adjoint);
    }
    if (!needs_reshape && !needs_transpose) return Become(op, {operands[0], operands[1]}, attrs);
    PF_ASSIGN_OR_RETURN(TensorRef y, Add("product", op, {operands[0], operands[1]}, attrs));
    if (needs_reshape) {
      PF_ASSIGN_OR_RETURN(const TensorRef shape, ShapeOf("result_shape", single));
      const NamedAttrs reshape = {{"T", type_}, {"Tshape", AttrValue::Type(DType::kInt32)}};
      if (!needs_transpose) return Become(ops::kReshape, {y, shape}, reshape);
      PF_ASSIGN_OR_RETURN(y, Add("result", ops::kReshape, {y, shape}, reshape));
    }
    PF_ASSIGN_OR_RETURN(const TensorRef perm, Ints("perm", Permutation(product, result_)));
    return Become(ops::kTranspose, {y, perm}, {{"T", type_}, {"Tperm", AttrValue::Type(DType::kInt32)}});
  }

  static bool Has(absl::string_view labels, char label) { return labels.find(label) != absl::string_view::npos; }
  // The labels apart from those of the batch.
  static std::string Kept(absl::string_view labels, absl::string_view batch) {
    std::string kept;
    for (const char label : labels) {
      if (!Has(batch, label)) kept += label;
    }
    return kept;
  }
  static std::vector<int32_t> Permutation(absl::string_view from, absl::string_view to) {
    std::vector<int32_t> perm;
    for (const char label : to) perm.push_back(static_cast<int32_t>(from.find(label)));
    return perm;
  }

  absl::StatusOr<TensorRef> Transposed(absl::string_view suffix, TensorRef x, absl::string_view from,
                                       absl::string_view to) {
    if (from == to) return x;
    PF_ASSIGN_OR_RETURN(const TensorRef perm, Ints(absl::StrCat(suffix, "_perm"), Permutation(from, to)));
    return Add(suffix, ops::kTranspose, {x, perm}, {{"T", type_}, {"Tperm", AttrValue::Type(DType::kInt32)}});
  }

  // Joins the dimensions of each group.
  absl::StatusOr<TensorRef> Reshaped(absl::string_view suffix, TensorRef x, const std::vector<std::string>& groups) {
    if (std::all_of(groups.begin(), groups.end(), [](const std::string& group) { return group.size() == 1; })) return x;
    PF_ASSIGN_OR_RETURN(const TensorRef shape, ShapeOf(absl::StrCat(suffix, "_shape"), groups));
    return Add(suffix, ops::kReshape, {x, shape}, {{"T", type_}, {"Tshape", AttrValue::Type(DType::kInt32)}});
  }

  // Returns the shape with one dimension for each group: a constant with -1 if one dimension is not known, otherwise
  // computed from the operands.
  absl::StatusOr<TensorRef> ShapeOf(absl::string_view suffix, const std::vector<std::string>& groups) {
    std::vector<int32_t> sizes;
    int num_unknown = 0;
    bool has_zero = false;
    for (const std::string& group : groups) {
      int64_t size = 1;
      for (const char label : group) {
        const int64_t dim = dimensions_.at(label).size;
        size = dim < 0 || size < 0 ? -1 : size * dim;
        has_zero |= dim == 0;
        if (size > INT32_MAX) size = -1;
      }
      num_unknown += size < 0 ? 1 : 0;
      sizes.push_back(static_cast<int32_t>(size));
    }
    if (num_unknown == 0 || (num_unknown == 1 && !has_zero)) return Ints(suffix, std::move(sizes));
    const AttrValue int32 = AttrValue::Type(DType::kInt32);
    std::vector<TensorRef> dims;
    for (size_t i = 0; i < groups.size(); ++i) {
      const std::string name = absl::StrCat(suffix, "_", i);
      if (sizes[i] >= 0) {
        PF_ASSIGN_OR_RETURN(dims.emplace_back(), Const(name, Tensor::Scalar<int32_t>(sizes[i])));
        continue;
      }
      TensorRef size;
      for (const char label : groups[i]) {
        PF_ASSIGN_OR_RETURN(const TensorRef dim, SizeOf(label));
        if (size.node == nullptr) {
          size = dim;
        } else {
          PF_ASSIGN_OR_RETURN(size, Add(name, ops::kMul, {size, dim}, {{"T", int32}}));
        }
      }
      dims.push_back(size);
    }
    const auto count = static_cast<int64_t>(dims.size());
    return Add(suffix, ops::kPack, dims, {{"N", AttrValue::Int(count)}, {"T", int32}});
  }

  absl::StatusOr<TensorRef> SizeOf(char label) {
    const Dimension& dimension = dimensions_.at(label);
    const AttrValue int32 = AttrValue::Type(DType::kInt32);
    const std::string name = absl::StrCat("size_", std::string(1, label));
    if (dimension.size >= 0) return Const(name, Tensor::Scalar<int32_t>(static_cast<int32_t>(dimension.size)));
    PF_ASSIGN_OR_RETURN(const TensorRef shape, Add(absl::StrCat(name, "_shape"), ops::kShape, {dimension.source},
                                                   {{"T", type_}, {"out_type", int32}}));
    PF_ASSIGN_OR_RETURN(const TensorRef begin, Ints(absl::StrCat(name, "_begin"), {dimension.axis}));
    PF_ASSIGN_OR_RETURN(const TensorRef end, Ints(absl::StrCat(name, "_end"), {dimension.axis + 1}));
    PF_ASSIGN_OR_RETURN(const TensorRef one, Ints(absl::StrCat(name, "_stride"), {1}));
    return Add(name, ops::kStridedSlice, {shape, begin, end, one},
               {{"Index", int32}, {"T", int32}, {"shrink_axis_mask", AttrValue::Int(1)}});
  }

  struct Dimension {
    int64_t size = kUnknownDim;
    TensorRef source;  // An operand with the dimension.
    int axis = 0;
  };
  const ShapeMap* shapes_;
  PassContext* context_;
  AttrValue type_;
  std::string labels_[2], result_;
  TensorRef inputs_[2];
  std::map<char, Dimension> dimensions_;
  std::string batch_, summed_, free_[2];  // Labels by their part in the product.
};

absl::StatusOr<int64_t> Lower(Graph* graph, const NoParams&, PassContext* context) {
  std::vector<Node*> heads;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kEinsum) heads.push_back(node);
  }
  return RewriteEach(graph, heads, context,
                     [&](Node* node, const ShapeMap* shapes) { return Lowering(graph, node, shapes, context).Run(); });
}

}  // namespace

// Replaces Einsum of two operands by one matrix product, with transposes and reshapes where the order of dimensions
// needs them.
//
//   Einsum(x, w), "abc,cde->abde"       =>   Reshape(MatMul(Reshape(x, [-1, c]), Reshape(w, [c, d e])), [a, b, d, e])
//   Einsum(q, k), "abcd,aecd->acbe"     =>   BatchMatMulV2(Transpose(q), Transpose(k), adj_y)
//
// Leaves unchanged equations with ellipses, diagonals, sums over a dimension of one operand or more than three batch
// dimensions.
DEFINE_PASS(lower_einsum) {
  return Pass<NoParams>("Replaces Einsum by a matrix product.")
      .Why("Attention layers of Keras are exported as Einsum, which few runtimes have.")
      .Numerics(Within(1e-5))
      .Idempotent()
      .LooksFor({ops::kEinsum})
      .Run(Lower);
}

}  // namespace permafrost
