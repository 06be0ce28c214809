// A constant input in the packed form that the inner loops read. It is packed in Prepare, or shared from a cache.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_PACKED_INPUT_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_PACKED_INPUT_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "graph/base/status.h"
#include "graph/tensor.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {

// The packed input. It owns its memory, or refers to memory of the cache.
class PackedInput {
 public:
  // Returns the packed floats; null if Take has not packed the input.
  const float* data() const { return own_.data() == nullptr ? DataOf(kept_) : own_.data(); }

  // Packs input i if its value is known, and releases the input; does nothing otherwise. `pack` writes the value as
  // `count` floats to packed memory, unless the cache has it. `form` must name everything that determines these floats
  // besides the value and the layout of `loops`. Returns ResourceExhausted if memory is exhausted. Always inline,
  // because this makes the smallest selective programs smaller.
  template <typename Pack>  // void(const float* value, float* packed)
  [[gnu::always_inline]] absl::Status Take(PrepareContext* context, int i, const InnerLoops& loops, int64_t count,
                                           absl::FunctionRef<std::string()> form, const Pack& pack) {
    const std::string key = kKeepsPackedWeights ? KeyOf(*context, i, loops, form) : std::string();
    if (!kKeepsPackedWeights || !Find(*context, key, count)) {
      const Tensor* value = context->input_value(i);
      if (value == nullptr) return absl::OkStatus();
      PF_ASSIGN_OR_RETURN(own_, FloatBuffer::Allocate(count));
      pack(value->data<float>(), own_.data());
      if (kKeepsPackedWeights) Keep(*context, key, count);
    }
    context->ReleaseInput(i);
    return absl::OkStatus();
  }

 private:
  // Packed bytes in a cache. Empty in a selective build, to save code size.
  struct NothingKept {};
  using MaybeKept = std::conditional_t<kKeepsPackedWeights, PackedBytes, NothingKept>;
  static const float* DataOf(const PackedBytes& kept) { return reinterpret_cast<const float*>(kept.bytes.data()); }
  static const float* DataOf(const NothingKept&) { return nullptr; }
  static void Set(const PackedBytes& bytes, PackedBytes* kept) { *kept = bytes; }
  static void Set(const PackedBytes&, NothingKept*) {}

  // Returns the cache key of the input; empty if there is no cache for it.
  static std::string KeyOf(const PrepareContext& context, int i, const InnerLoops& loops,
                           absl::FunctionRef<std::string()> form);
  bool Find(const PrepareContext& context, const std::string& key, int64_t count);
  void Keep(const PrepareContext& context, const std::string& key, int64_t count);

  FloatBuffer own_;
  [[no_unique_address]] MaybeKept kept_;
};

// Returns what determines the layout besides `form`: the instruction set of this processor, and the packing of matrices
// for it.
std::string ReferencePackingIdentity();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_PACKED_INPUT_H_
