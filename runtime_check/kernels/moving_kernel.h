// The definition shared by kernels that only move elements, of any type.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_MOVING_KERNEL_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_MOVING_KERNEL_H_

#include "runtime_check/kernel.h"
#include "runtime_check/kernels/copy_list.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/stand_in.h"

namespace permafrost {

// Returns a kernel whose Prepare leaves a CopyList as the state. The elements have type T, which includes strings.
template <PrepareFunction prepare>
Kernel MovingKernel(const char* formula) {
  return Kernel(formula)
      .TypeNumbers("T", MovableAndStringTypes())
      .Prepare(PrepareNumbered<prepare>)
      .Compute(ComputeNumbered<ComputeCopies>);
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_MOVING_KERNEL_H_
