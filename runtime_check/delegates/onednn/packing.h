// Weights that were packed before: what they are called, and what is kept beside them.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PACKING_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PACKING_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/weighted.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {
namespace onednn {

// What was found out of the weights, so that nobody has to read them for it.
struct WeightFacts {
  bool has_non_finite = false;
  std::vector<float> scales;  // Of the output channels of weights of eight bits; else empty.
  // The op's bias, put right for what narrow weights lose; none for weights of floats, which lose nothing.
  std::optional<std::vector<float>> bias;
};

// Says all that the facts, and the weights but for their layout, depend on beside the model's weights: the op, what is
// folded into it, and the type of its input.
std::string PackingKey(const WeightedOp& op, Element source);

// Every field of the description, or nothing for a layout that is not one of plain blocks.
std::string LayoutText(const dnnl::memory::desc& desc);

// Nothing where none are kept, or what is kept does not fit the op.
std::optional<WeightFacts> FindFacts(const WeightedOp& op, const std::string& key, PackedWeights* packed);
void KeepFacts(const WeightFacts& facts, const std::string& key, PackedWeights* packed);

// Nothing also where they have another size than the layout says.
std::optional<PackedBytes> FindPacked(const std::string& key, const dnnl::memory::desc& layout, PackedWeights* packed);
void KeepPacked(const std::string& key, const dnnl::memory& memory, PackedWeights* packed);

// The library, its version and build, and the instructions that it uses here: layouts are its own business.
std::string PackingIdentity();

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PACKING_H_
