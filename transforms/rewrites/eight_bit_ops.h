// Ops that have a form which computes on eight-bit codes, and putting that form in their place.
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
  std::vector<absl::string_view> copied;       // Attributes that both have.
  std::vector<absl::string_view> input_types;  // Attributes that hold the type of the codes.
  absl::string_view output_type;  // The attribute that asks for codes of 32 bits; empty when they have eight.
  int raw_input = -1;             // An input that is not quantised: an axis, a size, a shape.
  bool ranges_by_kind = false;    // All minima and then all maxima, instead of a pair for each input.
};

// Null for an op that has none.
const EightBitForm* FindEightBitForm(Op op);

// What to do before the pass so that `op` is converted, for ops of which that is often asked; empty for others.
absl::string_view WayToEightBits(Op op);

// Converts nodes one after the other; they share the codes of the tensors that they read.
class EightBitConverter {
 public:
  // `fallback` is the range of results of 32 bits, which otherwise is found when the graph runs. `shapes` are those of
  // the graph as it is, and may be empty. All must outlive this.
  EightBitConverter(Graph* graph, std::optional<Range> fallback, const ShapeMap& shapes, PassContext* context);

  // `node` becomes the Dequantize of its eight-bit form `<node>/eightbit`. False, and a miss where the form has no way
  // to say what the node does, when it is left alone. InvalidArgument when an attribute is missing that has no default.
  // O(inputs + elements of constants).
  absl::StatusOr<bool> Convert(Node* node, const EightBitForm& form);

 private:
  absl::StatusOr<bool> IsFloat(const Node& node, const EightBitForm& form) const;
  absl::StatusOr<std::string> Objection(const Node& node, const EightBitForm& form);
  std::string ShapeObjection(const Node& node) const;
  std::string ConstantObjection(const Node& node, const EightBitForm& form);
  absl::StatusOr<Node*> AddMain(Node* node, const EightBitForm& form);
  absl::StatusOr<Node*> Narrow(Node* node, Node* main);

  Graph* graph_;
  std::optional<Range> fallback_;
  const ShapeMap& shapes_;
  PassContext* context_;
  const bool has_loops_;
  Quantizer quantizer_;
  absl::flat_hash_map<const Node*, std::string> constants_;  // What is wrong with them.
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_EIGHT_BIT_OPS_H_
