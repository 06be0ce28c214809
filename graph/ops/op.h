// Op types. Ops of the schema table have constants (ops::kConv2D); other names get a number at run time.
#ifndef PERMAFROST_GRAPH_OPS_OP_H_
#define PERMAFROST_GRAPH_OPS_OP_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace permafrost {

namespace ops {
// One enumerator for each row of ops.def, in the same order.
enum OpId : uint32_t {
#define OP(name, signature, attributes, traits, shape) k##name,
#include "graph/ops/ops.def"
#undef OP
  kNumKnownOps,
};
}  // namespace ops

// An op type: a value type that compares in one instruction. Thread-safe.
class Op {
 public:
  constexpr Op() : id_(ops::kNumKnownOps) {}  // The op with an empty name.
  constexpr Op(ops::OpId id) : id_(id) {}     // NOLINT: implicit, so that a node's op compares with ops::kAdd.

  // Returns the op with that name. Names outside the table are stored for the life of the process.
  static Op Named(absl::string_view name);

  absl::string_view name() const;
  bool is_known() const { return id_ < ops::kNumKnownOps; }
  uint32_t id() const { return id_; }

  friend constexpr bool operator==(Op a, Op b) { return a.id_ == b.id_; }
  friend constexpr bool operator!=(Op a, Op b) { return a.id_ != b.id_; }
  friend constexpr bool operator<(Op a, Op b) { return a.id_ < b.id_; }
  template <typename H>
  friend H AbslHashValue(H h, Op op) {
    return H::combine(std::move(h), op.id_);
  }

 private:
  explicit constexpr Op(uint32_t id) : id_(id) {}
  uint32_t id_;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_OPS_OP_H_
