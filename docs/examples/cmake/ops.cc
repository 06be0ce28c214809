// Prints the ops that the model needs, a line each.
#include <cstdio>

#include "ops_to_register.h"

int main() {
  for (const char* const op : permafrost::ops_to_register::kOps) std::printf("%s\n", op);
  return 0;
}
