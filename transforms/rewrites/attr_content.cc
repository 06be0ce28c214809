// Compares and hashes attribute values by content.
#include "transforms/rewrites/attr_content.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/hash/hash.h"

namespace permafrost {
namespace {

// Smaller tensors are hashed whole; of larger ones samples are hashed.
constexpr size_t kLargeBytes = 4096;
constexpr size_t kSamples = 16;
constexpr size_t kSampleBytes = 64;
// A tensor in its wire form is decoded if that takes at most this much memory, or twice that of the wire form.
constexpr int64_t kAlwaysDecodedBytes = 1 << 20;

// Returns the decoded tensor, or nothing if the wire form is its content.
std::optional<Tensor> Decoded(const AttrValue& value) {
  if (value.held_tensor() != nullptr) return *value.held_tensor();
  DType dtype;
  Shape shape;
  if (value.kind() != AttrValue::Kind::kTensor || !value.TensorTypeAndShape(&dtype, &shape).ok()) return std::nullopt;
  if (!shape.IsFullyKnown()) return std::nullopt;
  const absl::StatusOr<int64_t> count = shape.CheckedNumElements();
  const int64_t element_size = std::max<int64_t>(1, static_cast<int64_t>(SizeOf(dtype)));
  const int64_t most = std::max(kAlwaysDecodedBytes, 2 * static_cast<int64_t>(value.encoded().size()));
  if (!count.ok() || *count > most / element_size) return std::nullopt;
  absl::StatusOr<Tensor> tensor = value.AsTensor();
  if (!tensor.ok()) return std::nullopt;
  return *std::move(tensor);
}

// Returns the bytes of the wire form; `*copy` owns them if the value does not.
absl::string_view WireForm(const AttrValue& value, std::string* copy) {
  if (value.held_tensor() == nullptr) return value.encoded();
  *copy = value.Encoded();
  return *copy;
}

uint64_t HashBytes(absl::string_view bytes, ContentHashing hashing) {
  if (hashing == ContentHashing::kWhole || bytes.size() <= kLargeBytes) return absl::HashOf(bytes);
  uint64_t hash = bytes.size();
  for (size_t i = 0; i < kSamples; ++i) {
    hash = absl::HashOf(hash, bytes.substr((bytes.size() - kSampleBytes) / (kSamples - 1) * i, kSampleBytes));
  }
  return hash;
}

}  // namespace

bool SameContent(const AttrValue& a, const AttrValue& b) {
  std::optional<Tensor> decoded_a = Decoded(a), decoded_b = Decoded(b);
  if (decoded_a.has_value() && decoded_b.has_value()) return *decoded_a == *decoded_b;
  if (decoded_a.has_value() != decoded_b.has_value()) return false;
  std::string copy_a, copy_b;
  return WireForm(a, &copy_a) == WireForm(b, &copy_b);
}

uint64_t ContentHash(const AttrValue& value, ContentHashing hashing) {
  if (const std::optional<Tensor> tensor = Decoded(value); tensor.has_value()) {
    const uint64_t header = absl::HashOf(static_cast<int32_t>(tensor->dtype()), tensor->shape().dims());
    if (tensor->dtype() == DType::kString) return absl::HashOf(header, tensor->strings());
    return absl::HashOf(header, HashBytes(tensor->bytes(), hashing));
  }
  std::string copy;
  return HashBytes(WireForm(value, &copy), hashing);
}

bool IsLargeTensor(const AttrValue& value) {
  const size_t size = value.held_tensor() != nullptr ? value.held_tensor()->bytes().size() : value.encoded().size();
  return size > kLargeBytes;
}

}  // namespace permafrost
