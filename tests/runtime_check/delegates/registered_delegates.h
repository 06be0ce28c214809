// What tests know about each delegate of the registry beside its name.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_REGISTERED_DELEGATES_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_REGISTERED_DELEGATES_H_

#include <string>
#include <vector>

#include "tests/runtime_check/delegates/conformance.h"

namespace permafrost {

// All but the reference.
std::vector<std::string> RegisteredDelegates();

// What the recorded cases may ask of it.
ConformanceOptions ConformanceOptionsOf(const std::string& delegate);

// All of them, for docs/delegates.md.
std::vector<DocumentedDelegate> DocumentedDelegates();

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_REGISTERED_DELEGATES_H_
