// Replacement for Abseil's Cleanup: runs a callback at the end of a scope.
#ifndef PERMAFROST_SELECTIVE_ABSL_CLEANUP_CLEANUP_H_
#define PERMAFROST_SELECTIVE_ABSL_CLEANUP_CLEANUP_H_

#include <utility>

namespace absl {
inline namespace selective {

template <typename Callback>
class Cleanup {
 public:
  Cleanup(Callback callback) : callback_(std::move(callback)) {}  // NOLINT: implicit.
  ~Cleanup() { callback_(); }
  Cleanup(const Cleanup&) = delete;
  Cleanup& operator=(const Cleanup&) = delete;

 private:
  Callback callback_;
};

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_CLEANUP_CLEANUP_H_
