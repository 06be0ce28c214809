// Contents of a selective build, as constexpr functions of ops_to_register.h. print_selective_registration_header
// --style=permafrost generates that header from models. Any other build contains everything.
//
// With -DSELECTIVE_REGISTRATION, ops_to_register.h must be on the include path. A source file that defines kernels may
// restrict its compiled types further, to those of its own ops: it defines PERMAFROST_OPS_OF_THIS_FILE, the op names as
// string literals separated by commas, before any #include.
// literals, separated by commas, defined before anything is included.
#ifndef PERMAFROST_GRAPH_BASE_SELECTION_H_
#define PERMAFROST_GRAPH_BASE_SELECTION_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#ifdef SELECTIVE_REGISTRATION
#include "ops_to_register.h"
#ifndef PERMAFROST_OPS_TO_REGISTER
#error \
    "ops_to_register.h is not for Permafrost; generate it with print_selective_registration_header --style=permafrost"
#endif
#endif

namespace permafrost::selection {

// The version that a generated header must match: 10000 * major + 100 * minor + patch.
inline constexpr int kVersion = 100;

// A set of element types. Bit N represents the type with number N.
using TypeSet = uint64_t;
inline constexpr TypeSet kAllTypes = ~TypeSet{0};

constexpr TypeSet SetOf(int number) { return number > 0 && number < 64 ? TypeSet{1} << number : 0; }

namespace internal {
#define DTYPE(enumerator, number, text, type, field) inline constexpr TypeSet enumerator = SetOf(number);
#include "graph/dtypes.def"
#undef DTYPE
}  // namespace internal

// Returns `types` and the types in which kernels compute them: float for small floats, int32 for small integers and
// quantised codes, int64 for uint32, int64 for the sizes of strings, float or double for the parts of complex numbers.
constexpr TypeSet WithWideTypes(TypeSet types) {
  using namespace internal;  // NOLINT: the names of types.
  constexpr TypeSet kCodes = kQInt8 | kQUint8 | kQInt16 | kQUint16 | kQInt32;
  return types | (types & (kHalf | kBFloat16 | kComplex64) ? kFloat : 0) | (types & kComplex128 ? kDouble : 0) |
         (types & (kInt8 | kUint8 | kInt16 | kUint16 | kCodes) ? kInt32 : 0) |
         (types & (kUint32 | kString) ? kInt64 : 0);
}

#ifdef SELECTIVE_REGISTRATION

static_assert(
    PERMAFROST_OPS_TO_REGISTER == kVersion,
    "ops_to_register.h was generated for another version of Permafrost; generate it again with this version's "
    "print_selective_registration_header");

inline constexpr bool kIsSelective = true;

constexpr bool HoldsOp(std::string_view op) {
  for (const char* const listed : ops_to_register::kOps) {
    if (op == listed) return true;
  }
  return false;
}

// Returns the types of an op's type attribute. Returns all types for an attribute that the header does not list.
constexpr TypeSet TypesOf(std::string_view op, std::string_view attr) {
  for (const ops_to_register::OpTypes& row : ops_to_register::kOpTypes) {
    if (op == row.op && attr == row.attr) return row.types;
  }
  return kAllTypes;
}

// Returns all types of inputs, outputs and attributes of nodes with these ops.
constexpr TypeSet TypesOf(std::initializer_list<std::string_view> ops) {
  TypeSet types = 0;
  for (const ops_to_register::OpTypes& row : ops_to_register::kOpTypes) {
    for (const std::string_view op : ops) {
      if (op == row.op) types |= row.types;
    }
  }
  return types;
}

// Text appended to errors about nodes that need something outside the build.
inline constexpr const char* kHint = ops_to_register::kHint;

#else

inline constexpr bool kIsSelective = false;
constexpr bool HoldsOp(std::string_view) { return true; }
constexpr TypeSet TypesOf(std::string_view, std::string_view) { return kAllTypes; }
inline constexpr const char* kHint = "";

#endif

// True if the build contains the name of the op. Readers of packages create ImmutableConst nodes, which the models that
// the header was generated from need not contain.
constexpr bool KnowsOp(std::string_view op) { return HoldsOp(op) || op == "ImmutableConst"; }

constexpr bool HoldsAnyOp(std::initializer_list<std::string_view> ops) {
  for (const std::string_view op : ops) {
    if (HoldsOp(op)) return true;
  }
  return false;
}

// Parts of the runtime that only some models need. A header lists _Arg if a model has functions.
inline constexpr bool kHoldsFunctions = HoldsOp("_Arg");
inline constexpr bool kHoldsFusedOps = HoldsAnyOp({"_FusedConv2D", "_FusedDepthwiseConv2dNative", "_FusedMatMul"});
inline constexpr bool kHoldsControlFlow =
    HoldsAnyOp({"Switch", "RefSwitch", "_SwitchN", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit",
                "NextIteration", "RefNextIteration", "ControlTrigger"});

// Delegates. A selective build contains those listed in PERMAFROST_DELEGATES, separated by commas.
#ifdef PERMAFROST_DELEGATES
#define PERMAFROST_TEXT_OF_ARGUMENTS(...) #__VA_ARGS__
#define PERMAFROST_TEXT_OF(...) PERMAFROST_TEXT_OF_ARGUMENTS(__VA_ARGS__)
inline constexpr std::string_view kDelegates = PERMAFROST_TEXT_OF(PERMAFROST_DELEGATES);
#undef PERMAFROST_TEXT_OF
#undef PERMAFROST_TEXT_OF_ARGUMENTS
#else
inline constexpr std::string_view kDelegates = "";
#endif
inline constexpr bool kHoldsDelegates = !kIsSelective || !kDelegates.empty();

constexpr bool HoldsDelegate(std::string_view name) {
  if (!kIsSelective) return true;
  for (size_t at = kDelegates.find(name); at != std::string_view::npos; at = kDelegates.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || kDelegates[at - 1] == ',') && (end == kDelegates.size() || kDelegates[end] == ',')) return true;
  }
  return false;
}

// Reading of packed weights (weights in a delegate's layout, stored in the model's package). A selective build contains
// it if PERMAFROST_PACKED_WEIGHTS is defined.
#ifdef PERMAFROST_PACKED_WEIGHTS
inline constexpr bool kHoldsPackedWeights = true;
#else
inline constexpr bool kHoldsPackedWeights = !kIsSelective;
#endif

// Types that the current source file must support.
namespace {
#if !defined(SELECTIVE_REGISTRATION)
constexpr TypeSet kTypesHere = kAllTypes;
#elif defined(PERMAFROST_OPS_OF_THIS_FILE)
constexpr TypeSet kTypesHere = WithWideTypes(TypesOf({PERMAFROST_OPS_OF_THIS_FILE}));
#else
constexpr TypeSet kTypesHere = WithWideTypes(ops_to_register::kTypes);
#endif
}  // namespace

}  // namespace permafrost::selection

#endif  // PERMAFROST_GRAPH_BASE_SELECTION_H_
