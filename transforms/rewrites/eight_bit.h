// Building blocks of graphs that compute in eight bits: tensors of codes with the range that they span, and the nodes
// that take float to codes and back.
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

// How codes stand for numbers: code c of the mode MIN_FIRST means round(min / step) * step + c * step.
inline constexpr absl::string_view kCodingMode = "MIN_FIRST";

// Codes and the float scalars that bound what they stand for.
struct CodedTensor {
  TensorRef codes;
  TensorRef min;
  TensorRef max;
};
// Outputs 0, 1 and 2 of a quantised op.
inline CodedTensor CodedOutputOf(Node* node) { return {{node, 0}, {node, 1}, {node, 2}}; }

struct Range {
  float min = 0;
  float max = 0;
};

// A new node before `position`, on its device, named `name` or, where that is taken, with a suffix.
absl::StatusOr<Node*> AddNodeAt(Graph* graph, absl::string_view name, Op op, Node* position);

// A Const scalar, in the same way. `wait_for`, if not null, becomes its control input: a constant that waits for
// nothing stands outside of all loops, where a node within one cannot read it.
absl::StatusOr<Node*> AddScalarAt(Graph* graph, absl::string_view name, float value, Node* position, Node* wait_for);

// True when the graph has loops of V1 control flow, so that constants must be told where they belong.
bool HasLoops(const Graph& graph);

// `node` keeps its name, place, device and users, and becomes the float that the codes stand for; control inputs go.
void BecomeDequantize(Graph* graph, Node* node, const CodedTensor& coded);

// codes of 32 bits within the range [min, max]  =>  codes of eight bits
absl::StatusOr<Node*> AddRequantize(Graph* graph, absl::string_view name, const CodedTensor& wide, TensorRef min,
                                    TensorRef max, Node* position);

// True for a Dequantize, or a QuantizeV2, of eight-bit codes in the mode MIN_FIRST and with one range for all of the
// tensor.
bool IsPlainDequantize(const Node& node);
bool IsPlainQuantize(const Node& node, DType codes);

// Makes the nodes that find the range of a float tensor when the graph runs and code the tensor in it. A tensor is
// coded once for each device, however many read it.
//
//   s   =>   QuantizeV2 P/s/quantize of s, Min P/s/min and Max P/s/max over Reshape P/s/reshape to one dimension
class Quantizer {
 public:
  explicit Quantizer(Graph* graph) : graph_(graph) {}

  // The codes of `tensor` for `consumer`, whose name with "_eightbit" is P. Where a Dequantize makes the tensor, those
  // that it reads.
  absl::StatusOr<CodedTensor> Quantize(TensorRef tensor, Node* consumer);

 private:
  Graph* graph_;
  absl::flat_hash_map<std::pair<TensorRef, std::string>, Node*> quantized_;  // By tensor and device.
};

// The tensor in eight bits that `quantize` codes anew, when that is what a Quantizer makes and the tensor comes from a
// Dequantize: the codes that the Dequantize reads serve as well. Nothing otherwise.
std::optional<CodedTensor> CodesBehind(const Node& quantize);

// True for the Reshape that a Quantizer makes: only the extremes of its values are read, and only to code a tensor.
bool IsPartOfQuantizer(const Node& reshape);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_EIGHT_BIT_H_
