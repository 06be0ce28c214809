// Prints docs/delegates.md.
#include <cstdio>

#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/registered_delegates.h"

int main() {
  const auto page = permafrost::DelegateDocs(permafrost::DocumentedDelegates());
  if (!page.ok()) {
    std::fprintf(stderr, "%s\n", page.status().ToString().c_str());
    return 1;
  }
  return std::fwrite(page->data(), 1, page->size(), stdout) == page->size() ? 0 : 1;
}
