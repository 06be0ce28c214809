// As Abseil's: texts and numbers joined into one string.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_CAT_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_CAT_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace absl {
inline namespace selective {

struct Hex {
  template <typename T>
  explicit Hex(T number) : value(static_cast<std::make_unsigned_t<T>>(number)) {}
  uint64_t value;
};

// One argument: a text, or a number as text, which the object holds.
class AlphaNum {
 public:
  AlphaNum(std::string_view text) : text_(text) {}  // NOLINT: implicit, as all that follow.
  AlphaNum(const std::string& text) : text_(text) {}
  AlphaNum(const char* text) : text_(text == nullptr ? std::string_view() : text) {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>>
  AlphaNum(T number) {
    static_assert(!std::is_same_v<T, char>, "a character, or its number?");
    if constexpr (std::is_floating_point_v<T>) {
      SetDouble(static_cast<double>(number));
    } else if constexpr (std::is_enum_v<T>) {
      SetInteger(static_cast<uint64_t>(static_cast<int64_t>(number)), static_cast<int64_t>(number) < 0);
    } else {
      SetInteger(static_cast<uint64_t>(number), number < 0);
    }
  }
  AlphaNum(Hex hex);
  AlphaNum(const AlphaNum&) = delete;
  AlphaNum& operator=(const AlphaNum&) = delete;

  std::string_view text() const { return text_; }

 private:
  void SetInteger(uint64_t value, bool is_negative);
  // Six significant digits, as %g.
  void SetDouble(double value);

  std::string_view text_;
  char digits_[32];
};

namespace internal {
void AppendPieces(std::string* to, std::initializer_list<std::string_view> pieces);
std::string CatPieces(std::initializer_list<std::string_view> pieces);
}  // namespace internal

template <typename... Args>
std::string StrCat(const Args&... args) {
  return internal::CatPieces({AlphaNum(args).text()...});
}
template <typename... Args>
void StrAppend(std::string* to, const Args&... args) {
  internal::AppendPieces(to, {AlphaNum(args).text()...});
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_CAT_H_
