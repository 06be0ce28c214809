// Runs command lines in child processes with a time limit.
#include "tools/command_line/child_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

using Clock = std::chrono::steady_clock;

// The start of a command's output that is searched: more than any error message, and no risk for memory.
constexpr size_t kMostOutput = size_t{1} << 20;

}  // namespace

absl::StatusOr<CommandEnd> RunCommand(const std::string& command, double seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ResourceExhaustedError("cannot create a pipe");
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return absl::ResourceExhaustedError(absl::StrCat("cannot create a process: ", std::strerror(errno)));
  }
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, 0);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  setpgid(pid, pid);  // Also here, so that the order of the two processes does not matter.
  close(ends[1]);
  CommandEnd end;
  const Clock::time_point deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  bool is_late = false;
  int status = 0;
  bool has_ended = false, is_open = true;
  // Reads what is there, for at most `milliseconds`. Returns false if there is nothing.
  const auto read_some = [&](int milliseconds) {
    pollfd ready = {is_open ? ends[0] : -1, POLLIN, 0};
    if (poll(&ready, 1, milliseconds) <= 0) return false;
    char buffer[1 << 16];
    const ssize_t size = read(ends[0], buffer, sizeof(buffer));
    if (size > 0 && end.output.size() < kMostOutput) end.output.append(buffer, static_cast<size_t>(size));
    is_open = size > 0 || (size < 0 && errno == EINTR);
    return is_open;
  };
  while (!has_ended) {
    constexpr int kPollMilliseconds = 10;
    if (Clock::now() > deadline) {
      is_late = true;
      kill(-pid, SIGKILL);
    }
    read_some(kPollMilliseconds);
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    has_ended = ended == pid || (ended < 0 && errno != EINTR);
  }
  while (end.output.size() < kMostOutput && read_some(0)) {
  }
  kill(-pid, SIGKILL);  // What the command left running.
  close(ends[0]);
  end.is_ok = !is_late && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (is_late) {
    end.how = "no end within the time limit";
  } else if (WIFSIGNALED(status)) {
    end.how = absl::StrCat("signal ", WTERMSIG(status));
  } else {
    end.how = absl::StrCat("exit status ", WEXITSTATUS(status));
  }
  return end;
}

}  // namespace permafrost
