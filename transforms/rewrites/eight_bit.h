// Building blocks of eight-bit graphs: tensors of codes with their range, and the nodes that quantise and dequantise.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_EIGHT_BIT_H_
#define PERMAFROST_TRANSFORMS_REWRITES_EIGHT_BIT_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

// Quantisation mode MIN_FIRST: code c represents round(min / step) * step + c * step.
inline constexpr absl::string_view kCodingMode = "MIN_FIRST";

// A tensor of codes and the float scalars that bound its range.
struct EightBitTensor {
  TensorRef codes;
  TensorRef min;
  TensorRef max;
};
// Returns outputs 0, 1 and 2 of a quantised op.
inline EightBitTensor CodedOutputOf(Node* node) { return {{node, 0}, {node, 1}, {node, 2}}; }

struct FloatBounds {
  float min = 0;
  float max = 0;
};

// Adds a node before `position`, on its device, named `name`; a suffix is appended if that name is taken.
absl::StatusOr<Node*> AddNodeAt(Graph* graph, absl::string_view name, Op op, Node* position);

// Adds a Const scalar in the same way. `wait_for`, if not null, becomes its control input. A constant without control
// inputs is outside all loops, and a node within a loop cannot read it.
absl::StatusOr<Node*> AddScalarAt(Graph* graph, absl::string_view name, float value, Node* position, Node* wait_for);

// Returns true if the graph has loops of V1 control flow, so that constants need control inputs.
bool HasLoops(const Graph& graph);

// Turns `node` into the Dequantize of `coded`. It keeps its name, place, device and users; its control inputs are
// removed.
void BecomeDequantize(Graph* graph, Node* node, const EightBitTensor& coded);

// Adds a Requantize: codes of 32 bits with range [min, max]  =>  codes of eight bits.
absl::StatusOr<Node*> AddRequantize(Graph* graph, absl::string_view name, const EightBitTensor& wide, TensorRef min,
                                    TensorRef max, Node* position);

// Return true for a Dequantize, or a QuantizeV2, of eight-bit codes in the mode MIN_FIRST with one range per tensor.
bool IsPlainDequantize(const Node& node);
bool IsPlainQuantize(const Node& node, DType codes);

// Adds the nodes that measure the range of a float tensor at run time and quantise the tensor to it. Each tensor is
// quantised once per device, whatever the number of its readers.
//
//   s   =>   QuantizeV2 P/s/quantize of s, Min P/s/min and Max P/s/max over Reshape P/s/reshape to one dimension
class Quantizer {
 public:
  explicit Quantizer(Graph* graph) : graph_(graph) {}

  // Returns the codes of `tensor` for `consumer`; P is the consumer's name with "_eightbit". If a Dequantize produces
  // the tensor, returns the codes that the Dequantize reads.
  absl::StatusOr<EightBitTensor> Quantize(TensorRef tensor, Node* consumer);

 private:
  Graph* graph_;
  absl::flat_hash_map<std::pair<TensorRef, std::string>, Node*> quantized_;  // By tensor and device.
};

// Returns the codes that make `quantize` redundant: `quantize` was made by a Quantizer, and its tensor comes from a
// Dequantize of those codes. Otherwise returns nothing.
std::optional<EightBitTensor> CodesBehind(const Node& quantize);

// Returns true for a Reshape made by a Quantizer: its readers use only the extremes of its values, to quantise a
// tensor.
bool IsPartOfQuantizer(const Node& reshape);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_EIGHT_BIT_H_
