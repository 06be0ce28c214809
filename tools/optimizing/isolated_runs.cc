// Forks, reads results from pipes, and ends children that exceed their time.
#include "tools/optimizing/isolated_runs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

using Clock = std::chrono::steady_clock;

// Interval of checks for interruptions and timeouts: short for a person, long for a processor.
constexpr int kPollMilliseconds = 50;

// A running child.
struct Child {
  size_t index = 0;
  pid_t pid = -1;
  int pipe = -1;
  std::string received;
  Clock::time_point deadline;
};

bool WriteAll(int pipe, const std::string& bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = write(pipe, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    written += static_cast<size_t>(count);
  }
  return true;
}

// The life of a child: never returns.
[[noreturn]] void RunChild(const IsolatedFunction& function, pid_t parent, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // The parent ended before the call.
  signal(SIGINT, SIG_IGN);            // The parent decides what Ctrl-C means.
  const absl::StatusOr<std::string> result = function();
  // The first byte is the code of the status.
  std::string answer(1, static_cast<char>(result.status().code()));
  answer += result.ok() ? *result : std::string(result.status().message());
  _exit(WriteAll(pipe, answer) ? 0 : 1);
}

absl::StatusOr<Child> Start(const IsolatedFunction& function, size_t index, double timeout_seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot create a pipe: ", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    return absl::ResourceExhaustedError(absl::StrCat("cannot create a process: ", std::strerror(error)));
  }
  if (pid == 0) {
    close(ends[0]);
    RunChild(function, parent, ends[1]);
  }
  close(ends[1]);
  Child child;
  child.index = index;
  child.pid = pid;
  child.pipe = ends[0];
  child.deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
  return child;
}

// Waits for the child and returns its wait status.
int Reap(Child* child) {
  close(child->pipe);
  int status = 0;
  while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void Kill(Child* child) {
  kill(child->pid, SIGKILL);
  Reap(child);
}

absl::StatusOr<std::string> ResultOf(Child* child) {
  const int status = Reap(child);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return absl::InternalError(absl::StrCat("the trial crashed: ", strsignal(signal)));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || child->received.empty()) {
    return absl::InternalError("the trial ended without a result");
  }
  const auto code = static_cast<absl::StatusCode>(child->received[0]);
  std::string text = child->received.substr(1);
  if (code == absl::StatusCode::kOk) return text;
  return absl::Status(code, text);
}

// Reads what is there. Returns true at the end of the pipe.
bool ReadSome(Child* child) {
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = read(child->pipe, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    child->received.append(buffer, static_cast<size_t>(count));
    return false;
  }
}

}  // namespace

void RunIsolated(const std::vector<IsolatedFunction>& functions, const IsolationLimits& limits,
                 const std::function<bool()>& must_stop,
                 absl::FunctionRef<void(size_t index, absl::StatusOr<std::string> result)> done) {
  std::vector<Child> running;
  size_t next = 0;
  while (next < functions.size() || !running.empty()) {
    if (must_stop != nullptr && must_stop()) {
      for (Child& child : running) {
        Kill(&child);
        done(child.index, absl::CancelledError("stopped"));
      }
      for (; next < functions.size(); ++next) done(next, absl::CancelledError("stopped"));
      return;
    }
    while (next < functions.size() && running.size() < static_cast<size_t>(std::max(1, limits.jobs))) {
      absl::StatusOr<Child> child = Start(functions[next], next, limits.timeout_seconds);
      if (child.ok()) {
        running.push_back(*std::move(child));
      } else {
        done(next, child.status());
      }
      ++next;
    }
    std::vector<pollfd> pipes;
    for (const Child& child : running) pipes.push_back({child.pipe, POLLIN, 0});
    if (poll(pipes.data(), pipes.size(), kPollMilliseconds) < 0 && errno != EINTR) continue;
    std::vector<Child> still_running;
    for (size_t i = 0; i < running.size(); ++i) {
      Child& child = running[i];
      if (pipes[i].revents != 0 && ReadSome(&child)) {
        done(child.index, ResultOf(&child));
      } else if (Clock::now() > child.deadline) {
        Kill(&child);
        done(child.index, absl::DeadlineExceededError(
                              absl::StrCat("the trial took more than ", limits.timeout_seconds, " seconds")));
      } else {
        still_running.push_back(std::move(child));
      }
    }
    running = std::move(still_running);
  }
}

}  // namespace permafrost
