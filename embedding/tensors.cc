// Implements conversions between tensors, with checks of all values from the caller.
#include "embedding/tensors.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/dtype.h"

namespace permafrost {
namespace {

absl::Status SetShape(const Shape& shape, pf_tensor* tensor) {
  tensor->rank = -1;
  if (!shape.has_rank()) return absl::OkStatus();
  if (shape.rank() > PF_MAX_RANK) {
    return absl::UnimplementedError(
        absl::StrCat("found shape ", shape.ToString(), ", expected at most ", PF_MAX_RANK, " dimensions"));
  }
  tensor->rank = shape.rank();
  std::copy(shape.dims().begin(), shape.dims().end(), tensor->dims);
  return absl::OkStatus();
}

// Returns the size of the elements in the representation of the C interface in bytes; 0 if unknown.
uint64_t BytesOf(DType dtype, const Shape& shape) {
  if (!shape.IsFullyKnown()) return 0;
  const absl::StatusOr<int64_t> count = shape.CheckedNumElements();
  return count.ok() ? static_cast<uint64_t>(*count) * pf_dtype_size(static_cast<int32_t>(dtype)) : 0;
}

struct Range {
  uintptr_t begin, end;
};

}  // namespace

absl::StatusOr<Shape> ShapeOf(const pf_tensor& tensor) {
  if (tensor.rank < 0 || tensor.rank > PF_MAX_RANK) {
    return absl::InvalidArgumentError(absl::StrCat("found rank ", tensor.rank, ", expected 0 to ", PF_MAX_RANK));
  }
  const Shape shape(absl::MakeConstSpan(tensor.dims, static_cast<size_t>(tensor.rank)));
  if (std::any_of(shape.dims().begin(), shape.dims().end(), [](int64_t dim) { return dim < 0; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("found shape ", shape.ToString(), ", expected no unknown dimension"));
  }
  PF_RETURN_IF_ERROR(shape.CheckedNumElements().status());
  return shape;
}

absl::StatusOr<Tensor> ViewOfCaller(const pf_tensor& tensor) {
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeOf(tensor));
  const auto dtype = static_cast<DType>(tensor.dtype);
  const auto count = static_cast<uint64_t>(shape.num_elements());
  const size_t size = pf_dtype_size(tensor.dtype);
  if (size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("found type ", DTypeName(dtype), ", expected one of numbers or strings"));
  }
  if (count > UINT64_MAX / size || tensor.num_bytes != count * size) {
    return absl::InvalidArgumentError(absl::StrCat("found ", tensor.num_bytes, " bytes, expected ", count,
                                                   " elements of ", size, " bytes for ", DTypeName(dtype), " of shape ",
                                                   shape.ToString()));
  }
  if (tensor.data == nullptr && count > 0) return absl::InvalidArgumentError("found no data");
  if (dtype != DType::kString) {
    return Tensor::FromBytes(dtype, std::move(shape), {static_cast<const char*>(tensor.data), tensor.num_bytes},
                             nullptr);
  }
  std::vector<std::string> strings;
  constexpr uint64_t kMostReserved = 1 << 12;  // The rest grows as the strings turn out to be there.
  strings.reserve(std::min(count, kMostReserved));
  for (const pf_string& text : absl::MakeConstSpan(static_cast<const pf_string*>(tensor.data), count)) {
    if (text.data == nullptr && text.size > 0) return absl::InvalidArgumentError("found a string without data");
    strings.emplace_back(text.data == nullptr ? "" : text.data, text.size);
  }
  return Tensor::FromStrings(std::move(shape), std::move(strings));
}

absl::StatusOr<pf_tensor> Described(const TensorSpec& spec) {
  pf_tensor tensor = {};
  tensor.dtype = static_cast<int32_t>(spec.dtype);
  PF_RETURN_IF_ERROR(SetShape(spec.shape, &tensor));
  tensor.num_bytes = BytesOf(spec.dtype, spec.shape);
  return tensor;
}

absl::StatusOr<pf_tensor> Described(const Tensor& tensor, std::vector<pf_string>* strings) {
  pf_tensor described = {};
  described.dtype = static_cast<int32_t>(tensor.dtype());
  PF_RETURN_IF_ERROR(SetShape(tensor.shape(), &described));
  described.num_bytes = BytesOf(tensor.dtype(), tensor.shape());
  described.data = const_cast<char*>(tensor.bytes().data());
  if (tensor.dtype() == DType::kString) {
    strings->clear();
    for (const std::string& text : tensor.strings()) strings->push_back({text.data(), text.size()});
    described.data = strings->data();
  }
  return described;
}

absl::Status CheckDisjoint(absl::Span<const pf_tensor> inputs, absl::Span<const pf_tensor> outputs) {
  const auto range = [](const pf_tensor& tensor) {
    const auto begin = reinterpret_cast<uintptr_t>(tensor.data);
    // Missing memory is reported elsewhere.
    return Range{begin, begin == 0 ? 0 : begin + static_cast<uintptr_t>(tensor.num_bytes)};
  };
  const auto overlap = [&](const pf_tensor& a, const pf_tensor& b) {
    const Range x = range(a), y = range(b);
    return x.begin < y.end && y.begin < x.end;
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (!overlap(outputs[i], inputs[j])) continue;
      return absl::InvalidArgumentError(absl::StrCat("the memory of output ", i, " overlaps that of input ", j));
    }
    for (size_t j = 0; j < i; ++j) {
      if (!overlap(outputs[i], outputs[j])) continue;
      return absl::InvalidArgumentError(absl::StrCat("the memory of output ", i, " overlaps that of output ", j));
    }
  }
  return absl::OkStatus();
}

}  // namespace permafrost
