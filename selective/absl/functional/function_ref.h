// Replacement for Abseil's FunctionRef: a non-owning reference to a callable, for the duration of a call.
#ifndef PERMAFROST_SELECTIVE_ABSL_FUNCTIONAL_FUNCTION_REF_H_
#define PERMAFROST_SELECTIVE_ABSL_FUNCTIONAL_FUNCTION_REF_H_

#include <type_traits>
#include <utility>

namespace absl {
inline namespace selective {

template <typename Signature>
class FunctionRef;

template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F, typename = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef> &&
                                                    std::is_invocable_r_v<R, F&, Args...>>>
  FunctionRef(F&& f) {  // NOLINT: implicit.
    if constexpr (std::is_function_v<std::remove_reference_t<F>>) {
      function_ = reinterpret_cast<void (*)()>(&f);
      call_ = [](const FunctionRef& self, Args... args) -> R {
        return reinterpret_cast<std::remove_reference_t<F>*>(self.function_)(std::forward<Args>(args)...);
      };
    } else {
      object_ = const_cast<void*>(static_cast<const void*>(&f));
      call_ = [](const FunctionRef& self, Args... args) -> R {
        return static_cast<R>((*static_cast<std::remove_reference_t<F>*>(self.object_))(std::forward<Args>(args)...));
      };
    }
  }

  R operator()(Args... args) const { return call_(*this, std::forward<Args>(args)...); }

 private:
  union {
    void* object_;
    void (*function_)();
  };
  R (*call_)(const FunctionRef&, Args...);
};

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_FUNCTIONAL_FUNCTION_REF_H_
