// What a library has compiled: a partition, or the node of a custom op.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_COMPILED_CODE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_COMPILED_CODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/tensor.h"
#include "runtime_check/delegates/external/permafrost_delegate.h"
#include "runtime_check/delegates/external/shared_library.h"

namespace permafrost {

// Keeps alive the library (`library` holds whatever has to be destroyed after this) and the constants that the code
// points to.
class CompiledCode {
 public:
  // Takes over `compiled`, as a library has filled it in. Internal when it makes no sense; then it is destroyed.
  static absl::StatusOr<std::unique_ptr<CompiledCode>> Take(const permafrost_compiled& compiled,
                                                            std::vector<Tensor> constants,
                                                            std::shared_ptr<const void> library);
  ~CompiledCode();
  CompiledCode(const CompiledCode&) = delete;
  CompiledCode& operator=(const CompiledCode&) = delete;

  int64_t scratch_bytes() const { return static_cast<int64_t>(compiled_.scratch_bytes); }
  int64_t constant_bytes() const { return static_cast<int64_t>(compiled_.constant_bytes); }
  std::vector<std::string> Describe() const;
  // Internal with the library's text.
  absl::Status Run(permafrost_run run) const;

 private:
  CompiledCode(const permafrost_compiled& compiled, std::vector<Tensor> constants, std::shared_ptr<const void> library)
      : library_(std::move(library)), constants_(std::move(constants)), compiled_(compiled) {}

  std::shared_ptr<const void> library_;
  std::vector<Tensor> constants_;
  permafrost_compiled compiled_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_COMPILED_CODE_H_
