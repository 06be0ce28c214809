// Catches what the body of main() throws.
#include "tools/command_line/main_guard.h"

#include <unistd.h>

#include <cstring>
#include <exception>

namespace permafrost {
namespace {

constexpr int kError = 255;  // As ExitCode for an error.

// The streams may need memory.
void Print(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // Nothing else is left to try.
}

}  // namespace

int GuardMain(int (*run)(int argc, char** argv), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& exception) {
    Print(argc > 0 ? argv[0] : "permafrost");
    Print(": the tool did not start or report: ");
    Print(exception.what());
    Print("\n");
  }
  return kError;
}

}  // namespace permafrost
