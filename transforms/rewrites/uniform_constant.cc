// Constants all of whose elements are one number.
#include "transforms/rewrites/uniform_constant.h"

#include "absl/status/statusor.h"
#include "graph/matcher.h"

namespace permafrost {
namespace {

template <typename T>
double Number(T value) {
  return static_cast<double>(value);
}
double Number(Half value) { return ToFloat(value); }
double Number(BFloat16 value) { return ToFloat(value); }

}  // namespace

std::optional<double> UniformValue(const Tensor& tensor) {
  std::optional<double> value;
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      tensor.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const UnalignedSpan<T> elements = tensor.elements<T>();
        if (elements.empty()) return;
        const double first = Number(elements[0]);
        for (size_t i = 1; i < elements.size(); ++i) {
          if (!(Number(elements[i]) == first)) return;
        }
        value = first;
      });
  return value;
}

std::optional<double> UniformConstant(TensorRef ref) {
  const Node* constant = ConstantBehind(ref);
  if (constant == nullptr) return std::nullopt;
  const absl::StatusOr<Tensor> value = ConstValue(*constant);
  return value.ok() ? UniformValue(*value) : std::nullopt;
}

}  // namespace permafrost
