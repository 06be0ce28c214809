// Checks that the delegates load and compute correctly.
#ifndef PERMAFROST_TOOLS_DIAGNOSIS_DELEGATE_CHECK_H_
#define PERMAFROST_TOOLS_DIAGNOSIS_DELEGATE_CHECK_H_

#include <vector>

#include "tools/diagnosis/finding.h"

namespace permafrost {

// Returns a finding for each known delegate. A delegate that loads runs a small network of a convolution and a matrix
// product, and its outputs are compared with those of the built-in kernels. A delegate that lacks its library, device
// or instruction set is an advice; one that fails to load, fails or computes wrong is a problem.
std::vector<Finding> CheckDelegates(int num_threads);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIAGNOSIS_DELEGATE_CHECK_H_
