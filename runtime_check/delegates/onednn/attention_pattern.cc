// Moves views into products, and recognises attention.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/patterns.h"

namespace permafrost {
namespace onednn {
namespace {

StridedView ViewOf(const Contraction::Operand& operand, Shape* shape) {
  StridedView view;
  view.offset = operand.offset;
  for (const Contraction::Dimension& dimension : operand.dimensions) {
    view.strides.push_back(dimension.stride);
    shape->AddDim(dimension.size);
  }
  return view;
}

// Lets the product read the input of the views that make its operand.
void AbsorbOperand(PartitionEditor* editor, int node, int input) {
  ParsedNode& product = editor->parsed(node);
  int at = editor->node(node).inputs[input];
  for (;;) {
    const int producer = editor->Producer(at);
    if (producer < 0 || editor->IsRemoved(producer)) return;
    const ParsedNode& parsed = editor->parsed(producer);
    const DelegateNode& source = editor->node(producer);
    if (parsed.kind == NodeKind::kAlias) {
      // The same elements at the same positions.
      at = source.inputs[0];
      if (editor->IsConstant(at)) return;
      continue;
    }
    if (parsed.kind != NodeKind::kView) return;
    const auto output =
        static_cast<size_t>(std::find(source.outputs.begin(), source.outputs.end(), at) - source.outputs.begin());
    Shape shape;
    const StridedView outer = ViewOf(product.contraction.inputs[input], &shape);
    const std::optional<StridedView> view = ComposeViews(outer, shape, parsed.views[output], editor->tensor(at).shape);
    if (!view.has_value()) return;
    Contraction changed = product.contraction;
    changed.inputs[input].offset = view->offset;
    for (size_t d = 0; d < view->strides.size(); ++d) changed.inputs[input].dimensions[d].stride = view->strides[d];
    const absl::StatusOr<Product> made = ProductOf(changed);
    if (!made.ok()) return;
    product.contraction = std::move(changed);
    product.product = *made;
    at = source.inputs[parsed.data];
    editor->SetInput(node, input, at);
  }
}

// Lets the product write the result of the Transpose that is its only reader.
void AbsorbResult(PartitionEditor* editor, int node) {
  const int output = editor->node(node).outputs[0];
  if (!editor->HasOneReader(output)) return;
  const int reader = editor->Readers(output)[0];
  const ParsedNode& view = editor->parsed(reader);
  if (view.kind != NodeKind::kView || view.views.size() != 1 || view.views[0].offset != 0) return;
  const int result = editor->node(reader).outputs[0];
  const Shape& shape = editor->tensor(result).shape;
  if (shape.num_elements() != editor->tensor(output).shape.num_elements()) return;
  ParsedNode parsed = editor->parsed(node);
  const std::vector<int64_t> own = RowMajorStrides(shape);
  for (Contraction::Dimension& dimension : parsed.contraction.result.dimensions) {
    int d = 0;
    while (d < shape.rank() && (shape.dim(d) != dimension.size || view.views[0].strides[d] != dimension.stride)) ++d;
    if (d == shape.rank()) return;
    dimension.stride = own[d];
  }
  // The order of the dimensions determines which are joined.
  std::sort(parsed.contraction.result.dimensions.begin(), parsed.contraction.result.dimensions.end(),
            [](const auto& a, const auto& b) { return a.stride > b.stride; });
  const absl::StatusOr<Product> made = ProductOf(parsed.contraction);
  if (!made.ok()) return;
  parsed.product = *made;
  const std::vector<int> inputs = editor->node(node).inputs;
  editor->Replace({node, reader}, reader, inputs, result, std::move(parsed));
}

// The way from the scores of a product to a softmax.
struct Scores {
  int product = -1;        // Node.
  std::vector<int> nodes;  // All nodes before the softmax, the product included.
  float scale = 1;
  int mask = -1;       // Tensor that is added.
  int condition = -1;  // Tensor that selects.
  bool keeps_true = true;
  float fill = 0;
  std::string near_miss;  // If not empty, the way is not one that can be fused.
};

class Attention {
 public:
  explicit Attention(PartitionEditor* editor) : editor_(*editor) {}

  void Run() {
    for (int i = 0; i < editor_.num_nodes(); ++i) {
      if (!editor_.IsRemoved(i) && editor_.parsed(i).kind == NodeKind::kSoftmax) Try(i);
    }
  }

 private:
  static constexpr int kMostSteps = 8;

  std::string NameOf(int node) const {
    const Node& from = *editor_.node(node).node;
    return absl::StrCat("'", from.name(), "' (", from.op().name(), ")");
  }

  void Try(int softmax) {
    const int input = editor_.node(softmax).inputs[0];
    const int output = editor_.node(softmax).outputs[0];
    const Shape& shape = editor_.tensor(input).shape;
    Scores scores;
    const bool is_of_product = Walk(input, shape, kMostSteps, &scores);
    const std::vector<int>& readers = editor_.Readers(output);
    const auto is_product = [&](int node) { return editor_.parsed(node).kind == NodeKind::kProduct; };
    if (!is_of_product) {
      if (readers.empty() || !is_product(readers[0])) return;  // No attention at all.
      const int producer = editor_.Producer(input);
      return Miss(softmax, producer < 0 ? "the scores come from outside of the partition"
                                        : absl::StrCat("the scores come from ", NameOf(producer)));
    }
    if (!editor_.HasOneReader(output)) return Miss(softmax, "the probabilities have several readers");
    const int reader = readers[0];
    if (!is_product(reader)) return Miss(softmax, absl::StrCat("the probabilities are read by ", NameOf(reader)));
    if (!scores.near_miss.empty()) return Miss(softmax, scores.near_miss);
    const std::optional<ParsedNode> parsed = Fuse(scores, shape, output, reader);
    if (!parsed.has_value()) return Miss(softmax, "the products have other layouts");
    std::vector<int> nodes = scores.nodes;
    nodes.push_back(softmax);
    nodes.push_back(reader);
    const std::vector<int>& first = editor_.node(scores.product).inputs;
    const std::vector<int>& second = editor_.node(reader).inputs;
    const Product& product = parsed->product;
    std::vector<int> inputs = {first[product.left], first[product.right], second[1 - product_left_]};
    if (scores.mask >= 0) inputs.push_back(scores.mask);
    if (scores.condition >= 0) inputs.push_back(scores.condition);
    editor_.Replace(nodes, reader, std::move(inputs), editor_.node(reader).outputs[0], *parsed);
  }

  void Miss(int softmax, const std::string& reason) {
    editor_.parsed(softmax).near_miss = absl::StrCat("no attention: ", reason);
  }

  // Follows the scores from the softmax back to a product. Returns true if there is one.
  bool Walk(int tensor, const Shape& shape, int steps_left, Scores* scores) {
    const int node = editor_.Producer(tensor);
    if (node < 0 || steps_left == 0 || editor_.tensor(tensor).shape != shape) return false;
    const ParsedNode& parsed = editor_.parsed(node);
    const std::vector<int>& inputs = editor_.node(node).inputs;
    const auto follow = [&](int from) { return Walk(from, shape, steps_left - 1, scores); };
    switch (parsed.kind) {
      case NodeKind::kProduct:
        scores->product = node;
        break;
      case NodeKind::kAlias:
        if (!follow(inputs[0])) return false;
        break;
      case NodeKind::kElementwise:
        if (parsed.loop == LoopOp::kAffine && parsed.beta == 0) {
          if (!follow(inputs[parsed.left])) return false;
          if (scores->mask >= 0 || scores->condition >= 0) {
            scores->near_miss = absl::StrCat(NameOf(node), " scales the scores after the mask");
          }
          scores->scale *= parsed.alpha;
          break;
        }
        if (parsed.right < 0) {
          if (!follow(inputs[parsed.left])) return false;
          scores->near_miss = absl::StrCat(NameOf(node), " is between the scores and the softmax");
          break;
        }
        if (!FollowOneOf(node, inputs[parsed.left], inputs[parsed.right], parsed.loop, follow, scores)) return false;
        break;
      case NodeKind::kBroadcast:
        if (!FollowOneOf(node, inputs[0], inputs[1], parsed.loop, follow, scores)) return false;
        break;
      case NodeKind::kSelect:
        if (follow(inputs[1])) {
          Mask(node, inputs[0], true, inputs[2], scores);
        } else if (follow(inputs[2])) {
          Mask(node, inputs[0], false, inputs[1], scores);
        } else {
          return false;
        }
        break;
      default:
        return false;
    }
    if (!editor_.HasOneReader(tensor) && scores->near_miss.empty()) {
      scores->near_miss = absl::StrCat("the result of ", NameOf(node), " has several readers");
    }
    scores->nodes.push_back(node);
    return true;
  }

  template <typename Follow>
  bool FollowOneOf(int node, int a, int b, LoopOp op, Follow follow, Scores* scores) {
    int other = b;
    if (!follow(a)) {
      other = a;
      if (!follow(b)) return false;
    }
    if (op != LoopOp::kAdd) {
      scores->near_miss = absl::StrCat(NameOf(node), " is between the scores and the softmax");
    } else if (scores->mask >= 0) {
      scores->near_miss = absl::StrCat(NameOf(node), " adds a second mask");
    } else if (scores->condition >= 0) {
      scores->near_miss = absl::StrCat(NameOf(node), " adds to masked scores");
    }
    scores->mask = other;
    return true;
  }

  void Mask(int node, int condition, bool keeps_true, int fill, Scores* scores) {
    if (scores->condition >= 0) scores->near_miss = absl::StrCat(NameOf(node), " is a second selection");
    if (!editor_.IsConstant(fill) || editor_.tensor(fill).shape.num_elements() != 1) {
      scores->near_miss = absl::StrCat(NameOf(node), " selects no constant number");
      return;
    }
    scores->condition = condition;
    scores->keeps_true = keeps_true;
    scores->fill = FloatsOf(*editor_.tensor(fill).constant)[0];
  }

  std::optional<ParsedNode> Fuse(const Scores& scores, const Shape& shape, int probabilities, int reader) {
    const Product& first = editor_.parsed(scores.product).product;
    const Product& second = editor_.parsed(reader).product;
    const std::vector<int>& inputs = editor_.node(reader).inputs;
    if (inputs[second.left] != probabilities || inputs[second.right] == probabilities) return std::nullopt;
    product_left_ = second.left;
    if (second.rows != first.rows || second.depth != first.columns) return std::nullopt;
    if (first.rows > 1 && second.row_a != first.row_c) return std::nullopt;
    if ((first.columns > 1 && (first.column_c != 1 || second.depth_a != 1)) || second.offset_a != 0)
      return std::nullopt;
    if ((first.depth > 1 && first.depth_a != 1) || (second.columns > 1 && second.column_c != 1)) return std::nullopt;
    if (first.batches.size() != second.batches.size()) return std::nullopt;
    ParsedNode parsed;
    parsed.kind = NodeKind::kAttention;
    parsed.product = first;
    parsed.second = second;
    parsed.second.batches.clear();
    for (const Product::Batch& batch : first.batches) {
      const auto same = std::find_if(second.batches.begin(), second.batches.end(), [&](const Product::Batch& other) {
        return other.size == batch.size && other.a == batch.c;
      });
      if (same == second.batches.end()) return std::nullopt;
      parsed.second.batches.push_back(*same);
    }
    parsed.scale = scores.scale;
    parsed.has_mask = scores.mask >= 0;
    parsed.has_condition = scores.condition >= 0;
    parsed.keeps_true = scores.keeps_true;
    parsed.fill = scores.fill;
    for (const int tensor : {scores.mask, scores.condition}) {
      if (tensor < 0) continue;
      std::optional<std::vector<int64_t>> steps = StepsOf(editor_.tensor(tensor).shape, shape, first);
      if (!steps.has_value()) return std::nullopt;
      parsed.strides.push_back(*std::move(steps));
    }
    return parsed;
  }

  // Returns the steps of a mask of shape `from` for each batch of the product, and for its rows and columns.
  static std::optional<std::vector<int64_t>> StepsOf(const Shape& from, const Shape& shape, const Product& product) {
    const absl::StatusOr<Shape> joined = BroadcastShapes(from, shape);
    if (!joined.ok() || *joined != shape) return std::nullopt;
    const std::vector<int64_t> own = RowMajorStrides(shape), steps = BroadcastStrides(from, shape);
    std::vector<int64_t> result;
    const auto add = [&](int64_t size, int64_t stride) {
      if (size == 1) {
        result.push_back(0);
        return true;
      }
      for (int d = 0; d < shape.rank(); ++d) {
        if (shape.dim(d) != size || own[d] != stride) continue;
        result.push_back(steps[d]);
        return true;
      }
      return false;
    };
    for (const Product::Batch& batch : product.batches) {
      if (!add(batch.size, batch.c)) return std::nullopt;
    }
    if (!add(product.rows, product.row_c) || !add(product.columns, product.column_c)) return std::nullopt;
    return result;
  }

  PartitionEditor& editor_;
  int product_left_ = 0;  // The input of the second product that is the probabilities.
};

}  // namespace

void AbsorbViews(PartitionEditor* editor) {
  for (int i = 0; i < editor->num_nodes(); ++i) {
    if (editor->IsRemoved(i) || editor->parsed(i).kind != NodeKind::kProduct) continue;
    for (int input = 0; input < 2; ++input) AbsorbOperand(editor, i, input);
    AbsorbResult(editor, i);
  }
}

void FuseAttention(PartitionEditor* editor) { Attention(editor).Run(); }

}  // namespace onednn
}  // namespace permafrost
