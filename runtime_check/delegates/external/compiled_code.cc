// Owns and calls the code that an external library has compiled.
#include "runtime_check/delegates/external/compiled_code.h"

#include <cinttypes>
#include <limits>

#include "absl/strings/str_cat.h"

namespace permafrost {

// Limit on the lines for --explain, against a library that never ends its list.
constexpr int32_t kMostPieces = 1'000'000;

absl::StatusOr<std::unique_ptr<CompiledCode>> CompiledCode::Take(const permafrost_compiled& compiled,
                                                                 std::vector<Tensor> constants,
                                                                 std::shared_ptr<const void> library) {
  std::unique_ptr<CompiledCode> code(new CompiledCode(compiled, std::move(constants), std::move(library)));
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (compiled.run == nullptr) return absl::InternalError("the library returns no function to run");
  if (compiled.scratch_bytes > kMost || compiled.constant_bytes > kMost) {
    return absl::InternalError(absl::StrCat("the library requests ", compiled.scratch_bytes,
                                            " bytes of scratch memory and reports ", "keeps ", compiled.constant_bytes,
                                            ", expected less than 2^63"));
  }
  return code;
}

CompiledCode::~CompiledCode() {
  if (compiled_.destroy != nullptr) compiled_.destroy(compiled_.self);
}

std::vector<std::string> CompiledCode::Describe() const {
  std::vector<std::string> pieces;
  if (compiled_.describe == nullptr) return pieces;
  for (int32_t i = 0; i < kMostPieces; ++i) {
    const char* piece = compiled_.describe(compiled_.self, i);
    if (piece == nullptr) break;
    pieces.emplace_back(piece);
  }
  return pieces;
}

absl::Status CompiledCode::Run(permafrost_run run) const {
  run.struct_size = sizeof(run);
  ErrorBuffer error;
  const absl::Status status = error.ToStatus(compiled_.run(compiled_.self, &run, error.data(), error.size()));
  return absl::IsUnimplemented(status) ? absl::InternalError(status.message()) : status;
}

}  // namespace permafrost
