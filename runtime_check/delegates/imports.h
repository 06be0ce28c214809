// Redirects functions that a loaded library imports.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_IMPORTS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_IMPORTS_H_

#include "absl/types/span.h"

namespace permafrost {

struct Import {
  const char* name;
  void* replacement;
};

// Makes the loaded library that `inside` is an address of call the replacements instead of the functions of these names
// in other libraries. Calls of those functions by other libraries and by the program stay as they are. Returns false,
// without changes, if the library does not import all of them, or if the system keeps its tables read-only.
bool RedirectImports(const void* inside, absl::Span<const Import> imports);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_IMPORTS_H_
