// A constant input in the form in which the inner loops read it, made in Prepare or kept from another session.
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

// Owned, or in memory that somebody else keeps.
class PackedInput {
 public:
  // Null where nothing was taken.
  const float* data() const { return own_.data() == nullptr ? DataOf(kept_) : own_.data(); }

  // Takes input i, whose known value `pack` writes as `count` floats to packed memory, unless it was kept, and releases
  // it. `form` says all on which those floats depend beside the value and the layout of `loops`. Does nothing where the
  // value is not known before the run. ResourceExhausted when memory does not suffice.
  // In line, since that is what the smallest selective programs are built with.
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
  // What others keep. Nothing in a selective build, where each byte counts.
  struct NothingKept {};
  using MaybeKept = std::conditional_t<kKeepsPackedWeights, PackedBytes, NothingKept>;
  static const float* DataOf(const PackedBytes& kept) { return reinterpret_cast<const float*>(kept.bytes.data()); }
  static const float* DataOf(const NothingKept&) { return nullptr; }
  static void Set(const PackedBytes& bytes, PackedBytes* kept) { *kept = bytes; }
  static void Set(const PackedBytes&, NothingKept*) {}

  // Empty where nobody keeps the input.
  static std::string KeyOf(const PrepareContext& context, int i, const InnerLoops& loops,
                           absl::FunctionRef<std::string()> form);
  bool Find(const PrepareContext& context, const std::string& key, int64_t count);
  void Keep(const PrepareContext& context, const std::string& key, int64_t count);

  FloatBuffer own_;
  [[no_unique_address]] MaybeKept kept_;
};

// What the layout depends on beside the form: the instructions of this processor, and how matrices are packed for them.
std::string ReferencePackingIdentity();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_PACKED_INPUT_H_
