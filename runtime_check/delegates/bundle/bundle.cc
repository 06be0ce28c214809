// The bundle of the delegates' libraries: a shared library that needs oneDNN, OpenMP, XNNPACK and pthreadpool, and
// precedes them in the search order of the dynamic linker.
//
// A library that a program loads with dlopen does not see the symbols of other libraries loaded that way, such as those
// of an extension module of Python. In the order of the linker, functions of the bundle come before those of OpenMP and
// pthreadpool, so oneDNN and XNNPACK call the functions here. The runtime replaces them by its own
// (runtime_check/delegates/onednn/openmp.h, xnnpack/pools.h). A call before that is passed on to OpenMP or pthreadpool.
#include "third_party/deferred/deferred_library.h"

namespace permafrost::deferred {

Library& BundledOpenMp();
Library& BundledPthreadpool();

}  // namespace permafrost::deferred

extern "C" {

// Replaces a function, in all threads. The name is that of a function of OpenMP or pthreadpool; others are ignored.
void permafrost_delegates_replace(const char* function, void* replacement) {
  using namespace permafrost::deferred;  // NOLINT: one function.
  if (!BundledOpenMp().SetSlot(function, replacement)) BundledPthreadpool().SetSlot(function, replacement);
}

}  // extern "C"
