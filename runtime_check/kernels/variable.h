// Resource variables: tensors that a session keeps from one run to the next.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_VARIABLE_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_VARIABLE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "runtime_check/kernel.h"

namespace permafrost {

// A variable owns its value: reading and assigning copy.
struct Variable : RuntimeObject {
  static constexpr absl::string_view kKind = "variable";
  absl::string_view kind() const override { return kKind; }

  DType dtype = DType::kInvalid;
  Shape declared = Shape::UnknownRank();  // Every value is compatible with it.
  Tensor value;                           // Of type kInvalid until the first assignment.
  char* elements = nullptr;               // Those of `value`; null for strings.
  Reservation reservation;

  bool is_initialized() const { return value.dtype() != DType::kInvalid; }
};
using VariableRef = std::shared_ptr<Variable>;

// Returns the initialised variable that input 0 refers to. FailedPrecondition if it has no value, InvalidArgument if
// its type is not `dtype`.
absl::StatusOr<VariableRef> InitializedVariable(const ComputeContext* context, DType dtype);

// Copies input i into the variable. InvalidArgument for another type than the variable's, or a shape that does not
// match the declared one.
absl::Status Assign(ComputeContext* context, int i, Variable* variable);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_VARIABLE_H_
