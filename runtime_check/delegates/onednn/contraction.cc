// Parses contractions, and sorts their dimensions into batches, rows, columns and depth.
#include "runtime_check/delegates/onednn/contraction.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/base/status.h"

namespace permafrost {
namespace onednn {
namespace {

absl::Status No(std::string reason) { return absl::UnimplementedError(std::move(reason)); }

// Dimensions of an ellipsis have the labels 256 + k, k places before its end, so that ellipses broadcast from the
// right.
absl::StatusOr<std::vector<int>> LabelsOf(absl::string_view text, int rank) {
  int written = 0;
  for (const char c : text) written += c != '.' && c != ' ' ? 1 : 0;
  std::vector<int> labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] != '.') {
      labels.push_back(static_cast<unsigned char>(text[i]));
      continue;
    }
    i += 2;
    for (int k = rank - written; k > 0; --k) labels.push_back(256 + k);
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (std::count(labels.begin(), labels.end(), labels[i]) > 1) return No("its equation repeats a label in a term");
  }
  if (static_cast<int>(labels.size()) != rank) return No("its equation does not fit its shapes");
  return labels;
}

Contraction::Operand OperandOf(const std::vector<int>& labels, const Shape& shape) {
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  Contraction::Operand operand;
  for (size_t d = 0; d < labels.size(); ++d) {
    const int64_t size = shape.dim(static_cast<int>(d));
    if (size != 1) operand.dimensions.push_back({labels[d], size, strides[d]});
  }
  return operand;
}

const Contraction::Dimension* Find(const Contraction::Operand& operand, int label) {
  for (const Contraction::Dimension& dimension : operand.dimensions) {
    if (dimension.label == label) return &dimension;
  }
  return nullptr;
}

// Joins neighbours that all operands hold as one dimension. The first dimension varies slowest.
void Join(std::vector<Product::Batch>* dimensions) {
  std::vector<Product::Batch> joined;
  for (const Product::Batch& next : *dimensions) {
    if (!joined.empty()) {
      Product::Batch& last = joined.back();
      if (last.a == next.size * next.a && last.b == next.size * next.b && last.c == next.size * next.c) {
        last = {last.size * next.size, next.a, next.b, next.c};
        continue;
      }
    }
    joined.push_back(next);
  }
  *dimensions = std::move(joined);
}

}  // namespace

absl::StatusOr<Contraction> EinsumContraction(const std::string& equation, const Shape& left, const Shape& right,
                                              const Shape& result) {
  const absl::string_view text = equation;
  const size_t arrow = text.find("->");
  if (arrow == text.npos) return No("its equation has no '->'");
  const absl::string_view terms = text.substr(0, arrow);
  const size_t comma = terms.find(',');
  if (comma == terms.npos || terms.find(',', comma + 1) != terms.npos) {
    return No("its equation is no product of two tensors");
  }
  Contraction contraction;
  PF_ASSIGN_OR_RETURN(const std::vector<int> a, LabelsOf(terms.substr(0, comma), left.rank()));
  PF_ASSIGN_OR_RETURN(const std::vector<int> b, LabelsOf(terms.substr(comma + 1), right.rank()));
  PF_ASSIGN_OR_RETURN(const std::vector<int> c, LabelsOf(text.substr(arrow + 2), result.rank()));
  contraction.inputs = {OperandOf(a, left), OperandOf(b, right)};
  contraction.result = OperandOf(c, result);
  return contraction;
}

absl::StatusOr<Contraction> MatrixContraction(const Shape& left, bool is_left_transposed, const Shape& right,
                                              bool is_right_transposed, const Shape& result) {
  if (left.rank() < 2 || right.rank() < 2 || result.rank() < 2) return No("an operand is not a matrix");
  constexpr int kRow = 0, kColumn = 1, kDepth = 2, kFirstBatch = 3;
  const auto labels = [&](const Shape& shape, int before, int last) {
    std::vector<int> all;
    for (int k = shape.rank() - 3; k >= 0; --k) all.push_back(kFirstBatch + k);
    all.push_back(before);
    all.push_back(last);
    return all;
  };
  Contraction contraction;
  contraction.inputs[0] = OperandOf(is_left_transposed ? labels(left, kDepth, kRow) : labels(left, kRow, kDepth), left);
  contraction.inputs[1] =
      OperandOf(is_right_transposed ? labels(right, kColumn, kDepth) : labels(right, kDepth, kColumn), right);
  contraction.result = OperandOf(labels(result, kRow, kColumn), result);
  return contraction;
}

int64_t Product::num_batches() const {
  int64_t count = 1;
  for (const Batch& batch : batches) count *= batch.size;
  return count;
}

absl::StatusOr<Product> ProductOf(const Contraction& contraction) {
  std::vector<Product::Batch> batches, rows, columns, depths;
  const auto step = [](const Contraction::Dimension* dimension) {
    return dimension == nullptr ? 0 : dimension->stride;
  };
  for (const Contraction::Dimension& dimension : contraction.result.dimensions) {
    const auto* a = Find(contraction.inputs[0], dimension.label);
    const auto* b = Find(contraction.inputs[1], dimension.label);
    if (a == nullptr && b == nullptr) return No("a dimension of its result is in no operand");
    auto& group = a != nullptr && b != nullptr ? batches : a != nullptr ? rows : columns;
    group.push_back({dimension.size, step(a), step(b), dimension.stride});
  }
  for (const Contraction::Dimension& dimension : contraction.inputs[0].dimensions) {
    if (Find(contraction.result, dimension.label) != nullptr) continue;
    const auto* b = Find(contraction.inputs[1], dimension.label);
    if (b == nullptr) return No("it sums over a dimension of one operand alone");
    depths.push_back({dimension.size, dimension.stride, b->stride, 0});
  }
  for (const Contraction::Dimension& dimension : contraction.inputs[1].dimensions) {
    if (Find(contraction.result, dimension.label) != nullptr) continue;
    if (Find(contraction.inputs[0], dimension.label) == nullptr) {
      return No("it sums over a dimension of one operand alone");
    }
  }
  Join(&rows);
  Join(&columns);
  Join(&depths);
  if (depths.size() > 1) return No("it sums over dimensions that are not adjacent");
  Product product;
  product.offset_a = contraction.inputs[0].offset;
  product.offset_b = contraction.inputs[1].offset;
  if (!depths.empty()) {
    product.depth = depths[0].size;
    product.depth_a = depths[0].a;
    product.depth_b = depths[0].b;
  }
  // Contiguous columns of the result let a product write it directly.
  if (!rows.empty() && rows.back().c == 1 && (columns.empty() || columns.back().c != 1)) {
    std::swap(rows, columns);
    std::swap(product.offset_a, product.offset_b);
    std::swap(product.depth_a, product.depth_b);
    std::swap(product.left, product.right);
    for (auto* group : {&batches, &rows, &columns}) {
      for (Product::Batch& dimension : *group) std::swap(dimension.a, dimension.b);
    }
  }
  product.batches = std::move(batches);
  if (!rows.empty()) {
    // The longest rows; the others are batches that read the same B.
    const auto longest =
        std::max_element(rows.begin(), rows.end(), [](const auto& x, const auto& y) { return x.size < y.size; });
    product.rows = longest->size;
    product.row_a = longest->a;
    product.row_c = longest->c;
    rows.erase(longest);
  }
  if (!columns.empty()) {
    product.columns = columns.back().size;
    product.column_b = columns.back().b;
    product.column_c = columns.back().c;
    columns.pop_back();
  }
  product.batches.insert(product.batches.end(), columns.begin(), columns.end());
  product.batches.insert(product.batches.end(), rows.begin(), rows.end());
  return product;
}

}  // namespace onednn
}  // namespace permafrost
