// Checks the views of tensors that kernels request.
#include <atomic>
#include <cstdlib>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime_check/kernel.h"

namespace permafrost {
namespace {

constexpr size_t kAlignment = 64;        // Alignment of every tensor.
constexpr size_t kMostElementSize = 16;  // complex128

// Returns the number of elements; 0 if the shape is unknown or the number overflows. Called for each view, so it
// composes no status.
size_t CountOf(const Shape& shape) {
  if (!shape.has_rank()) return 0;
  int64_t count = 1;
  for (const int64_t dim : shape.dims()) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return 0;
  }
  return static_cast<size_t>(count);
}

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

// Several threads may request views at the same time. Only views that do not match take this lock.
std::atomic_flag spare_lock = ATOMIC_FLAG_INIT;
struct SpareLock {
  SpareLock() {
    while (spare_lock.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~SpareLock() { spare_lock.clear(std::memory_order_release); }
};

}  // namespace

struct ComputeContext::SpareViews {
  absl::Status status;
  // Lists, so that references returned earlier stay valid.
  std::list<std::unique_ptr<void, Freed>> memory;
  std::list<std::vector<std::string>> strings;
  std::list<std::vector<ObjectRef>> objects;
};

char* ComputeContext::View(const Value& value, int i, absl::string_view role, DType dtype, size_t size) const {
  const size_t element = SizeOf(value.dtype);
  if (element != 0 && (dtype == DType::kInvalid ? size == 0 || size == element : dtype == value.dtype)) {
    if (value.data == nullptr || CountOf(value.shape) * element <= static_cast<size_t>(value.bytes)) return value.data;
  }
  const SpareLock lock;
  SpareViews& spare = Spare(value, i, role,
                            dtype != DType::kInvalid ? DTypeName(dtype)
                            : size == 0              ? std::string("elements of a fixed size")
                                                     : absl::StrCat("elements of ", size, " bytes"));
  const size_t count = CountOf(value.shape);
  // The zeroed pages are not touched until they are used, so this is cheap for any shape.
  void* memory = count < SIZE_MAX / kMostElementSize - kAlignment
                     ? std::calloc(count + kAlignment, size == 0 ? kMostElementSize : size)
                     : nullptr;
  if (memory == nullptr) std::abort();  // Continuing without memory would overwrite other tensors.
  spare.memory.emplace_back(memory);
  const auto address = (reinterpret_cast<uintptr_t>(memory) + kAlignment - 1) / kAlignment * kAlignment;
  return reinterpret_cast<char*>(address);
}

std::vector<std::string>& ComputeContext::Strings(const Value& value, int i, absl::string_view role) const {
  if (value.dtype == DType::kString && value.strings != nullptr && value.strings->size() >= CountOf(value.shape)) {
    return *value.strings;
  }
  const SpareLock lock;
  return Spare(value, i, role, "string").strings.emplace_back(CountOf(value.shape));
}

std::vector<ObjectRef>& ComputeContext::Objects(const Value& value, int i, absl::string_view role) const {
  if (HoldsObjects(value.dtype) && value.objects != nullptr && value.objects->size() >= CountOf(value.shape)) {
    return *value.objects;
  }
  const SpareLock lock;
  return Spare(value, i, role, "references to objects").objects.emplace_back(CountOf(value.shape));
}

ComputeContext::SpareViews& ComputeContext::Spare(const Value& value, int i, absl::string_view role,
                                                  absl::string_view wanted) const {
  if (spare_ == nullptr) {
    spare_ = std::make_shared<SpareViews>();
    spare_->status =
        absl::InternalError(absl::StrCat("the kernel takes ", role, " ", i, ", which holds ", DTypeName(value.dtype),
                                         " ", value.shape.ToString(), " in ", value.bytes, " bytes, for ", wanted));
  }
  return *spare_;
}

absl::Status RunKernel(ComputeFunction compute, ComputeContext* context) {
  absl::Status status = compute(context);
  if (context->spare_ == nullptr) return status;
  status = std::move(context->spare_->status);
  context->spare_.reset();
  return status;
}

}  // namespace permafrost
