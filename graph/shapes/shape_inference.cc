// Implements shape inference: visits the graph in topological order and calls each op's shape function. The values of
// small integer tensors are computed along the way, by graph/shapes/integer_propagation.h.
#include "graph/shapes/shape_inference.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/inferred_shapes.h"
#include "graph/shapes/integer_propagation.h"
#include "graph/shapes/known_integers.h"
#include "graph/shapes/shape_reads.h"

namespace permafrost {

bool KnownIntegers::AllKnown() const { return std::find(elements.begin(), elements.end(), kUnknown) == elements.end(); }

const Shape& ShapeContext::input(int i) const {
  static const auto* const unknown = new Shape(Shape::UnknownRank());
  return i >= 0 && i < num_inputs() && inputs_[i] != nullptr ? *inputs_[i] : *unknown;
}

const KnownIntegers* ShapeContext::integers(int i) const {
  return i >= 0 && i < num_inputs() ? values_.Integers(node_.input(i)) : nullptr;
}

absl::Status ShapeContext::RequireRank(int i, int rank) const {
  if (!input(i).has_rank() || input(i).rank() == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " has the shape ", input(i).ToString(), ", expected rank ", rank));
}

const Shape* ShapeMap::Find(TensorRef ref) const {
  const absl::Span<const Shape> outputs = OutputsOf(*ref.node);
  return ref.port >= 0 && static_cast<size_t>(ref.port) < outputs.size() ? &outputs[ref.port] : nullptr;
}

Shape ShapeMap::Of(TensorRef ref) const {
  const Shape* shape = Find(ref);
  return shape != nullptr ? *shape : Shape::UnknownRank();
}

absl::Span<const Shape> ShapeMap::OutputsOf(const Node& node) const {
  if (node.id() >= by_node_.size()) return {};
  const Range& range = by_node_[node.id()];
  return absl::MakeConstSpan(shapes_).subspan(range.start, range.size);
}

namespace {

// Forwards known values and records the consumer: a shape function, or the propagation of values for a node.
class RecordingSource : public ValueSource {
 public:
  explicit RecordingSource(const ValueSource& source) : source_(source) {}

  const KnownIntegers* Integers(TensorRef ref) const override {
    const KnownIntegers* const known = source_.Integers(ref);
    if (known != nullptr) (is_for_shape_ ? roots_ : derived_[consumer_]).push_back(ref.node->id());
    return known;
  }

  // Sets the consumer of the following requests: the shapes of `node`, or its values.
  void SetConsumer(const Node& node, bool is_for_shape) {
    consumer_ = node.id();
    is_for_shape_ = is_for_shape;
  }

  // Returns, by id, every node that a shape depends on: the values read by shape functions and everything they are
  // derived from.
  std::vector<bool> Reached(size_t id_limit) const {
    std::vector<bool> reached(id_limit, false);
    std::vector<uint32_t> pending = roots_;
    while (!pending.empty()) {
      const uint32_t id = pending.back();
      pending.pop_back();
      if (reached[id]) continue;
      reached[id] = true;
      const auto producers = derived_.find(id);
      if (producers != derived_.end())
        pending.insert(pending.end(), producers->second.begin(), producers->second.end());
    }
    return reached;
  }

 private:
  const ValueSource& source_;
  uint32_t consumer_ = 0;
  bool is_for_shape_ = true;
  mutable std::vector<uint32_t> roots_;                                   // Node ids.
  mutable absl::flat_hash_map<uint32_t, std::vector<uint32_t>> derived_;  // By node id: the ids of its producers.
};

}  // namespace

// Kahn's algorithm with a queue. The edge that closes a loop of V1 control flow, from NextIteration to Merge, is not
// waited for. Nodes in any other cycle or behind one are never reached and have unknown shapes.
class ShapeWalk {
 public:
  ShapeWalk(const Graph& graph, const ShapeInferenceOptions& options, bool records = false)
      : graph_(graph), options_(options), records_(records) {}

  absl::StatusOr<ShapeMap> Run() {
    map_.by_node_.resize(graph_.id_limit());
    map_.shapes_.reserve(graph_.num_nodes());
    std::vector<uint32_t> pending(graph_.id_limit(), 0);
    std::vector<const Node*> ready;
    ready.reserve(graph_.num_nodes());
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      uint32_t count = 0;
      for (int i = 0; i < node->num_inputs(); ++i) count += ClosesLoop(*node->input(i).node, *node) ? 0 : 1;
      pending[node->id()] = count;
      if (count == 0) ready.push_back(node);
    }
    for (size_t next = 0; next < ready.size(); ++next) {
      const Node& node = *ready[next];
      PF_RETURN_IF_ERROR(Visit(node));
      for (const Use& use : node.uses()) {
        if (ClosesLoop(node, *use.consumer)) continue;
        if (--pending[use.consumer->id()] == 0) ready.push_back(use.consumer);
      }
    }
    return std::move(map_);
  }

  // Moves out the integers. REQUIRES: Run has been called.
  std::unique_ptr<const ValueSource> TakeIntegers() {
    return std::make_unique<const IntegerPropagation>(std::move(integers_));
  }

  // Returns the nodes read by shapes. REQUIRES: recording was enabled, and Run has been called.
  std::vector<bool> NodesRead() const { return recording_.Reached(graph_.id_limit()); }

 private:
  static bool ClosesLoop(const Node& producer, const Node& consumer) {
    return (consumer.op() == ops::kMerge || consumer.op() == ops::kRefMerge) &&
           (producer.op() == ops::kNextIteration || producer.op() == ops::kRefNextIteration);
  }

  const ValueSource& values() const {
    if (records_) return recording_;
    return integers_;
  }

  absl::Status Visit(const Node& node) {
    const OpSchema* schema = FindSchema(node.op());
    const absl::StatusOr<int> num_outputs = schema == nullptr ? absl::StatusOr<int>(0) : NumOutputs(node);
    // The shapes are unknown if the number of outputs is. The validator reports the cause.
    if (schema == nullptr || !num_outputs.ok()) return absl::OkStatus();
    inputs_.clear();
    for (int i = 0; i < node.num_data_inputs(); ++i) inputs_.push_back(map_.Find(node.input(i)));
    recording_.SetConsumer(node, /*is_for_shape=*/true);
    ShapeContext context(node, inputs_, *num_outputs, values());
    const absl::Status status = schema->shape_function(&context);
    if (!status.ok()) {
      // Errors about an attribute already name the node.
      const bool named = absl::StartsWith(status.message(), node.Describe());
      return absl::InvalidArgumentError(named ? std::string(status.message())
                                              : absl::StrCat(node.Describe(), ": ", status.message()));
    }
    PF_RETURN_IF_ERROR(ApplyOptions(node, &context));
    Range range = {map_.shapes_.size(), context.outputs().size()};
    if (range.start + range.size > UINT32_MAX) {
      return absl::ResourceExhaustedError("the nodes have more than 2^32 - 1 outputs in all");
    }
    map_.by_node_[node.id()] = {static_cast<uint32_t>(range.start), static_cast<uint32_t>(range.size)};
    for (const Shape& shape : context.outputs()) {
      if (shape.has_rank() && shape.rank() > kMaxRank) {
        return absl::InvalidArgumentError(
            absl::StrCat(node.Describe(), ": an output has the rank ", shape.rank(), ", expected at most ", kMaxRank));
      }
    }
    recording_.SetConsumer(node, /*is_for_shape=*/false);
    integers_.Visit(context);
    // Must come last: the context refers to the shapes of the inputs, which may be moved by the insertion.
    const absl::Span<const Shape> outputs = context.outputs();
    map_.shapes_.insert(map_.shapes_.end(), outputs.begin(), outputs.end());
    return absl::OkStatus();
  }

  struct Range {
    size_t start;
    size_t size;
  };

  // Returns whether the shapes of the op's outputs follow from callers or from the bodies of functions.
  static bool CrossesFunctions(Op op) {
    return op == ops::k_Arg || op == ops::kIf || op == ops::kStatelessIf || op == ops::kWhile ||
           op == ops::kStatelessWhile || op == ops::kCase || op == ops::kStatelessCase;
  }

  // Sets the shape of what is read from a variable with a declared shape, or from a table of single values.
  static void ApplyResource(const Node& node, ShapeContext* context) {
    if (node.num_data_inputs() == 0) return;
    const Node& resource = *node.input(0).node;
    if (node.op() == ops::kReadVariableOp && resource.op() == ops::kVarHandleOp) {
      const absl::StatusOr<Shape> shape = ShapeAttr(resource, "shape");
      if (shape.ok()) context->set_output(0, *shape);
    } else if (node.op() == ops::kLookupTableFindV2 && resource.op() == ops::kHashTableV2) {
      context->set_output(0, context->input(1));
    }
  }

  absl::Status ApplyOptions(const Node& node, ShapeContext* context) const {
    if (context->num_outputs() == 0) return absl::OkStatus();
    ApplyResource(node, context);
    if (CrossesFunctions(node.op())) {
      if (const AttrValue* inferred = node.FindAttr(kInferredShapesAttr); inferred != nullptr) {
        const absl::StatusOr<std::vector<Shape>> shapes = inferred->AsShapeList();
        if (!shapes.ok()) {
          return Annotate(shapes.status(), absl::StrCat(node.Describe(), ": attr '", kInferredShapesAttr, "'"));
        }
        for (size_t i = 0; i < shapes->size(); ++i) context->set_output(static_cast<int>(i), (*shapes)[i]);
      }
    }
    if (!options_.fed.empty()) {
      if (const auto fed = options_.fed.find(node.name()); fed != options_.fed.end()) {
        context->set_output(0, fed->second);
        return absl::OkStatus();
      }
    }
    const bool is_placeholder = node.op() == ops::kPlaceholder || node.op() == ops::kPlaceholderV2;
    if (!options_.use_output_shapes_attr || !is_placeholder) return absl::OkStatus();
    if (context->outputs()[0].has_rank()) return absl::OkStatus();
    const AttrValue* attr = node.FindAttr("_output_shapes");
    if (attr == nullptr) return absl::OkStatus();
    const absl::StatusOr<std::vector<Shape>> shapes = attr->AsShapeList();
    if (!shapes.ok()) return Annotate(shapes.status(), absl::StrCat(node.Describe(), ": attr '_output_shapes'"));
    if (!shapes->empty()) context->set_output(0, (*shapes)[0]);
    return absl::OkStatus();
  }

  const Graph& graph_;
  const ShapeInferenceOptions& options_;
  const bool records_;
  ShapeMap map_;
  std::vector<const Shape*> inputs_;  // Inputs of the node that is visited.
  IntegerPropagation integers_;
  RecordingSource recording_{integers_};
};

absl::StatusOr<ShapeMap> InferShapes(const Graph& graph, const ShapeInferenceOptions& options) {
  return ShapeWalk(graph, options).Run();
}

absl::StatusOr<ShapesAndIntegers> InferShapesAndIntegers(const Graph& graph, const ShapeInferenceOptions& options) {
  ShapeWalk walk(graph, options);
  PF_ASSIGN_OR_RETURN(ShapeMap shapes, walk.Run());
  return ShapesAndIntegers{std::move(shapes), walk.TakeIntegers()};
}

absl::StatusOr<std::vector<bool>> NodesReadByShapes(const Graph& graph) {
  const ShapeInferenceOptions options;
  ShapeWalk walk(graph, options, /*records=*/true);
  PF_RETURN_IF_ERROR(walk.Run().status());
  return walk.NodesRead();
}

}  // namespace permafrost
