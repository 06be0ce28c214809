// Replacement for Abseil's StrCat and StrAppend: concatenate texts and numbers.
//
// Most calls create error messages and are rarely executed, but there are hundreds of them. A call is therefore as
// little code as possible: one variable argument for each piece, and a text with one letter for the kind of each.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_CAT_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_CAT_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace absl {
inline namespace selective {

// Minimum numbers of digits.
enum PadSpec : int { kNoPad = 1, kZeroPad16 = 16 };

struct Hex {
  template <typename T>
  explicit Hex(T number, PadSpec pad = kNoPad) : value(static_cast<std::make_unsigned_t<T>>(number)), width(pad) {}
  uint64_t value;
  int width;
};

namespace internal {

// Representation of a piece in the call.
enum PieceKind : char {
  kCText = 'c',     // const char*, or null for nothing.
  kString = 's',    // const std::string*
  kView = 'v',      // const std::string_view*
  kSigned = 'i',    // int64_t
  kUnsigned = 'u',  // uint64_t
  kHex = 'x',       // const Hex*
  kDouble = 'd',    // const double*: six significant digits, as %g.
};

template <typename T>
constexpr PieceKind KindOf() {
  static_assert(!std::is_same_v<T, char>, "a character, or its number?");
  if constexpr (std::is_same_v<T, std::string>) return kString;
  if constexpr (std::is_same_v<T, std::string_view>) return kView;
  if constexpr (std::is_same_v<T, Hex>) return kHex;
  if constexpr (std::is_floating_point_v<T>) return kDouble;
  if constexpr (std::is_enum_v<T>) return kSigned;
  if constexpr (std::is_integral_v<T>) return std::is_signed_v<T> ? kSigned : kUnsigned;
  return kCText;
}

// Converts a float to a double that lives as long as the call.
inline double Passable(float number) { return number; }
template <typename T>
const T& Passable(const T& piece) {
  return piece;
}

template <typename T>
auto Passed(const T& piece) {
  constexpr PieceKind kKind = KindOf<T>();
  if constexpr (kKind == kString || kKind == kView || kKind == kHex || kKind == kDouble) {
    return &piece;
  } else if constexpr (kKind == kSigned) {
    return static_cast<int64_t>(piece);
  } else if constexpr (kKind == kUnsigned) {
    return static_cast<uint64_t>(piece);
  } else {
    return static_cast<const char*>(piece);
  }
}

// Instantiated once for each sequence of kinds.
template <PieceKind... kKinds>
inline constexpr char kKindsText[] = {kKinds..., '\0'};

std::string CatPieces(const char* kinds, ...);
void AppendPieces(std::string* to, const char* kinds, ...);

}  // namespace internal

template <typename... Args>
std::string StrCat(const Args&... args) {
  return internal::CatPieces(
      internal::kKindsText<internal::KindOf<std::decay_t<Args>>()...>,
      internal::Passed<std::decay_t<decltype(internal::Passable(args))>>(internal::Passable(args))...);
}
template <typename... Args>
void StrAppend(std::string* to, const Args&... args) {
  internal::AppendPieces(
      to, internal::kKindsText<internal::KindOf<std::decay_t<Args>>()...>,
      internal::Passed<std::decay_t<decltype(internal::Passable(args))>>(internal::Passable(args))...);
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_CAT_H_
