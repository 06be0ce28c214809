// Implements drawing of a graph. Scopes are drawn as boxes around their nodes, or, in large graphs, as single boxes
// that replace their nodes.
#include "io/formats/dot_format.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost {
namespace {

using absl::StrAppend;

// With more boxes than this a drawing is unreadable, and Graphviz takes minutes.
constexpr size_t kMostBoxes = 400;
// Maximum nesting depth of boxes.
constexpr size_t kMostScopes = 12;
constexpr size_t kFlushBytes = 1 << 16;

struct Look {
  absl::string_view words;  // Parts of op names that select this style.
  absl::string_view colour;
};
// The first match applies.
constexpr Look kLooks[] = {
    {"Placeholder _Arg", "#a6d96a"},                                              // Inputs.
    {"Const Variable VarHandle ImmutableConst", "#eeeeee"},                       // Constants and variables.
    {"Conv2D Conv3D Depthwise MatMul Einsum", "#9ecae1"},                         // Arithmetic.
    {"Pool Mean", "#bcbddc"},                                                     // Reduction of the resolution.
    {"Relu Prelu Sigmoid Tanh Softmax Elu Selu Softplus Softsign", "#fdae6b"},    // Activations.
    {"BatchNorm LRN Moments", "#c7e9c0"},                                         // Normalisation.
    {"Switch Merge Enter Exit NextIteration LoopCond While If Call", "#fb9a99"},  // Control flow.
    {"Reshape Transpose Concat Split Pack Slice Squeeze ExpandDims Pad Tile Gather Resize ToSpace ToDepth ToBatch",
     "#fff2ae"},  // Movement of data.
};

absl::string_view ColourOf(absl::string_view op) {
  for (const Look& look : kLooks) {
    for (const absl::string_view word : absl::StrSplit(look.words, ' ')) {
      if (op.find(word) != absl::string_view::npos) return look.colour;
    }
  }
  return "#ffffff";
}

// Returns `text` quoted and shortened, with the characters escaped that are special in DOT.
std::string Quoted(absl::string_view text) {
  constexpr size_t kMost = 120;
  std::string out = "\"";
  const absl::string_view shown = text.substr(0, kMost);
  for (const char c : shown) {
    if (c == '"' || c == '\\') out += '\\';
    out += absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\n' ? ' ' : c;
  }
  return absl::StrCat(out, shown.size() < text.size() ? "..." : "", "\"");
}

// Returns a label of several lines.
std::string Lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    const std::string quoted = Quoted(line);
    StrAppend(&out, out.empty() ? "" : "\\n", quoted.substr(1, quoted.size() - 2));
  }
  return absl::StrCat("\"", out, "\"");
}

// Returns the first `depth` components of a path, or the whole path.
absl::string_view Prefix(absl::string_view name, size_t depth) {
  size_t end = 0;
  for (size_t i = 0; i < depth; ++i) {
    end = name.find('/', end);
    if (end == absl::string_view::npos) return name;
    ++end;
  }
  return name.substr(0, end == 0 ? 0 : end - 1);
}

size_t DepthOf(absl::string_view name) { return static_cast<size_t>(std::count(name.begin(), name.end(), '/')) + 1; }

absl::string_view LastPiece(absl::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == absl::string_view::npos ? name : name.substr(slash + 1);
}

// One box of the drawing: a node, or all nodes of a scope.
struct Box {
  absl::string_view name;
  std::vector<const Node*> nodes;
};

class Drawing {
 public:
  Drawing(const Graph& graph, ByteSink* sink) : graph_(graph), sink_(sink) {
    absl::StatusOr<ShapeMap> shapes = InferShapes(graph);
    if (shapes.ok()) shapes_ = *std::move(shapes);
  }

  absl::Status Run() {
    Fold();
    text_ =
        "digraph model {\n"
        "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"Helvetica\", fontsize=10];\n"
        "  edge [fontname=\"Helvetica\", fontsize=8, color=\"#777777\"];\n";
    PF_RETURN_IF_ERROR(DrawBoxes());
    PF_RETURN_IF_ERROR(DrawEdges());
    text_ += "}\n";
    return Flush();
  }

 private:
  // Chooses the depth at which names are distinguished, as large as the limit on boxes allows.
  void Fold() {
    size_t deepest = 1;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      deepest = std::max(deepest, DepthOf(node->name()));
    }
    deepest = std::min(deepest, kMostScopes);
    size_t depth = graph_.num_nodes() <= kMostBoxes ? deepest + 1 : deepest;
    for (; depth > 1 && depth <= deepest && CountBoxes(depth) > kMostBoxes; --depth) {
    }
    const bool is_folded = depth <= deepest;
    box_of_.resize(graph_.id_limit());
    // Sorted by name, so that the boxes of a scope are adjacent.
    std::map<absl::string_view, size_t> by_name;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      by_name.emplace(is_folded ? Prefix(node->name(), depth) : node->name(), 0);
    }
    for (auto& [name, index] : by_name) {
      index = boxes_.size();
      boxes_.push_back({name, {}});
    }
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      const size_t index = by_name.find(is_folded ? Prefix(node->name(), depth) : node->name())->second;
      boxes_[index].nodes.push_back(node);
      box_of_[node->id()] = index;
    }
  }

  size_t CountBoxes(size_t depth) const {
    absl::flat_hash_set<absl::string_view> names;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      names.insert(Prefix(node->name(), depth));
    }
    return names.size();
  }

  absl::Status Flush() {
    PF_RETURN_IF_ERROR(sink_->Append(text_));
    text_.clear();
    return absl::OkStatus();
  }

  absl::Status FlushIfLarge() { return text_.size() > kFlushBytes ? Flush() : absl::OkStatus(); }

  std::string ShapeText(TensorRef ref) const {
    const Shape shape = shapes_.Of(ref);
    return shape.has_rank() ? shape.ToString() : "";
  }

  absl::Status DrawBoxes() {
    std::vector<absl::string_view> open;  // Components of the open scopes, outermost first.
    size_t num_clusters = 0;
    for (size_t i = 0; i < boxes_.size(); ++i) {
      std::vector<absl::string_view> scopes = absl::StrSplit(boxes_[i].name, '/');
      scopes.pop_back();
      if (scopes.size() > kMostScopes) scopes.resize(kMostScopes);
      size_t same = 0;
      while (same < scopes.size() && same < open.size() && scopes[same] == open[same]) ++same;
      for (; open.size() > same; open.pop_back()) StrAppend(&text_, std::string(2 * open.size(), ' '), "}\n");
      for (; open.size() < scopes.size(); ++num_clusters) {
        open.push_back(scopes[open.size()]);
        StrAppend(&text_, std::string(2 * open.size(), ' '), "subgraph cluster_", num_clusters,
                  " { label=", Quoted(open.back()), "; color=\"#bbbbbb\"; fontname=\"Helvetica\"; fontsize=10;\n");
      }
      StrAppend(&text_, std::string(2 * open.size() + 2, ' '), "n", i, " [", Face(boxes_[i]), "];\n");
      PF_RETURN_IF_ERROR(FlushIfLarge());
    }
    for (; !open.empty(); open.pop_back()) StrAppend(&text_, std::string(2 * open.size(), ' '), "}\n");
    return absl::OkStatus();
  }

  std::string Face(const Box& box) const {
    if (box.nodes.size() == 1) {
      const Node& node = *box.nodes[0];
      const absl::Span<const Shape> outputs = shapes_.OutputsOf(node);
      const std::string shape =
          node.op() == ops::kConst && !outputs.empty() && outputs[0].has_rank() ? outputs[0].ToString() : "";
      const std::string op = absl::StrCat(node.op().name(), shape.empty() ? "" : " ", shape);
      const bool is_endpoint = graph_.IsEndpoint(&node);
      return absl::StrCat("label=", Lines({std::string(LastPiece(node.name())), op}), ", fillcolor=\"",
                          ColourOf(node.op().name()), "\"", is_endpoint ? ", penwidth=2.5" : "");
    }
    absl::flat_hash_map<absl::string_view, size_t> counts;
    for (const Node* node : box.nodes) ++counts[node->op().name()];
    std::vector<std::pair<size_t, absl::string_view>> ops;
    for (const auto& [op, count] : counts) {
      if (op != "Const") ops.push_back({count, op});
    }
    std::sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    constexpr size_t kMostOps = 3;
    std::vector<std::string> lines = {absl::StrCat(LastPiece(box.name), "/"), absl::StrCat(box.nodes.size(), " nodes")};
    for (size_t i = 0; i < std::min(kMostOps, ops.size()); ++i) {
      lines.push_back(absl::StrCat(ops[i].first, " ", ops[i].second));
    }
    const absl::string_view colour = ops.empty() ? ColourOf("Const") : ColourOf(ops[0].second);
    return absl::StrCat("label=", Lines(lines), ", shape=folder, fillcolor=\"", colour, "\"");
  }

  struct Edge {
    size_t num_data = 0;
    size_t num_control = 0;
    TensorRef first;  // The first data output.
  };

  absl::Status DrawEdges() {
    std::map<std::pair<size_t, size_t>, Edge> edges;  // In the order of the boxes.
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      for (int i = 0; i < node->num_inputs(); ++i) {
        const TensorRef input = node->input(i);
        const size_t from = box_of_[input.node->id()], to = box_of_[node->id()];
        if (from == to && boxes_[from].nodes.size() > 1) continue;
        Edge& edge = edges[{from, to}];
        if (input.is_control()) {
          ++edge.num_control;
        } else if (++edge.num_data == 1) {
          edge.first = input;
        }
      }
    }
    for (const auto& [ends, edge] : edges) {
      std::string label = edge.num_data == 0   ? ""
                          : edge.num_data == 1 ? ShapeText(edge.first)
                                               : absl::StrCat(edge.num_data, " x");
      StrAppend(&text_, "  n", ends.first, " -> n", ends.second);
      if (edge.num_data == 0) {
        text_ += " [style=dashed]";
      } else if (!label.empty() && !(edge.num_data == 1 && edge.first.node->op() == ops::kConst)) {
        StrAppend(&text_, " [label=", Quoted(label), "]");
      }
      text_ += ";\n";
      PF_RETURN_IF_ERROR(FlushIfLarge());
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  ByteSink* sink_;
  ShapeMap shapes_;  // Empty if shapes cannot be inferred.
  std::vector<Box> boxes_;
  std::vector<size_t> box_of_;  // By node id.
  std::string text_;
};

absl::Status WriteDot(const Graph& graph, ByteSink* sink) { return Drawing(graph, sink).Run(); }

}  // namespace

const ModelFormat kDotFormat{"dot", "Graphviz drawing", ".dot", nullptr, nullptr, WriteDot, nullptr};

}  // namespace permafrost
