// Reads the values of constants.
#include "transforms/rewrites/constant_values.h"

#include <utility>

#include "absl/status/statusor.h"
#include "graph/matching/matcher.h"

namespace permafrost {
namespace {

template <typename T>
double Number(T value) {
  return static_cast<double>(value);
}
double Number(Half value) { return ToFloat(value); }
double Number(BFloat16 value) { return ToFloat(value); }

std::optional<Tensor> ConstantOf(TensorRef ref) {
  const Node* constant = ConstantBehind(ref);
  if (constant == nullptr) return std::nullopt;
  absl::StatusOr<Tensor> value = ConstValue(*constant);
  if (!value.ok()) return std::nullopt;
  return *std::move(value);
}

std::optional<std::vector<int64_t>> IntegersOf(const Tensor& tensor) {
  absl::StatusOr<std::vector<int64_t>> integers = IntegerValues(tensor);
  if (!integers.ok()) return std::nullopt;
  return *std::move(integers);
}

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
  const std::optional<Tensor> value = ConstantOf(ref);
  return value.has_value() ? UniformValue(*value) : std::nullopt;
}

std::optional<std::vector<int64_t>> IntegerConstant(TensorRef ref) {
  const std::optional<Tensor> value = ConstantOf(ref);
  return value.has_value() ? IntegersOf(*value) : std::nullopt;
}

std::optional<std::vector<int64_t>> IntegerVectorConstant(TensorRef ref) {
  const std::optional<Tensor> value = ConstantOf(ref);
  return value.has_value() && value->shape().rank() == 1 ? IntegersOf(*value) : std::nullopt;
}

std::optional<Tensor> FloatConstant(TensorRef ref) {
  std::optional<Tensor> value = ConstantOf(ref);
  if (value.has_value() && value->dtype() != DType::kFloat) value.reset();
  return value;
}

}  // namespace permafrost
