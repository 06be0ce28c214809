// Quantised tensors of a graph under export: their scales, and the operators that end at marks.
//
// A quantised operator of the graph is UniformDequantize nodes, float ops, and a UniformQuantize with kRoundingAttr
// (graph/analysis/uniform_quantization.h). It is written as the operator that the float ops have, with the tensors of
// codes as operands and result. An operator that moves codes is an op on integers, and its tensors have the scales of
// the tensors that it reads.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_EXPORT_QUANTIZED_H_
#define PERMAFROST_IO_FORMATS_TFLITE_EXPORT_QUANTIZED_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/graph.h"
#include "io/formats/tflite/schema_generated.h"

namespace permafrost {

// The scales of the tensors of codes of a graph.
class QuantizedTensors {
 public:
  QuantizedTensors() = default;
  // Reads the scales from Uniform nodes and spreads them over the ops that move codes. `order` is topological and
  // contains all nodes. Returns InvalidArgument, with the node, for scales that are not constant or not valid.
  static absl::StatusOr<QuantizedTensors> Find(const std::vector<Node*>& order);

  // Returns the scales of a tensor of codes, or null.
  const UniformScales* ScalesOf(TensorRef codes) const;
  // The same, and for the result of a UniformDequantize those of its codes.
  const UniformScales* ScalesBehind(TensorRef ref) const;
  // Returns the type of the codes that a marked node ends with.
  static absl::StatusOr<DType> TypeOfCodes(const Node& end);

 private:
  absl::flat_hash_map<TensorRef, UniformScales> scales_;
};

// True for a node with a mark, for UniformQuantize and for UniformDequantize.
bool IsQuantizedEnd(const Node& node);

// Returns the UniformDequantize result before nodes that change the layout of weights: Transpose and Reshape.
TensorRef LayoutSource(TensorRef weights);

// Returns the codes of int8, one in a byte, as pairs with the first in the low half of a byte.
std::string PackedInt4(absl::string_view codes);

flatbuffers::Offset<tflite::QuantizationParameters> EncodedScales(const UniformScales& scales,
                                                                  flatbuffers::FlatBufferBuilder* builder);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_EXPORT_QUANTIZED_H_
