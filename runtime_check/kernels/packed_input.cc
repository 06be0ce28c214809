// Packs inputs, after a look-up in the cache.
#include "runtime_check/kernels/packed_input.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

// Version of the packing of matrices. A change invalidates all cached inputs.
constexpr int kLayoutVersion = 1;

constexpr uintptr_t kAlignment = 64;  // Alignment of a vector register.

}  // namespace

std::string PackedInput::KeyOf(const PrepareContext& context, int i, const InnerLoops& loops,
                               absl::FunctionRef<std::string()> form) {
  if (context.packed_inputs() == nullptr) return "";
  const std::string name = context.packed_inputs()->value_name(i);
  if (name.empty()) return "";
  return absl::StrCat(name, " ", form(), " in panels of ", loops.panel_width, "/", loops.vector_floats);
}

bool PackedInput::Find(const PrepareContext& context, const std::string& key, int64_t count) {
  if (key.empty() || count == 0) return false;
  const std::optional<PackedBytes> found = context.packed_inputs()->weights->Find(key);
  if (!found.has_value()) return false;
  const absl::string_view bytes = found->bytes;
  if (bytes.size() / sizeof(float) != static_cast<size_t>(count) || bytes.size() % sizeof(float) != 0 ||
      reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment != 0) {
    return false;
  }
  Set(*found, &kept_);
  return true;
}

void PackedInput::Keep(const PrepareContext& context, const std::string& key, int64_t count) {
  if (key.empty() || count == 0) return;
  const auto* const data = reinterpret_cast<const char*>(own_.data());
  const PackedBytes packed = {absl::string_view(data, static_cast<size_t>(count) * sizeof(float)),
                              std::make_shared<FloatBuffer>(std::move(own_))};
  Set(packed, &kept_);
  context.packed_inputs()->weights->Keep(key, packed);
}

std::string ReferencePackingIdentity() {
  const InnerLoops& loops = BestInnerLoops();
  return absl::StrCat("reference kernels, panels of ", loops.panel_width, "/", loops.vector_floats, ", layout ",
                      kLayoutVersion);
}

}  // namespace permafrost
