// Catches what the body of main() throws.
#include "tools/command_line/main_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

namespace permafrost {
namespace {

constexpr int kError = 255;  // As ExitCode for an error.

// The streams may need memory.
void Print(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // Nothing else is left to try.
}

// Unwinding and the report take kilobytes. The rest is for small allocations until a large one, whose size is checked
// or whose failure is survived, ends the work. Untouched pages take no memory.
constexpr size_t kReserveBytes = size_t{8} << 20;

std::atomic<void*> reserve{nullptr};

// A std::new_handler: returns for another attempt, or throws.
void ReleaseReserve() {
  void* const released = reserve.exchange(nullptr);
  if (released == nullptr) throw std::bad_alloc();
  munmap(released, kReserveBytes);
}

void HoldReserve() {
  void* const held = mmap(nullptr, kReserveBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (held == MAP_FAILED) return;
  reserve.store(held);
  std::set_new_handler(&ReleaseReserve);
}

}  // namespace

int GuardMain(int (*run)(int argc, char** argv), int argc, char** argv) {
  HoldReserve();
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
