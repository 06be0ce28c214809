// Replacement for Abseil's Cord, as far as payloads of a status need it: a string.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_CORD_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_CORD_H_

#include <string>
#include <utility>

namespace absl {
inline namespace selective {

class Cord {
 public:
  Cord() = default;
  explicit Cord(std::string text) : text_(std::move(text)) {}
  explicit Cord(std::string_view text) : text_(text) {}
  explicit operator std::string() const { return text_; }

 private:
  std::string text_;
};

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_CORD_H_
