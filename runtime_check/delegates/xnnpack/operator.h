// An operator of the library, made for one operation.
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

// REQUIRES: operation.is_library(), and the library is initialized. Weights are packed into memory of the operator's
// own. The status is the library's.
absl::StatusOr<OperatorPointer> MakeOperator(const Operation& operation);

// Points the operator to its memory. `inputs` has operation.inputs.size() pointers. Reads and writes none of it.
absl::Status SetUpOperator(const Operation& operation, xnn_operator_t op, const float* const* inputs, float* output,
                           pthreadpool_t pool);

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_OPERATOR_H_
