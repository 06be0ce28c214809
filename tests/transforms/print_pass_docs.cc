// Prints docs/passes.md.
#include <cstdio>

#include "transforms/pass_docs.h"

int main() {
  const std::string page = permafrost::PassDocs();
  return std::fwrite(page.data(), 1, page.size(), stdout) == page.size() ? 0 : 1;
}
