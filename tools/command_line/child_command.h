// Runs command lines in child processes.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_CHILD_COMMAND_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_CHILD_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"

namespace permafrost {

// How a command ended.
struct CommandEnd {
  std::string how;     // "exit status 3", "signal 11", "no end within the time limit".
  bool is_ok = false;  // Exit status 0.
  std::string output;  // Standard output and standard error, at most 1 MiB.
};

// Runs a command line by /bin/sh, without standard input. Its process group is killed when the time is over, and when
// it has ended. Returns ResourceExhausted if no process can be started.
absl::StatusOr<CommandEnd> RunCommand(const std::string& command, double seconds);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_CHILD_COMMAND_H_
