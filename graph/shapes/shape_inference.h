// Infers the static shapes of all outputs of a graph.
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

// The elements of a small int32 or int64 tensor, as far as they are known statically.
struct KnownIntegers {
  static constexpr int64_t kUnknown = INT64_MIN;  // Represents an unknown element.

  Shape shape;  // Fully known.
  std::vector<int64_t> elements;

  bool AllKnown() const;
};

// Provides known values of tensors. Implemented by the traversal of the graph.
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  virtual const KnownIntegers* Integers(TensorRef ref) const = 0;
};

// Inputs and results of a shape function for one node. Shape functions are pure. They set an unknown shape if the shape
// cannot be inferred. They return InvalidArgument (found, expected; the caller adds the node) only for shapes or
// attributes with which the op cannot run.
class ShapeContext {
 public:
  // `inputs` holds the shape of each data input, or null for an unknown rank, and must outlive this object.
  ShapeContext(const Node& node, absl::Span<const Shape* const> inputs, size_t num_outputs, const ValueSource& values)
      : node_(node), inputs_(inputs), outputs_(num_outputs, Shape::UnknownRank()), values_(values) {}

  const Node& node() const { return node_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // Returns the shape of data input i, of unknown rank if there is no such input.
  const Shape& input(int i) const;
  // Returns the integers of data input i, or null if none are known.
  const KnownIntegers* integers(int i) const;
  // Ignores outputs that do not exist.
  void set_output(int i, Shape shape) {
    if (i >= 0 && i < num_outputs()) outputs_[i] = std::move(shape);
  }
  absl::Span<const Shape> outputs() const { return outputs_; }

  // Returns InvalidArgument unless the rank of input i is unknown or equal to `rank`.
  absl::Status RequireRank(int i, int rank) const;

 private:
  const Node& node_;
  absl::Span<const Shape* const> inputs_;
  absl::InlinedVector<Shape, 1> outputs_;
  const ValueSource& values_;
};

// The shapes of all outputs of all nodes. Nodes with unknown ops, and nodes in a cycle or behind one, have unknown
// shapes.
class ShapeMap {
 public:
  // Returns an unknown rank for an output that does not exist.
  Shape Of(TensorRef ref) const;
  // Returns one shape for each output. Returns an empty list for a node that was not visited or whose number of outputs
  // is unknown.
  absl::Span<const Shape> OutputsOf(const Node& node) const;

 private:
  friend class ShapeWalk;
  const Shape* Find(TensorRef ref) const;  // Returns null for an output that does not exist or is unknown.
  struct Range {
    uint32_t start = 0;
    uint32_t size = 0;
  };
  std::vector<Range> by_node_;  // Ranges of shapes_, by node id.
  std::vector<Shape> shapes_;
};

struct ShapeInferenceOptions {
  // Shapes of the values that will be fed, by node name. They override the shapes declared by the nodes.
  absl::flat_hash_map<std::string, Shape> fed;
  // Uses attribute `_output_shapes` of placeholders without a shape.
  bool use_output_shapes_attr = false;
};

// The largest rank of a shape: TensorFlow's limit.
inline constexpr int kMaxRank = 254;

// Infers all shapes in one visit of each node in topological order, O(nodes + edges). Because shapes depend on them,
// the elements of small integer tensors (at most 1024 elements) are propagated through Shape, Pack, StridedSlice,
// Gather, Concat, arithmetic and similar ops. Returns InvalidArgument, with the node, if the inputs of a node do not
// match.
absl::StatusOr<ShapeMap> InferShapes(const Graph& graph, const ShapeInferenceOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_SHAPES_SHAPE_INFERENCE_H_
