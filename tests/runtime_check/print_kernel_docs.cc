// Prints docs/kernels.md.
#include <cstdio>

#include "runtime_check/kernels/kernel_docs.h"

int main() {
  const std::string page = permafrost::KernelDocs();
  return std::fwrite(page.data(), 1, page.size(), stdout) == page.size() ? 0 : 1;
}
