// A minimal, async-signal-safe handler.
#include "tools/command_line/interruption.h"

#include <atomic>

namespace permafrost {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not wait for a lock");

void OnSignal(int) { requested.store(true, std::memory_order_relaxed); }

}  // namespace

Interruption::Interruption() {
  requested.store(false, std::memory_order_relaxed);
  struct sigaction action = {};
  action.sa_handler = &OnSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // The second SIGINT has its previous effect.
  sigaction(SIGINT, &action, &before_);
}

Interruption::~Interruption() { sigaction(SIGINT, &before_, nullptr); }

EndsAtOnce::EndsAtOnce() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

EndsAtOnce::~EndsAtOnce() { sigaction(SIGINT, &before_, nullptr); }

bool Interruption::IsRequested() { return requested.load(std::memory_order_relaxed); }

}  // namespace permafrost
