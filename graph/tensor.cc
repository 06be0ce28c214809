// Implements construction, copying and comparison of tensors.
#include "graph/tensor.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/huge_pages.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr size_t kAlignment = 64;  // Size of a cache line, and of the widest vector register.

// Returns the alignment of a buffer. A large buffer is aligned to a huge page and backed by huge pages. Otherwise page
// faults take as long as the computation when new weights are filled in.
size_t AlignmentFor(size_t size) { return size >= kHugePageBytes ? kHugePageBytes : kAlignment; }

// Small tensors share one allocation with their reference count. Aligned allocation takes several times as long as the
// computation of a few elements. Selective builds omit this for their size; with AddressSanitizer every tensor has an
// allocation of its own, so that an access behind its end is found.
#if defined(__SANITIZE_ADDRESS__)
#define PERMAFROST_ALLOCATES_EACH_TENSOR
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PERMAFROST_ALLOCATES_EACH_TENSOR
#endif
#endif
#ifdef PERMAFROST_ALLOCATES_EACH_TENSOR
constexpr bool kHoldsSmallBlocks = false;
#else
constexpr bool kHoldsSmallBlocks = !selection::kIsSelective;
#endif
constexpr size_t kSmallBytes = 256, kMediumBytes = 2048;

template <size_t kBytes>
struct Block {
  Block() {}  // Leaves the bytes uninitialised.
  char bytes[kBytes + kAlignment - 1];
};

// Returns memory for `kBytes` bytes, aligned.
template <size_t kBytes>
std::shared_ptr<char> AllocateBlock() {
  auto block = std::make_shared<Block<kBytes>>();
  const auto address = reinterpret_cast<uintptr_t>(block->bytes);
  char* aligned = block->bytes + (kAlignment - address % kAlignment) % kAlignment;
  return std::shared_ptr<char>(std::move(block), aligned);
}

}  // namespace

absl::StatusOr<Tensor> Tensor::FromBytes(DType dtype, Shape shape, absl::string_view bytes, Owner owner) {
  const size_t element_size = SizeOf(dtype);
  if (element_size == 0) {
    return absl::InvalidArgumentError(absl::StrCat("type ", DTypeName(dtype), " has no fixed-size elements"));
  }
  if (!shape.IsFullyKnown()) {
    return absl::InvalidArgumentError(absl::StrCat("found shape ", shape.ToString(), ", expected known dimensions"));
  }
  PF_ASSIGN_OR_RETURN(const int64_t count, shape.CheckedNumElements());
  int64_t size;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(element_size), &size) ||
      static_cast<uint64_t>(size) != bytes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a ", DTypeName(dtype), " tensor of shape ", shape.ToString(),
                                                   " has ", bytes.size(), " bytes, expected ", count, " elements of ",
                                                   element_size));
  }
  // bool must be 0 or 1 in C++, but a file may encode true as any other byte.
  if (dtype == DType::kBool && std::any_of(bytes.begin(), bytes.end(), [](char byte) { return byte & ~1; })) {
    char* data;
    PF_ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype, std::move(shape), &data));
    std::transform(bytes.begin(), bytes.end(), data, [](char byte) { return static_cast<char>(byte != 0); });
    return copy;
  }
  return Tensor(dtype, std::move(shape), bytes, std::move(owner));
}

Tensor Tensor::Copy(DType dtype, Shape shape, absl::string_view bytes) {
  auto kept = std::make_shared<const std::string>(bytes);
  return Tensor(dtype, std::move(shape), *kept, kept);
}

Tensor Tensor::FromStrings(Shape shape, std::vector<std::string> values) {
  Tensor tensor(DType::kString, std::move(shape), {}, nullptr);
  tensor.strings_ = std::make_shared<const std::vector<std::string>>(std::move(values));
  return tensor;
}

int64_t Tensor::InHugePages(int64_t bytes) {
  constexpr auto kPage = static_cast<int64_t>(kHugePageBytes);
  const int64_t rest = bytes % kPage;
  const bool has_room = bytes <= std::numeric_limits<int64_t>::max() - kPage;
  return rest < kPage / 4 || !has_room ? bytes : bytes - rest + kPage;
}

absl::StatusOr<Tensor> Tensor::Allocate(DType dtype, Shape shape, char** data) {
  PF_ASSIGN_OR_RETURN(const int64_t count, shape.CheckedNumElements());
  int64_t size;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(SizeOf(dtype)), &size)) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor of shape ", shape.ToString(), " exceeds 2^63 bytes"));
  }
  if (kHoldsSmallBlocks && size <= static_cast<int64_t>(kMediumBytes)) {
    std::shared_ptr<char> block =
        size <= static_cast<int64_t>(kSmallBytes) ? AllocateBlock<kSmallBytes>() : AllocateBlock<kMediumBytes>();
    *data = block.get();
    return Tensor(dtype, std::move(shape), absl::string_view(*data, static_cast<size_t>(size)), std::move(block));
  }
  const std::align_val_t alignment{AlignmentFor(static_cast<size_t>(size))};
  char* memory = static_cast<char*>(operator new(static_cast<size_t>(size), alignment, std::nothrow));
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a tensor of ", size, " bytes"));
  }
  PreferHugePages(memory, static_cast<size_t>(size) / kHugePageBytes * kHugePageBytes);
  *data = memory;
  Owner owner(memory, [alignment](const char* p) { operator delete(const_cast<char*>(p), alignment); });
  return Tensor(dtype, std::move(shape), absl::string_view(memory, static_cast<size_t>(size)), std::move(owner));
}

absl::StatusOr<Tensor> Tensor::Aligned() const {
  if (dtype_ == DType::kString || IsAligned()) return *this;
  char* data;
  PF_ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype_, shape_, &data));
  if (!bytes_.empty()) std::memcpy(data, bytes_.data(), bytes_.size());
  return copy;
}

absl::StatusOr<Tensor> Tensor::Reshaped(Shape shape) const {
  PF_ASSIGN_OR_RETURN(const int64_t count, shape.CheckedNumElements());
  if (!shape.IsFullyKnown() || count != num_elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of shape ", shape_.ToString(), " cannot be reshaped to ", shape.ToString()));
  }
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

bool operator==(const Tensor& a, const Tensor& b) {
  if (a.dtype_ != b.dtype_ || a.shape_ != b.shape_) return false;
  if (a.dtype_ == DType::kString) return a.strings() == b.strings();
  return a.bytes_ == b.bytes_;
}

absl::StatusOr<std::vector<int64_t>> IntegerValues(const Tensor& tensor) {
  std::vector<int64_t> values;
  const bool known = DispatchOn<int32_t, int64_t>(tensor.dtype(), [&](auto tag) {
    const auto elements = tensor.elements<typename decltype(tag)::type>();
    values.reserve(elements.size());
    for (size_t i = 0; i < elements.size(); ++i) values.push_back(elements[i]);
  });
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat("found a tensor of type ", DTypeName(tensor.dtype()), ", expected int32 or int64"));
  }
  return values;
}

}  // namespace permafrost
