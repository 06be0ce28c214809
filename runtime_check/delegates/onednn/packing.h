// Keys and metadata of packed weights, which are cached so that later runs of the program do not pack them again.
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

// Properties derived from the weights, cached so that the weights need not be read again.
struct WeightFacts {
  bool has_non_finite = false;
  std::vector<float> scales;  // One per output channel of 8-bit weights; else empty.
  // The bias of the op, corrected for the quantisation error of 8-bit and bfloat16 weights; none for float weights.
  std::optional<std::vector<float>> bias;
};

// Returns a key with everything that determines facts and packed weights, except the values of the model's weights and
// the layout: the op, the steps folded into it, and the type of its input.
std::string PackingKey(const WeightedOp& op, Element source);

// Returns every field of the description as text, or an empty string if the layout is not one of plain blocks.
std::string LayoutText(const dnnl::memory::desc& desc);

// FindFacts returns nothing if no facts are cached, or if the cached facts do not fit the op.
std::optional<WeightFacts> FindFacts(const WeightedOp& op, const std::string& key, PackedWeights* packed);
void KeepFacts(const WeightFacts& facts, const std::string& key, PackedWeights* packed);

// FindPacked returns nothing if no weights are cached, or if their size differs from the size of the layout.
std::optional<PackedBytes> FindPacked(const std::string& key, const dnnl::memory::desc& layout, PackedWeights* packed);
void KeepPacked(const std::string& key, const dnnl::memory& memory, PackedWeights* packed);

// Returns the library, its version and build, and the instruction set that it uses on this machine. Layouts are private
// to the library, so all of these may change them.
std::string PackingIdentity();

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PACKING_H_
