// Fills tensors from a counter-based generator.
#include "runtime_check/checking/seeded_inputs.h"

#include <complex>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/checking/split_mix.h"
#include "runtime_check/planning/prepared_node.h"

namespace permafrost {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30;

// Returns a number uniform in [0, 1): the upper 24 bits, which a float represents exactly.
float NextFloat(SplitMix64* random) { return static_cast<float>(random->Next() >> 40) * 0x1p-24f; }

template <typename T>
T RandomElement(SplitMix64* random, bool is_image) {
  const auto real = [&] { return is_image ? NextFloat(random) : 2 * NextFloat(random) - 1; };
  const auto below = [&](uint64_t bound) { return (random->Next() >> 32) % bound; };
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(real());
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(real());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(real());
  } else if constexpr (std::is_same_v<T, bool>) {
    return below(2) == 1;
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(below(256));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(below(8));
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    const float re = real();
    return T(re, real());
  } else {
    T element;
    element.value = static_cast<decltype(element.value)>(below(8));
    return element;
  }
}

absl::StatusOr<Shape> InputShape(const Endpoint& input, const absl::flat_hash_map<std::string, Shape>& shapes) {
  Shape shape = Shape::UnknownRank();
  if (const auto given = shapes.find(input.text); given != shapes.end()) {
    shape = given->second;
  } else if (input.node->HasAttr("shape")) {
    PF_ASSIGN_OR_RETURN(shape, ShapeAttr(*input.node, "shape"));
  }
  if (shape.has_rank() && shape.rank() > 0 && shape.dim(0) == kUnknownDim) shape.set_dim(0, 1);
  if (!shape.IsFullyKnown()) {
    return absl::InvalidArgumentError(
        absl::StrCat("found shape ", shape.ToString(), ", expected one that is known but for dimension 0"));
  }
  return shape;
}

absl::StatusOr<Tensor> SeededInput(const Endpoint& input, const absl::flat_hash_map<std::string, Shape>& shapes,
                                   uint64_t seed) {
  if (input.node == nullptr) return absl::InvalidArgumentError("the graph has no such node");
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*input.node));
  if (input.port < 0 || static_cast<size_t>(input.port) >= types.size()) {
    return absl::InvalidArgumentError(absl::StrCat(input.node->Describe(), " has ", types.size(), " outputs"));
  }
  PF_ASSIGN_OR_RETURN(const Shape shape, InputShape(input, shapes));
  return SeededTensor(RemoveRef(types[input.port]), shape, seed);
}

}  // namespace

absl::StatusOr<Tensor> SeededTensor(DType dtype, const Shape& shape, uint64_t seed) {
  if (HoldsObjects(dtype)) return absl::UnimplementedError(absl::StrCat("values of type ", DTypeName(dtype)));
  PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(dtype, shape));
  if (bytes > kMostBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a ", DTypeName(dtype), " tensor of shape ", shape.ToString(),
                                                     " takes ", bytes, " bytes, expected at most ", kMostBytes));
  }
  if (dtype == DType::kString) {
    return Tensor::FromStrings(shape, std::vector<std::string>(static_cast<size_t>(shape.num_elements())));
  }
  char* data;
  PF_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape, &data));
  SplitMix64 random(seed);
  const bool is_image = shape.rank() == 4;
  DispatchOn<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t,
             bool, QInt8, QUint8, QInt16, QUint16, QInt32, std::complex<float>, std::complex<double>>(
      dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (int64_t i = 0; i < bytes; i += static_cast<int64_t>(sizeof(T))) {
          const T element = RandomElement<T>(&random, is_image);
          std::memcpy(data + i, &element, sizeof(T));
        }
      });
  return tensor;
}

absl::StatusOr<std::vector<Tensor>> SeededInputs(absl::Span<const Endpoint> inputs,
                                                 const absl::flat_hash_map<std::string, Shape>& shapes, uint64_t seed) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Each input has its own random stream, so that its values do not depend on the sizes of the others.
    absl::StatusOr<Tensor> tensor = SeededInput(inputs[i], shapes, SplitMix64(seed + i).Next());
    PF_RETURN_IF_ERROR(Annotate(tensor.status(), absl::StrCat("input '", inputs[i].text, "'")));
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

}  // namespace permafrost
