// Handles Ctrl-C, so that a long measurement can stop and print its results.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_INTERRUPTION_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_INTERRUPTION_H_

#include <signal.h>

namespace permafrost {

// While an object lives, the first SIGINT only sets a flag; a second one ends the process as usual. At most one object
// may exist.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Returns whether a SIGINT arrived. Thread-safe.
  static bool IsRequested();

 private:
  struct sigaction before_;
};

// While an object lives, inside the life of an Interruption, a SIGINT ends the process as if there were none: for work
// that has no results yet and does not ask IsRequested, such as preparing sessions. Not thread-safe.
class EndsAtOnce {
 public:
  EndsAtOnce();
  ~EndsAtOnce();
  EndsAtOnce(const EndsAtOnce&) = delete;
  EndsAtOnce& operator=(const EndsAtOnce&) = delete;

 private:
  struct sigaction before_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_INTERRUPTION_H_
