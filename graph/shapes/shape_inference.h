// Static shapes of every output of a graph.
#ifndef PERMAFROST_GRAPH_SHAPES_SHAPE_INFERENCE_H_
#define PERMAFROST_GRAPH_SHAPES_SHAPE_INFERENCE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/shape.h"

namespace permafrost {

// The integers of a small int32 or int64 tensor, as far as they are known before the run.
struct KnownIntegers {
  static constexpr int64_t kUnknown = INT64_MIN;  // Stands for an element that is not known.

  Shape shape;  // Fully known.
  std::vector<int64_t> elements;

  bool AllKnown() const;
};

// Answers questions about values; implemented by the walk over the graph.
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  virtual const KnownIntegers* Integers(TensorRef ref) const = 0;
};

// What a shape function sees of its node, and where it puts its answer. A shape function is pure, gives an unknown
// shape where it cannot know better, and gives InvalidArgument (found, expected; the caller names the node) only for
// shapes or attributes under which the op cannot run.
class ShapeContext {
 public:
  // `inputs` has the shape of each data input, and lives as long as this; a null one is of unknown rank.
  ShapeContext(const Node& node, absl::Span<const Shape* const> inputs, size_t num_outputs, const ValueSource& values)
      : node_(node), inputs_(inputs), outputs_(num_outputs, Shape::UnknownRank()), values_(values) {}

  const Node& node() const { return node_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // The shape of data input i; an unknown rank when there is no such input.
  const Shape& input(int i) const;
  // The integers of data input i, or null when nothing is known of them.
  const KnownIntegers* integers(int i) const;
  // Shapes of outputs that do not exist are dropped.
  void set_output(int i, Shape shape) {
    if (i >= 0 && i < num_outputs()) outputs_[i] = std::move(shape);
  }
  absl::Span<const Shape> outputs() const { return outputs_; }

  // InvalidArgument unless the rank of input i is unknown or `rank`.
  absl::Status RequireRank(int i, int rank) const;

 private:
  const Node& node_;
  absl::Span<const Shape* const> inputs_;
  absl::InlinedVector<Shape, 1> outputs_;
  const ValueSource& values_;
};

// The shapes of all outputs of all nodes. A node outside the schema table, in a cycle or behind one has unknown shapes.
class ShapeMap {
 public:
  // Unknown rank for an output that does not exist.
  Shape Of(TensorRef ref) const;
  // One shape for each output; empty for a node that was not visited or whose number of outputs is not known.
  absl::Span<const Shape> OutputsOf(const Node& node) const;

 private:
  friend class ShapeWalk;
  const Shape* Find(TensorRef ref) const;  // Null for an output that does not exist or is not known.
  struct Range {
    uint32_t start = 0;
    uint32_t size = 0;
  };
  std::vector<Range> by_node_;  // By node id, ranges of shapes_.
  std::vector<Shape> shapes_;
};

struct ShapeInferenceOptions {
  // Shapes that override what a node says of itself, by node name (the shapes that are really fed).
  absl::flat_hash_map<std::string, Shape> fed;
  // Believe attribute `_output_shapes` of placeholders without a shape.
  bool use_output_shapes_attr = false;
};

// The largest rank of a shape: TensorFlow's limit.
inline constexpr int kMaxRank = 254;

// Visits every node once in topological order, O(nodes + edges). Small integer tensors (at most 1024 elements) are
// propagated through Shape, Pack, StridedSlice, Gather, Concat, arithmetic and the like, element by element, since
// shapes depend on them. InvalidArgument names the node whose inputs do not fit.
absl::StatusOr<ShapeMap> InferShapes(const Graph& graph, const ShapeInferenceOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_SHAPES_SHAPE_INFERENCE_H_
