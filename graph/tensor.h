// Tensors: element type, shape and a shared, immutable buffer, either owned or a view into a mapped file.
#ifndef PERMAFROST_GRAPH_TENSOR_H_
#define PERMAFROST_GRAPH_TENSOR_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/dtype.h"
#include "graph/shape.h"

namespace permafrost {

// Keeps the memory alive that a view points into.
using Owner = std::shared_ptr<const void>;

// Reads elements at any alignment, because tensors in a mapped file may start at any byte.
template <typename T>
class UnalignedSpan {
 public:
  UnalignedSpan(const char* data, size_t size) : data_(data), size_(size) {}
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T operator[](size_t i) const {
    T value;
    std::memcpy(&value, data_ + i * sizeof(T), sizeof(T));
    return value;
  }
  const char* bytes() const { return data_; }

 private:
  const char* data_;
  size_t size_;
};

// A value type; copies share the buffer. Thread-safe, because buffers are immutable.
class Tensor {
 public:
  // An invalid tensor, to be assigned to.
  Tensor() = default;

  // Makes a view of `bytes`, which `owner` keeps alive (if null, the caller does). Copies bool elements if some are
  // neither 0 nor 1, and normalises them. Returns InvalidArgument unless `shape` is fully known, `bytes` has exactly
  // its size, and `dtype` has fixed-size elements.
  static absl::StatusOr<Tensor> FromBytes(DType dtype, Shape shape, absl::string_view bytes, Owner owner);

  // Takes ownership of `values`. REQUIRES: as many values as `shape` has elements.
  template <typename T>
  static Tensor FromVector(Shape shape, std::vector<T> values) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no bytes: build a bool tensor with Allocate");
    auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    return Tensor(DTypeOf<T>::value, std::move(shape),
                  absl::string_view(reinterpret_cast<const char*>(kept->data()), kept->size() * sizeof(T)), kept);
  }
  template <typename T>
  static Tensor Scalar(T value) {
    return Copy(DTypeOf<T>::value, Shape(), absl::string_view(reinterpret_cast<const char*>(&value), sizeof(T)));
  }
  static Tensor FromStrings(Shape shape, std::vector<std::string> values);

  // Returns `bytes` rounded up to whole huge pages (2 MiB) if at least a quarter of the last one is used, otherwise
  // `bytes`. Memory that is filled at once then takes one page fault per huge page instead of one per small page.
  static int64_t InHugePages(int64_t bytes);

  // Allocates an uninitialised buffer, 64-byte aligned. The caller fills it through *data before sharing the tensor.
  // Returns ResourceExhausted if memory is insufficient. REQUIRES: `shape` is fully known, elements have a fixed size.
  static absl::StatusOr<Tensor> Allocate(DType dtype, Shape shape, char** data);
  template <typename T>
  static absl::StatusOr<Tensor> Allocate(Shape shape, T** data) {
    char* raw = nullptr;
    absl::StatusOr<Tensor> tensor = Allocate(DTypeOf<T>::value, std::move(shape), &raw);
    *data = reinterpret_cast<T*>(raw);
    return tensor;
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return shape_.num_elements(); }

  // The raw elements: row-major, little-endian. Empty for string tensors.
  absl::string_view bytes() const { return bytes_; }
  const Owner& owner() const { return owner_; }

  // REQUIRES: dtype() is that of T.
  template <typename T>
  UnalignedSpan<T> elements() const {
    return UnalignedSpan<T>(bytes_.data(), bytes_.size() / sizeof(T));
  }
  // REQUIRES: as above, and IsAligned().
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes_.data());
  }
  // True if data<T>() may be used: the buffer is aligned to 64 bytes, which suffices for every instruction set.
  bool IsAligned() const { return reinterpret_cast<uintptr_t>(bytes_.data()) % 64 == 0; }
  // Returns this tensor if it is aligned, otherwise a copy in an aligned buffer.
  absl::StatusOr<Tensor> Aligned() const;

  // REQUIRES: dtype() is kString.
  const std::vector<std::string>& strings() const { return *strings_; }

  // Returns the same elements with another shape. Returns InvalidArgument if the number of elements differs.
  absl::StatusOr<Tensor> Reshaped(Shape shape) const;

  // Equal type, shape and bytes. A NaN equals the same NaN, and 0 differs from -0.
  friend bool operator==(const Tensor& a, const Tensor& b);
  friend bool operator!=(const Tensor& a, const Tensor& b) { return !(a == b); }

 private:
  Tensor(DType dtype, Shape shape, absl::string_view bytes, Owner owner)
      : dtype_(dtype), shape_(std::move(shape)), bytes_(bytes), owner_(std::move(owner)) {}
  static Tensor Copy(DType dtype, Shape shape, absl::string_view bytes);

  DType dtype_ = DType::kInvalid;
  Shape shape_;
  absl::string_view bytes_;
  Owner owner_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

// Returns the elements of an int32 or int64 tensor. Returns InvalidArgument for other types.
absl::StatusOr<std::vector<int64_t>> IntegerValues(const Tensor& tensor);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_TENSOR_H_
