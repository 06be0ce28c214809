// Code that an external library has compiled for a partition or for the node of a custom op.
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

// Owns compiled code. Keeps alive the constants to which the code points, and the library: `library` is any object that
// must be destroyed after the code.
class CompiledCode {
 public:
  // Takes ownership of `compiled` as the library has filled it in. Returns Internal if it is invalid, after destroying
  // it.
  static absl::StatusOr<std::unique_ptr<CompiledCode>> Take(const permafrost_compiled& compiled,
                                                            std::vector<Tensor> constants,
                                                            std::shared_ptr<const void> library);
  ~CompiledCode();
  CompiledCode(const CompiledCode&) = delete;
  CompiledCode& operator=(const CompiledCode&) = delete;

  int64_t scratch_bytes() const { return static_cast<int64_t>(compiled_.scratch_bytes); }
  int64_t constant_bytes() const { return static_cast<int64_t>(compiled_.constant_bytes); }
  std::vector<std::string> Describe() const;
  // Runs the code. Returns Internal with the library's message on failure.
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
