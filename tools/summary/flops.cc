// Estimates the FLOPs of one inference.
#include "tools/summary/flops.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "graph/analysis/node_flops.h"
#include "graph/functions/function.h"

namespace permafrost {

bool CountFlops(const Node& node, const ShapeMap& shapes, std::optional<uint64_t>* flops) {
  const auto input = [&](int i) {
    return i < node.num_data_inputs() ? shapes.Of(node.input(i)) : Shape::UnknownRank();
  };
  const absl::Span<const Shape> outputs = shapes.OutputsOf(node);
  return CountNodeFlops(node, input, outputs.empty() ? Shape::UnknownRank() : outputs[0], flops);
}

absl::StatusOr<ShapeMap> ShapesToCount(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed) {
  ShapeInferenceOptions options;
  options.fed = fed;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kPlaceholder) continue;
    absl::StatusOr<Shape> shape = ShapeAttr(*node, "shape");
    if (!shape.ok() || !shape->has_rank() || shape->rank() == 0 || shape->dim(0) != kUnknownDim) continue;
    shape->set_dim(0, 1);
    options.fed.emplace(std::string(node->name()), *std::move(shape));
  }
  return InferShapes(graph, options);
}

namespace {

// Maximum number of calls to follow. Functions in a small file may call each other a thousand million times.
constexpr int kMostCalls = 10000;
constexpr int kDeepestCall = 64;

struct Counts {
  std::map<std::string, uint64_t> by_op;
  uint64_t total = 0;
  size_t num_unknown = 0;

  void Add(const std::string& op, uint64_t flops) {
    if (__builtin_add_overflow(total, flops, &total)) {
      total -= flops;
      ++num_unknown;
    } else {
      by_op[op] += flops;
    }
  }
  void Add(const Counts& other) {
    for (const auto& [op, flops] : other.by_op) Add(op, flops);
    num_unknown += other.num_unknown;
  }
};

// Counts nodes, and the FLOPs of called functions.
class Counter {
 public:
  explicit Counter(const FunctionLibrary* library) : library_(library) {}

  void Count(const Graph& graph, const ShapeMap& shapes, int depth, Counts* counts) {
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      std::optional<uint64_t> flops;
      if (CountFlops(*node, shapes, &flops)) {
        if (flops.has_value()) {
          counts->Add(std::string(node->op().name()), *flops);
        } else {
          ++counts->num_unknown;
        }
      } else if (library_ != nullptr) {
        CountCall(*node, shapes, depth, counts);
      }
    }
  }

 private:
  void CountCall(const Node& node, const ShapeMap& shapes, int depth, Counts* counts) {
    std::vector<FunctionRef> functions;
    const auto add = [&](absl::string_view key) {
      const AttrValue* attr = node.FindAttr(key);
      if (attr == nullptr) return;
      if (attr->kind() == AttrValue::Kind::kList) {
        if (auto list = attr->AsFunctionList(); list.ok()) functions = *std::move(list);
      } else if (auto function = attr->AsFunction(); function.ok()) {
        functions.push_back(*std::move(function));
      }
    };
    int first_argument = 0;
    bool is_choice = false;
    switch (node.op().id()) {
      case ops::kPartitionedCall:
      case ops::kStatefulPartitionedCall:
        add("f");
        break;
      case ops::kIf:
      case ops::kStatelessIf:
        add("then_branch");
        add("else_branch");
        first_argument = 1;
        is_choice = true;
        break;
      case ops::kCase:
      case ops::kStatelessCase:
        add("branches");
        first_argument = 1;
        is_choice = true;
        break;
      case ops::kWhile:
      case ops::kStatelessWhile:
        add("cond");
        add("body");
        break;
      default: {
        // Old graphs call a function with a node whose op is its name.
        if (node.op().is_known() || library_->Find(node.op().name()) == nullptr) return;
        FunctionRef& function = functions.emplace_back();
        function.name = std::string(node.op().name());
        for (const Attr& attr : node.attrs()) function.attrs.emplace_back(attr.key, attr.value);
      }
    }
    std::vector<Shape> arguments;
    for (int i = first_argument; i < node.num_data_inputs(); ++i) arguments.push_back(shapes.Of(node.input(i)));
    Counts largest;
    for (const FunctionRef& function : functions) {
      Counts one;
      if (!CountFunction(function, arguments, depth + 1, &one)) ++one.num_unknown;
      if (!is_choice) counts->Add(one);
      if (is_choice && (one.total > largest.total || one.num_unknown > largest.num_unknown)) largest = std::move(one);
    }
    if (is_choice) counts->Add(largest);
  }

  // Returns false if the body cannot be counted.
  bool CountFunction(const FunctionRef& function, const std::vector<Shape>& arguments, int depth, Counts* counts) {
    if (depth > kDeepestCall || ++num_calls_ > kMostCalls) return false;
    const absl::StatusOr<std::unique_ptr<Graph>> body = library_->Instantiate(function);
    if (!body.ok()) return false;
    ShapeInferenceOptions options;
    const std::vector<Node*> args = ArgsOf(**body);
    for (size_t i = 0; i < args.size() && i < arguments.size(); ++i) {
      options.fed.emplace(std::string(args[i]->name()), arguments[i]);
    }
    const absl::StatusOr<ShapeMap> shapes = InferShapes(**body, options);
    if (!shapes.ok()) return false;
    Count(**body, *shapes, depth, counts);
    return true;
  }

  const FunctionLibrary* library_;  // Null if the graph has no readable library.
  int num_calls_ = 0;
};

}  // namespace

FlopsEstimate EstimateFlops(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed) {
  FlopsEstimate estimate;
  const absl::StatusOr<ShapeMap> shapes = ShapesToCount(graph, fed);
  estimate.status = shapes.status();
  if (!shapes.ok()) return estimate;
  const absl::StatusOr<FunctionLibrary> library = FunctionLibrary::Of(graph);
  Counts counts;
  Counter(library.ok() && !library->empty() ? &*library : nullptr).Count(graph, *shapes, 0, &counts);
  estimate.total = counts.total;
  estimate.num_unknown = counts.num_unknown;
  estimate.by_op.assign(counts.by_op.begin(), counts.by_op.end());
  std::stable_sort(estimate.by_op.begin(), estimate.by_op.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return estimate;
}

}  // namespace permafrost
