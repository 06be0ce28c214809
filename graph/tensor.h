// Tensors: element type, shape and a shared, immutable buffer that is owned or a view into a mapped file.
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

// Keeps whatever memory a view points into alive.
using Owner = std::shared_ptr<const void>;

// Reads elements from memory of any alignment: a mapped file puts tensors at any byte.
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

// A value type: copies share the buffer. Thread-safe, since nothing ever changes a buffer that a Tensor holds.
class Tensor {
 public:
  // A float scalar 0... of no use but as a placeholder for assignment.
  Tensor() = default;

  // A view of `bytes`, which `owner` keeps alive (null: the caller does); of bools that are not all 0 or 1 a copy in
  // which they are. InvalidArgument unless `shape` is fully known and `bytes` has exactly its size, or for a type
  // without fixed-size elements.
  static absl::StatusOr<Tensor> FromBytes(DType dtype, Shape shape, absl::string_view bytes, Owner owner);

  // Takes over `values`. REQUIRES: as many values as the shape has elements.
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

  // `bytes`, or, where at least a quarter of the last huge page (2 MB) would be used, those of whole ones: memory that
  // is soon filled comes in one step then, where small pages cost a page fault each.
  static int64_t InHugePages(int64_t bytes);

  // A new buffer, 64-byte aligned and not initialised, for the caller to fill through *data before it shares the
  // tensor. REQUIRES: fully known shape, fixed-size elements. ResourceExhausted when memory does not suffice.
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

  // The raw elements, row-major, little-endian. Empty for string tensors.
  absl::string_view bytes() const { return bytes_; }
  const Owner& owner() const { return owner_; }

  // REQUIRES: dtype() is that of T.
  template <typename T>
  UnalignedSpan<T> elements() const {
    return UnalignedSpan<T>(bytes_.data(), bytes_.size() / sizeof(T));
  }
  // REQUIRES as above, and IsAligned().
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes_.data());
  }
  // True when data<T>() may be used: the buffer starts at a multiple of 64 bytes, which suits every instruction set.
  bool IsAligned() const { return reinterpret_cast<uintptr_t>(bytes_.data()) % 64 == 0; }
  // This tensor, or a copy of it in an aligned buffer.
  absl::StatusOr<Tensor> Aligned() const;

  // REQUIRES: dtype() is kString.
  const std::vector<std::string>& strings() const { return *strings_; }

  // Same elements under another shape. InvalidArgument when the counts differ.
  absl::StatusOr<Tensor> Reshaped(Shape shape) const;

  // Equal type, shape and bytes (so NaN equals the same NaN, and 0 differs from -0).
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

// Reads integers of type int32 or int64, as shape-like tensors hold them. InvalidArgument for other types.
absl::StatusOr<std::vector<int64_t>> IntegerValues(const Tensor& tensor);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_TENSOR_H_
