// The registered delegates, with options and descriptions for tests.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_REGISTERED_DELEGATES_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_REGISTERED_DELEGATES_H_

#include <string>
#include <vector>

#include "tests/runtime_check/delegates/conformance.h"

namespace permafrost {

// Returns the names of all delegates except the reference.
std::vector<std::string> RegisteredDelegates();

// Returns the options for running the recorded cases with the delegate.
ConformanceOptions ConformanceOptionsOf(const std::string& delegate);

// Returns all delegates for docs/delegates.md.
std::vector<DocumentedDelegate> DocumentedDelegates();

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_REGISTERED_DELEGATES_H_
