// Maps ops to their eight-bit forms, and converts nodes to these.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_EIGHT_BIT_OPS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_EIGHT_BIT_OPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/eight_bit.h"

namespace permafrost {

struct EightBitForm {
  Op op;
  Op quantized;
  std::vector<absl::string_view> copied;       // Attributes that both ops have.
  std::vector<absl::string_view> input_types;  // Attributes that hold the type of the codes.
  absl::string_view output_type;  // The attribute that selects 32-bit codes; empty if the codes have eight bits.
  int raw_input = -1;             // An input that is not quantised, such as an axis, a size or a shape.
  bool ranges_by_kind = false;    // True if all minima precede all maxima, instead of a pair for each input.
};

// Returns the eight-bit form of `op`, or null if it has none.
const EightBitForm* FindEightBitForm(Op op);

// Returns the pass to run first so that `op` can be converted; empty if none is known.
absl::string_view WayToEightBits(Op op);

// Converts nodes one after the other. Converted nodes share the codes of tensors that several of them read.
class EightBitConverter {
 public:
  // `fallback` is the range of 32-bit results; without it the range is measured at run time. `shapes` describe the
  // graph in its current state, and may be empty. All arguments must outlive this.
  EightBitConverter(Graph* graph, std::optional<FloatBounds> fallback, const ShapeMap& shapes, PassContext* context);

  // Turns `node` into the Dequantize of its eight-bit form `<node>/eightbit`. Returns false if the node is left
  // unchanged; a miss gives the reason if the form does not support an attribute or input of the node. Returns
  // InvalidArgument if an attribute without a default is missing. O(inputs + elements of constants).
  absl::StatusOr<bool> Convert(Node* node, const EightBitForm& form);

 private:
  absl::StatusOr<bool> IsFloat(const Node& node, const EightBitForm& form) const;
  absl::StatusOr<std::string> Objection(const Node& node, const EightBitForm& form);
  std::string ShapeObjection(const Node& node) const;
  std::string ConstantObjection(const Node& node, const EightBitForm& form);
  absl::StatusOr<Node*> AddMain(Node* node, const EightBitForm& form);
  absl::StatusOr<Node*> Narrow(Node* node, Node* main);

  Graph* graph_;
  std::optional<FloatBounds> fallback_;
  const ShapeMap& shapes_;
  PassContext* context_;
  const bool has_loops_;
  Quantizer quantizer_;
  absl::flat_hash_map<const Node*, std::string> constants_;  // Reason why a constant cannot be quantised.
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_EIGHT_BIT_OPS_H_
