// Bitwise operations on integers.
#include <algorithm>
#include <type_traits>

#include "runtime_check/kernel.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

struct And {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    return x & y;
  }
};
struct Or {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    return x | y;
  }
};
struct Xor {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    return x ^ y;
  }
};

// Shift counts out of range are clamped. Loops compute narrow types in wide ones, so kBits is the width of the type.
template <int kBits>
struct Left {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    const T by = std::min<T>(std::max<T>(y, 0), kBits - 1);
    return static_cast<T>(static_cast<Wrapping<T>>(x) << by);
  }
};
template <int kBits>
struct Right {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    return x >> std::min<T>(std::max<T>(y, 0), kBits - 1);
  }
};

template <typename Op>
constexpr BinaryLoops OfIntegers() {
  return {nullptr, nullptr, RunBinary<Op, int32_t>, RunBinary<Op, int64_t>, RunBinary<Op, uint64_t>, nullptr,
          1 << 15, ""};
}

struct Complement {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return ~x;
  }
};

constexpr UnaryLoops kInvert = {nullptr, nullptr, UnaryOf<Complement, int32_t>(), UnaryOf<Complement, int64_t>(),
                                UnaryOf<Complement, uint64_t>()};

absl::Status ComputePopulationCount(ComputeContext* context) {
  uint8_t* y = context->output<uint8_t>(0);
  DispatchOn<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      context->input_type(0), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* x = context->input<T>(0);
        context->threads().ParallelFor(
            context->input_shape(0).num_elements(), 1 << 15, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                y[i] = static_cast<uint8_t>(__builtin_popcountll(static_cast<std::make_unsigned_t<T>>(x[i])));
              }
            });
      });
  return absl::OkStatus();
}

constexpr BinaryLoops kAnd = OfIntegers<And>(), kOr = OfIntegers<Or>(), kXor = OfIntegers<Xor>();

template <template <int> class Shift>
absl::Status PrepareShift(PrepareContext* context) {
  static constexpr BinaryLoops k8 = OfIntegers<Shift<8>>(), k16 = OfIntegers<Shift<16>>(),
                               k32 = OfIntegers<Shift<32>>(), k64 = OfIntegers<Shift<64>>();
  switch (SizeOf(context->input_type(0))) {
    case 1:
      return PrepareBinaryLoops(context, &k8);
    case 2:
      return PrepareBinaryLoops(context, &k16);
    case 4:
      return PrepareBinaryLoops(context, &k32);
    default:
      return PrepareBinaryLoops(context, &k64);
  }
}

Kernel Bitwise(const char* summary, absl::Status (*prepare)(PrepareContext*)) {
  return Kernel(summary)
      .Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>("T")
      .InPlace(0)
      .InPlace(1)
      .Prepare(prepare)
      .Compute(ComputeBinaryLoops);
}

}  // namespace

DEFINE_KERNEL(BitwiseAnd) { return Bitwise("x & y", PrepareBinary<kAnd>); }
DEFINE_KERNEL(BitwiseOr) { return Bitwise("x | y", PrepareBinary<kOr>); }
DEFINE_KERNEL(BitwiseXor) { return Bitwise("x ^ y", PrepareBinary<kXor>); }
DEFINE_KERNEL(Invert) {
  return Kernel("~x")
      .Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>("T")
      .InPlace(0)
      .Prepare(PrepareUnary<kInvert>)
      .Compute(ComputeUnaryLoops);
}
DEFINE_KERNEL(PopulationCount) {
  return Kernel("the number of bits of x that are 1")
      .Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>("T")
      .Prepare(SameShape)
      .Compute(ComputePopulationCount);
}
DEFINE_KERNEL(LeftShift) { return Bitwise("x << y; y is clamped to [0, bits of the type - 1]", PrepareShift<Left>); }
DEFINE_KERNEL(RightShift) {
  return Bitwise("x >> y, preserving the sign; y is clamped to [0, bits of the type - 1]", PrepareShift<Right>);
}

}  // namespace permafrost
