// Notices Ctrl-C, so that a long measurement can stop and print what it has.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_INTERRUPTION_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_INTERRUPTION_H_

#include <signal.h>

namespace permafrost {

// While one lives, the first SIGINT only sets a flag; a second one ends the process as always. One at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Thread-safe.
  static bool IsRequested();

 private:
  struct sigaction before_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_INTERRUPTION_H_
