// An XNNPACK operator, created for one operation.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_OPERATOR_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_OPERATOR_H_

#include <pthreadpool.h>
#include <xnnpack.h>

#include <memory>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime_check/delegates/xnnpack/operation.h"

namespace permafrost {
namespace xnnpack {

struct OperatorDeleter {
  void operator()(xnn_operator_t op) const { xnn_delete_operator(op); }
};
using OperatorPointer = std::unique_ptr<std::remove_pointer_t<xnn_operator_t>, OperatorDeleter>;

// Creates the operator, which owns its packed weights. Returns the error of the library.
// REQUIRES: operation.is_library(), and the library is initialized.
absl::StatusOr<OperatorPointer> MakeOperator(const Operation& operation);

// Sets the pointers of the operator to its inputs and output. `inputs` has operation.inputs.size() pointers. Does not
// access the memory.
absl::Status SetUpOperator(const Operation& operation, xnn_operator_t op, const float* const* inputs, float* output,
                           pthreadpool_t pool);

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_OPERATOR_H_
