// The sandbox of a tool: the flag --sandbox. A model that takes over the process reaches only what the command line
// names.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_SANDBOX_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_SANDBOX_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost {

// The permissions that a process keeps in a sandbox.
struct SandboxPlan {
  // Files, and folders with everything below them. Those that do not exist are ignored.
  std::vector<std::string> readable;
  // Folders below which files and folders may be read, created, replaced and removed, or devices and pipes.
  std::vector<std::string> writable;
  bool may_fork = false;  // Copies of this process are in the same sandbox.
};

// Why a part of the sandbox is missing. Empty if it is in force.
struct SandboxGaps {
  std::string files;         // landlock: Linux 5.13 or later.
  std::string system_calls;  // seccomp: Linux 3.17 or later, on x86-64 and 64-bit ARM.

  bool empty() const { return files.empty() && system_calls.empty(); }
};

// The kind of files that a flag names. Links in a model's folder come with the model; those in a folder of data are the
// user's.
enum class NamedFiles { kModel, kData };

// Adds to the plan what a value of a flag for an input names: files, folders and patterns, also in a list or after
// "name=" and "name:". The folder of a model brings the files that its links may name (LinkedFilesOf), a folder of data
// all files that its links name. A file brings its certificate, and its folder if its name is one of a format with side
// files. A path that does not exist may be the prefix of a checkpoint, and brings its folder.
void AddReadable(absl::string_view value, NamedFiles kind, SandboxPlan* plan);

// Adds to the plan the files and prefixes of checkpoints that a transform string names as arguments of passes.
void AddReadableOfText(absl::string_view text, SandboxPlan* plan);

// Adds to the plan what writing to `path` needs: the folder of the file that links lead to, because an output is
// written to a temporary file beside it, and the file or folder itself if it exists.
void AddWritable(absl::string_view path, SandboxPlan* plan);

// Restricts this process and its future threads for the rest of its life: it opens no files but those of the plan, of
// the system (/usr, /lib, /proc, /sys) and the standard streams, starts no programs, has no network, sends no signals,
// and cannot debug other processes. A part that the kernel does not offer is reported, and the other is still in force.
// Must be called before other threads exist.
SandboxGaps EnterSandbox(const SandboxPlan& plan);

// Returns whether EnterSandbox has restricted the files of this process.
bool AreFilesRestricted();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_SANDBOX_H_
