// Cast between all numeric types, and Bitcast.
//
// Conversions go through double, complex128 or int64, which represent every element exactly, so the number of loops
// grows linearly with the number of types. Pairs that are common in models have direct loops. (float to half needs no
// direct loop for accuracy: double represents the float exactly, so there is no double rounding.)
#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

constexpr int64_t kBlock = 256;
constexpr int64_t kGrain = 1 << 15;

// Converts a floating-point number to an integer as the processor does: rounds towards zero; NaN and numbers out of
// range become the smallest integer. Narrower integers take the low bits of int32, unsigned ones those of int64.
template <typename Wide>
Wide Truncate(double x) {
  // -2^31 or -2^63; its negation is the first value out of range.
  constexpr double kLowest = static_cast<double>(std::numeric_limits<Wide>::min());
  return x > kLowest - 1 && x < -kLowest ? static_cast<Wide>(x) : std::numeric_limits<Wide>::min();
}

template <typename To>
To FromDouble(double x) {
  if constexpr (std::is_same_v<To, Half>) {
    return ToHalf(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return ToBFloat16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_same_v<To, std::complex<float>>) {
    return static_cast<float>(x);
  } else if constexpr (std::is_same_v<To, uint64_t>) {
    // 2^63 and 2^64.
    if (x >= 9223372036854775808.0 && x < 18446744073709551616.0) return static_cast<uint64_t>(x);
    return static_cast<uint64_t>(Truncate<int64_t>(x));
  } else if constexpr (std::is_same_v<To, uint32_t> || std::is_same_v<To, int64_t>) {
    return static_cast<To>(Truncate<int64_t>(x));
  } else if constexpr (std::is_integral_v<To>) {
    return static_cast<To>(Truncate<int32_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <typename To, typename Integer>
To FromInteger(Integer x) {
  if constexpr (std::is_same_v<To, Half>) {
    return ToHalf(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return ToBFloat16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_same_v<To, std::complex<float>>) {
    return static_cast<float>(x);
  } else if constexpr (std::is_same_v<To, std::complex<double>>) {
    return static_cast<double>(x);
  } else {
    return static_cast<To>(x);
  }
}

// Real types take the real part.
template <typename To>
To FromComplex(std::complex<double> x) {
  if constexpr (std::is_same_v<To, std::complex<float>> || std::is_same_v<To, std::complex<double>>) {
    return static_cast<To>(x);
  } else {
    return FromDouble<To>(x.real());
  }
}

template <typename From>
double AsDouble(From x) {
  if constexpr (std::is_class_v<From>) {
    return ToFloat(x);
  } else {
    return x;
  }
}

using Loop = void (*)(const char* from, char* to, int64_t count);

// Loads elements of any type as double (floating-point types), complex128 (complex types), uint64 or int64 (integers
// and bool).
template <typename From, typename Wide>
void Load(const char* from, char* to, int64_t count) {
  const From* x = reinterpret_cast<const From*>(from);
  Wide* y = reinterpret_cast<Wide*>(to);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Wide, double>) {
      y[i] = AsDouble(x[i]);
    } else {
      y[i] = static_cast<Wide>(x[i]);
    }
  }
}

template <typename Wide, typename To>
void Store(const char* from, char* to, int64_t count) {
  const Wide* x = reinterpret_cast<const Wide*>(from);
  To* y = reinterpret_cast<To*>(to);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Wide, std::complex<double>>) {
      y[i] = FromComplex<To>(x[i]);
    } else if constexpr (std::is_same_v<Wide, double>) {
      y[i] = FromDouble<To>(x[i]);
    } else {
      y[i] = FromInteger<To>(x[i]);
    }
  }
}

// Converts directly from one type to the other.
template <typename From, typename To>
void Direct(const char* from, char* to, int64_t count) {
  const From* x = reinterpret_cast<const From*>(from);
  To* y = reinterpret_cast<To*>(to);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_class_v<From>) {
      y[i] = ToFloat(x[i]);
    } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, int32_t>) {
      // The comparisons are false for NaN; 2^31 is the first float out of range.
      y[i] = x[i] >= From(-2147483648.0) && x[i] < From(2147483648.0) ? static_cast<int32_t>(x[i])
                                                                      : std::numeric_limits<int32_t>::min();
    } else {
      y[i] = static_cast<To>(x[i]);
    }
  }
}

struct CastState : KernelState {
  Loop direct = nullptr;  // If null, the two loops below are used.
  Loop load = nullptr;
  Loop store = nullptr;
  size_t from_size = 0;
  size_t to_size = 0;
};

template <typename From, typename To>
bool IsPair(DType from, DType to) {
  return from == DTypeOf<From>::value && to == DTypeOf<To>::value;
}

Loop DirectLoop(DType from, DType to) {
  if (IsPair<float, int32_t>(from, to)) return Direct<float, int32_t>;
  if (IsPair<int32_t, float>(from, to)) return Direct<int32_t, float>;
  if (IsPair<uint8_t, float>(from, to)) return Direct<uint8_t, float>;
  if (IsPair<bool, float>(from, to)) return Direct<bool, float>;
  if (IsPair<int64_t, int32_t>(from, to)) return Direct<int64_t, int32_t>;
  if (IsPair<int32_t, int64_t>(from, to)) return Direct<int32_t, int64_t>;
  if (IsPair<Half, float>(from, to)) return Direct<Half, float>;
  if (IsPair<BFloat16, float>(from, to)) return Direct<BFloat16, float>;
  return nullptr;
}

enum class Family { kDouble, kComplex, kInt64, kUint64, kNone };

Family FamilyOf(DType dtype) {
  if (IsFloating(dtype)) return Family::kDouble;
  if (dtype == DType::kComplex64 || dtype == DType::kComplex128) return Family::kComplex;
  if (dtype == DType::kUint64) return Family::kUint64;
  const bool is_integer =
      DispatchOn<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, bool>(dtype, [](auto) {});
  return is_integer ? Family::kInt64 : Family::kNone;
}

absl::Status PrepareCast(PrepareContext* context) {
  const DType from = context->input_type(0);
  const DType to = context->output_type(0);
  PF_ASSIGN_OR_RETURN(bool truncate, BoolAttr(context->node(), "Truncate"));
  if (truncate && IsFloating(from) && IsFloating(to) && SizeOf(to) < SizeOf(from)) {
    return absl::UnimplementedError(absl::StrCat("truncating ", DTypeName(from), " to ", DTypeName(to)));
  }
  auto state = std::make_unique<CastState>();
  state->from_size = SizeOf(from);
  state->to_size = SizeOf(to);
  state->direct = DirectLoop(from, to);
  const Family family = FamilyOf(from);
  DispatchOn<float, double, Half, BFloat16>(
      from, [&](auto tag) { state->load = Load<typename decltype(tag)::type, double>; });
  DispatchOn<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, bool>(
      from, [&](auto tag) { state->load = Load<typename decltype(tag)::type, int64_t>; });
  DispatchOn<std::complex<float>, std::complex<double>>(
      from, [&](auto tag) { state->load = Load<typename decltype(tag)::type, std::complex<double>>; });
  if (family == Family::kUint64) state->load = Load<uint64_t, uint64_t>;
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
             bool, std::complex<float>, std::complex<double>>(to, [&](auto tag) {
    using To = typename decltype(tag)::type;
    state->store = family == Family::kDouble    ? Store<double, To>
                   : family == Family::kComplex ? Store<std::complex<double>, To>
                   : family == Family::kInt64   ? Store<int64_t, To>
                                                : Store<uint64_t, To>;
  });
  if (state->load == nullptr || state->store == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no cast from ", DTypeName(from), " to ", DTypeName(to)));
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status ComputeCast(ComputeContext* context) {
  const auto& state = context->state<CastState>();
  const Value& input = context->input_at(0);
  const char* elements = context->input_bytes(0);
  char* output = context->output_bytes(0);
  const bool same_type = input.dtype == context->output_at(0).dtype;
  context->threads().ParallelFor(input.shape.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
    const char* from = elements + begin * state.from_size;
    char* to = output + begin * state.to_size;
    if (same_type) {
      std::memmove(to, from, (end - begin) * state.from_size);
      return;
    }
    if (state.direct != nullptr) {
      state.direct(from, to, end - begin);
      return;
    }
    alignas(64) char wide[kBlock * sizeof(std::complex<double>)];
    for (; begin < end; begin += kBlock) {
      const int64_t n = std::min(kBlock, end - begin);
      state.load(from, wide, n);
      state.store(wide, to, n);
      from += n * state.from_size;
      to += n * state.to_size;
    }
  });
  return absl::OkStatus();
}

// --- Bitcast ---------------------------------------------------------------------------------------------------------

// If the sizes differ, the last dimension is added or removed: one int32 is two int16.
absl::Status PrepareBitcast(PrepareContext* context) {
  const int64_t from = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const int64_t to = static_cast<int64_t>(SizeOf(context->output_type(0)));
  Shape shape = context->input_shape(0);
  if (from > to) {
    if (from % to != 0) return absl::InvalidArgumentError("the element sizes are no multiples of each other");
    shape.AddDim(from / to);
  } else if (from < to) {
    const int last = shape.rank() - 1;
    if (to % from != 0 || last < 0 || shape.dim(last) != to / from) {
      return absl::InvalidArgumentError(
          absl::StrCat("the input has the shape ", shape.ToString(), ", expected a last dimension of ", to / from));
    }
    shape = Shape(shape.dims().subspan(0, last));
  }
  return SetCheckedShape(context, 0, std::move(shape));
}

std::vector<DType> CastTypes() {
  std::vector<DType> types = NumberAndComplexTypes();
  types.push_back(DType::kBool);
  return types;
}

}  // namespace

DEFINE_KERNEL(Cast) {
  return Kernel("x converted to another type; conversion to integers truncates")
      .TypeNumbers("SrcT", CastTypes())
      .TypeNumbers("DstT", CastTypes())
      .InPlace(0)
      .Prepare(PrepareCast)
      .Compute(ComputeCast);
}

DEFINE_KERNEL(Bitcast) {
  return Kernel("the bytes of the input reinterpreted as another type")
      .TypeNumbers("T", MovableTypes())
      .TypeNumbers("type", MovableTypes())
      .Alias()
      .Prepare(PrepareBitcast);
}

}  // namespace permafrost
