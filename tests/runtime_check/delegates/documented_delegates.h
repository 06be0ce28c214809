// The delegates that docs/delegates.md is about.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_DOCUMENTED_DELEGATES_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_DOCUMENTED_DELEGATES_H_

#include <vector>

#include "runtime_check/delegates/xnnpack/xnnpack_delegate.h"
#include "tests/runtime_check/delegates/conformance.h"

namespace permafrost {

inline std::vector<DocumentedDelegate> DocumentedDelegates() {
  return {
      {"xnnpack",
       "Float subgraphs of vision models, NHWC, with XNNPACK. Its kernels turn NaN into a number where they clamp, so "
       "a "
       "partition\nthat has one of these is for finite numbers: a run with NaN or infinity in what goes in is an "
       "error, "
       "and nodes that make NaN\nof finite numbers are refused. A sum that overflows inside is not noticed.",
       &MakeXnnpackDelegate},
  };
}

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_DOCUMENTED_DELEGATES_H_
