// Comparisons and logic with broadcasting.
#include <memory>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/string_pairs.h"

namespace permafrost {
namespace {

struct LessOp {
  template <typename T>
  static PF_INLINE bool Of(T x, T y) {
    return x < y;
  }
};
struct LessEqualOp {
  template <typename T>
  static PF_INLINE bool Of(T x, T y) {
    return x <= y;
  }
};
struct GreaterOp {
  template <typename T>
  static PF_INLINE bool Of(T x, T y) {
    return x > y;
  }
};
struct GreaterEqualOp {
  template <typename T>
  static PF_INLINE bool Of(T x, T y) {
    return x >= y;
  }
};
struct EqualOp {
  template <typename T>
  static PF_INLINE bool Of(const T& x, const T& y) {
    return x == y;
  }
};
struct NotEqualOp {
  template <typename T>
  static PF_INLINE bool Of(const T& x, const T& y) {
    return x != y;
  }
};
struct AndOp {
  template <typename T>
  static PF_INLINE bool Of(T x, T y) {
    return x & y;
  }
};
struct OrOp {
  template <typename T>
  static PF_INLINE bool Of(T x, T y) {
    return x | y;
  }
};

template <typename Op>
constexpr BinaryLoops WithBool(BinaryLoops loops) {
  loops.for_bool = RunBinary<Op, bool>;
  return loops;
}

constexpr BinaryLoops kLess = BinaryOfNumbers<LessOp>();
constexpr BinaryLoops kLessEqual = BinaryOfNumbers<LessEqualOp>();
constexpr BinaryLoops kGreater = BinaryOfNumbers<GreaterOp>();
constexpr BinaryLoops kGreaterEqual = BinaryOfNumbers<GreaterEqualOp>();
constexpr BinaryLoops kEqual = WithComplex<EqualOp>(WithBool<EqualOp>(BinaryOfNumbers<EqualOp>()));
constexpr BinaryLoops kNotEqual = WithComplex<NotEqualOp>(WithBool<NotEqualOp>(BinaryOfNumbers<NotEqualOp>()));
constexpr BinaryLoops kAnd = WithBool<AndOp>({});
constexpr BinaryLoops kOr = WithBool<OrOp>({});

template <const BinaryLoops& loops>
Kernel OrderKernel(const char* formula) {
  return Kernel(formula).TypeNumbers("T", NumberTypes()).Prepare(PrepareBinary<loops>).Compute(ComputeBinaryLoops);
}

// --- Equal, NotEqual -------------------------------------------------------------------------------------------------

// Without incompatible_shape_error, tensors whose shapes do not broadcast are not equal; the result is one scalar.
template <const BinaryLoops& loops>
absl::Status PrepareEquality(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(bool shape_error, BoolAttr(context->node(), "incompatible_shape_error"));
  if (!shape_error && !BroadcastShapes(context->input_shape(0), context->input_shape(1)).ok()) {
    context->SetOutputShape(0, Shape());
    return absl::OkStatus();
  }
  if (context->input_type(0) == DType::kString) return PrepareStringPairs(context);
  return PrepareBinaryLoops(context, &loops);
}

template <typename Op, bool value_of_different_shapes>
absl::Status ComputeEquality(ComputeContext* context) {
  if (context->raw_state() == nullptr) {
    *context->output<bool>(0) = value_of_different_shapes;
    return absl::OkStatus();
  }
  if (context->input_at(0).dtype != DType::kString) return ComputeBinaryLoops(context);
  bool* output = context->output<bool>(0);
  ForEachStringPair(context,
                    [&](const std::string& x, const std::string& y, int64_t to) { output[to] = Op::Of(x, y); });
  return absl::OkStatus();
}

std::vector<DType> EqualityTypes() {
  std::vector<DType> types = NumberAndComplexTypes();
  for (const DType type :
       {DType::kBool, DType::kString, DType::kQInt8, DType::kQUint8, DType::kQInt16, DType::kQUint16, DType::kQInt32}) {
    types.push_back(type);
  }
  return types;
}

// --- LogicalNot ------------------------------------------------------------------------------------------------------

absl::Status ComputeNot(ComputeContext* context) {
  const bool* x = context->input<bool>(0);
  bool* y = context->output<bool>(0);
  context->threads().ParallelFor(context->input_shape(0).num_elements(), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = !x[i];
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Less) { return OrderKernel<kLess>("x < y"); }
DEFINE_KERNEL(LessEqual) { return OrderKernel<kLessEqual>("x <= y"); }
DEFINE_KERNEL(Greater) { return OrderKernel<kGreater>("x > y"); }
DEFINE_KERNEL(GreaterEqual) { return OrderKernel<kGreaterEqual>("x >= y"); }

DEFINE_KERNEL(Equal) {
  return Kernel("x == y")
      .TypeNumbers("T", EqualityTypes())
      .Prepare(PrepareEquality<kEqual>)
      .Compute(ComputeEquality<EqualOp, false>);
}

DEFINE_KERNEL(NotEqual) {
  return Kernel("x != y")
      .TypeNumbers("T", EqualityTypes())
      .Prepare(PrepareEquality<kNotEqual>)
      .Compute(ComputeEquality<NotEqualOp, true>);
}

DEFINE_KERNEL(LogicalAnd) {
  return Kernel("x and y").InPlace(0).InPlace(1).Prepare(PrepareBinary<kAnd>).Compute(ComputeBinaryLoops);
}

DEFINE_KERNEL(LogicalOr) {
  return Kernel("x or y").InPlace(0).InPlace(1).Prepare(PrepareBinary<kOr>).Compute(ComputeBinaryLoops);
}

DEFINE_KERNEL(LogicalNot) { return Kernel("not x").InPlace(0).Prepare(SameShape).Compute(ComputeNot); }

}  // namespace permafrost
