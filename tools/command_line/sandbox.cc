// Implements the sandbox with landlock, which restricts paths, and seccomp, which restricts system calls.
#include "tools/command_line/sandbox.h"

#include <fcntl.h>
#include <glob.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "io/checked_files.h"
#include "io/file_system.h"
#include "tools/command_line/certificate_path.h"

namespace permafrost {
namespace {

std::atomic<bool> are_files_restricted{false};

// landlock, as in linux/landlock.h, which older distributions lack or have without the later rights. The numbers of the
// system calls are the same on all architectures.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1;

enum Right : uint64_t {
  kExecute = 1 << 0,
  kWriteFile = 1 << 1,
  kReadFile = 1 << 2,
  kReadFolder = 1 << 3,
  kRemoveFolder = 1 << 4,
  kRemoveFile = 1 << 5,
  kMakeFolder = 1 << 7,
  kMakeFile = 1 << 8,
  kVersion1 = (1 << 13) - 1,
  kMoveBetweenFolders = 1 << 13,  // Version 2.
  kTruncate = 1 << 14,            // Version 3.
};
constexpr uint64_t kNetworkRights = 3;  // TCP: bind and connect; version 4.
constexpr uint64_t kScopes = 3;         // Abstract sockets and signals; version 6.

struct RulesetAttributes {
  uint64_t files;
  uint64_t network;  // Version 4.
  uint64_t scopes;   // Version 6.
};

struct PathRule {
  uint64_t allowed;
  int32_t file;
} __attribute__((packed));

constexpr uint64_t kRead = kReadFile | kReadFolder;
constexpr uint64_t kWrite =
    kRead | kWriteFile | kRemoveFile | kRemoveFolder | kMakeFolder | kMakeFile | kMoveBetweenFolders | kTruncate;
constexpr uint64_t kRightsOfFiles = kExecute | kWriteFile | kReadFile | kTruncate;

// Paths of the system that programs read: libraries, time zones, processors and memory. Other processes of the user
// stay closed, because landlock forbids debugging them, which their files in /proc ask for.
constexpr const char* kReadableOfSystem[] = {"/usr",
                                             "/lib",
                                             "/lib32",
                                             "/lib64",
                                             "/proc",
                                             "/sys",
                                             "/dev/zero",
                                             "/dev/urandom",
                                             "/etc/passwd",
                                             "/etc/nsswitch.conf",
                                             "/etc/ld.so.cache",
                                             "/etc/localtime"};

class Ruleset {
 public:
  ~Ruleset() {
    if (ruleset_ >= 0) close(ruleset_);
  }

  // Returns 0, or the number of an error.
  int Create() {
    const long version = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
    if (version < 0) return errno;
    handled_ = kVersion1;
    if (version >= 2) handled_ |= kMoveBetweenFolders;
    if (version >= 3) handled_ |= kTruncate;
    const RulesetAttributes attributes = {handled_, version >= 4 ? kNetworkRights : 0, version >= 6 ? kScopes : 0};
    const size_t size = version >= 6   ? sizeof(attributes)
                        : version >= 4 ? offsetof(RulesetAttributes, scopes)
                                       : offsetof(RulesetAttributes, network);
    ruleset_ = static_cast<int>(syscall(kCreateRuleset, &attributes, size, 0));
    return ruleset_ < 0 ? errno : 0;
  }

  // Allows `rights` at a path and below it. Ignores paths that cannot be opened: the tool reports them.
  void Allow(const std::string& path, uint64_t rights) {
    const int file = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (file < 0) return;
    AllowOpen(file, rights);
    close(file);
  }

  void AllowOpen(int file, uint64_t rights) {
    struct stat about;
    if (fstat(file, &about) != 0) return;
    if (!S_ISDIR(about.st_mode)) rights &= kRightsOfFiles;
    const PathRule rule = {rights & handled_, file};
    // Fails for pipes and sockets, which are not restricted.
    (void)syscall(kAddRule, ruleset_, kPathBeneath, &rule, 0);
  }

  int Enforce() { return syscall(kRestrictSelf, ruleset_, 0) == 0 ? 0 : errno; }

 private:
  int ruleset_ = -1;
  uint64_t handled_ = 0;
};

std::string Unavailable(const char* what, int error_number) {
  return absl::StrCat("this kernel offers no ", what, " (", std::strerror(error_number), ")");
}

std::string RestrictFiles(const SandboxPlan& plan) {
  Ruleset rules;
  if (const int error = rules.Create(); error != 0) return Unavailable("landlock", error);
  for (const char* path : kReadableOfSystem) rules.Allow(path, kRead);
  rules.Allow("/dev/null", kReadFile | kWriteFile | kTruncate);
  // Inherited files, which flags name by number (--identity_fd) or path (/dev/fd/3).
  constexpr int kMostInherited = 64;
  for (int file = 0; file < kMostInherited; ++file) rules.AllowOpen(file, kReadFile);
  rules.AllowOpen(STDOUT_FILENO, kReadFile | kWriteFile | kTruncate);
  rules.AllowOpen(STDERR_FILENO, kReadFile | kWriteFile | kTruncate);
  const char* libraries = std::getenv("LD_LIBRARY_PATH");
  if (libraries != nullptr) {
    for (const absl::string_view path : absl::StrSplit(libraries, ':', absl::SkipEmpty())) {
      rules.Allow(std::string(path), kRead);
    }
  }
  for (const std::string& path : plan.readable) rules.Allow(path, kRead);
  for (const std::string& path : plan.writable) rules.Allow(path, kWrite);
  if (const int error = rules.Enforce(); error != 0) return Unavailable("landlock", error);
  are_files_restricted.store(true, std::memory_order_relaxed);
  return "";
}

// System calls that no tool needs: programs, other processes, the network, the kernel's settings and name spaces, and
// calls that would evade the filter (io_uring) or widen what can be attacked (bpf, userfaultfd).
constexpr long kDenied[] = {
    __NR_execve,
    __NR_execveat,
#ifdef __NR_socket
    __NR_socket,
    __NR_connect,
    __NR_bind,
    __NR_listen,
    __NR_accept,
    __NR_accept4,
#endif
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_kcmp,
    424 /* pidfd_send_signal */,
    434 /* pidfd_open */,
    438 /* pidfd_getfd */,
    440 /* process_madvise */,
    425 /* io_uring_setup */,
    426 /* io_uring_enter */,
    427 /* io_uring_register */,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_fanotify_init,
    __NR_open_by_handle_at,
    __NR_keyctl,
    __NR_add_key,
    __NR_request_key,
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_unshare,
    __NR_setns,
    428 /* open_tree */,
    429 /* move_mount */,
    430 /* fsopen */,
    432 /* fsmount */,
    442 /* mount_setattr */,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
#ifdef __NR_kexec_file_load
    __NR_kexec_file_load,
#endif
    __NR_reboot,
    __NR_swapon,
    __NR_swapoff,
    __NR_acct,
    __NR_quotactl,
    __NR_personality,
    __NR_syslog,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_adjtimex,
    __NR_sethostname,
    __NR_setdomainname,
    __NR_shmget,
    __NR_shmat,
    __NR_semget,
    __NR_msgget,
    __NR_mq_open,
    __NR_tkill,
    __NR_rt_sigqueueinfo,
    __NR_rt_tgsigqueueinfo,
#ifdef __NR_iopl
    __NR_iopl,
    __NR_ioperm,
    __NR_modify_ldt,
#endif
};

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__) && defined(__LITTLE_ENDIAN__) || defined(__aarch64__) && !defined(__AARCH64EB__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

// A filter program under construction. Each step either returns a verdict or goes on with the next.
class Filter {
 public:
  void Load(uint32_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void LoadArgument(int index) {
    Load(static_cast<uint32_t>(offsetof(seccomp_data, args) + static_cast<size_t>(index) * sizeof(uint64_t)));
  }
  void Return(uint32_t verdict) { Add(BPF_RET | BPF_K, verdict); }
  // Returns the verdict if the loaded number is `value`.
  void ReturnIf(uint32_t value, uint32_t verdict) {
    Jump(BPF_JEQ, value, 0, 1);
    Return(verdict);
  }
  void ReturnUnless(uint32_t value, uint32_t verdict) {
    Jump(BPF_JEQ, value, 1, 0);
    Return(verdict);
  }
  void ReturnIfAnyBit(uint32_t bits, uint32_t verdict) {
    Jump(BPF_JSET, bits, 0, 1);
    Return(verdict);
  }
  // Skips the steps that `then` adds unless the loaded number is `value`. They must end with a verdict.
  template <typename Then>
  void If(uint32_t value, Then then) {
    const size_t at = steps_.size();
    Jump(BPF_JEQ, value, 0, 0);
    then();
    steps_[at].jf = static_cast<uint8_t>(steps_.size() - at - 1);
  }

  // Returns 0, or the number of an error.
  int Install() {
    const sock_fprog program = {static_cast<unsigned short>(steps_.size()), steps_.data()};
    return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0 ? 0 : errno;
  }

 private:
  void Add(uint16_t code, uint32_t operand) { steps_.push_back({code, 0, 0, operand}); }
  void Jump(uint16_t test, uint32_t operand, uint8_t if_true, uint8_t if_false) {
    steps_.push_back({static_cast<uint16_t>(BPF_JMP | test | BPF_K), if_true, if_false, operand});
  }

  std::vector<sock_filter> steps_;
};

constexpr uint32_t Deny(int error_number) {
  return SECCOMP_RET_ERRNO | (static_cast<uint32_t>(error_number) & SECCOMP_RET_DATA);
}

std::string RestrictSystemCalls(bool may_fork) {
  if (kArchitecture == 0) return "the filter of system calls is written for x86-64 and 64-bit ARM";
  constexpr uint32_t kSharesThreads = 0x00010000;  // CLONE_THREAD: the new task is a thread of this process.
  Filter filter;
  filter.Load(offsetof(seccomp_data, arch));
  filter.ReturnUnless(kArchitecture, SECCOMP_RET_KILL_PROCESS);
  filter.Load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  filter.ReturnIfAnyBit(0x40000000, Deny(ENOSYS));  // The x32 numbers of the same calls.
#endif
  for (const long call : kDenied) filter.ReturnIf(static_cast<uint32_t>(call), Deny(EPERM));
  if (!may_fork) {
#ifdef __NR_fork
    filter.ReturnIf(__NR_fork, Deny(EPERM));
    filter.ReturnIf(__NR_vfork, Deny(EPERM));
#endif
    // A filter cannot read the flags behind the pointer of clone3. The C library falls back to clone.
    filter.ReturnIf(435 /* clone3 */, Deny(ENOSYS));
    filter.If(__NR_clone, [&] {
      filter.LoadArgument(0);
      filter.ReturnIfAnyBit(kSharesThreads, SECCOMP_RET_ALLOW);
      filter.Return(Deny(EPERM));
    });
    // Signals to this process: abort() and the cancelling of threads.
    for (const long call : {__NR_kill, __NR_tgkill}) {
      filter.If(static_cast<uint32_t>(call), [&] {
        filter.LoadArgument(0);
        filter.ReturnIf(static_cast<uint32_t>(getpid()), SECCOMP_RET_ALLOW);
        filter.Return(Deny(EPERM));
      });
    }
  }
  filter.If(__NR_ioctl, [&] {
    filter.LoadArgument(1);
    filter.ReturnIf(TIOCSTI, Deny(EPERM));    // Types into the terminal.
    filter.ReturnIf(TIOCLINUX, Deny(EPERM));  // Pastes into the console.
    filter.Return(SECCOMP_RET_ALLOW);
  });
  filter.Return(SECCOMP_RET_ALLOW);
  const int error = filter.Install();
  return error == 0 ? "" : Unavailable("seccomp filter", error);
}

// Gives up the privileges of root except those on files and limits: with others, a process reads the memory of any
// process (CAP_PERFMON) or changes name spaces. A process without privileges has none to give up.
void DropPrivileges() {
  constexpr uint64_t kKept = 1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH | 1 << CAP_FOWNER |
                             1 << CAP_FSETID | 1 << CAP_IPC_LOCK | 1 << CAP_SYS_NICE | 1 << CAP_SYS_RESOURCE;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(__NR_capget, &header, data) != 0) return;
  for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i) {
    const auto kept = static_cast<uint32_t>(kKept >> (32 * i));
    data[i].effective &= kept;
    data[i].permitted &= kept;
    data[i].inheritable = 0;
  }
  (void)syscall(__NR_capset, &header, data);
}

std::string Resolved(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) == nullptr ? path : resolved;
}

// Returns the folder of a path; the path need not exist.
std::string FolderOf(const std::string& path) {
  const size_t slash =
      path.find_last_not_of('/') == std::string::npos ? std::string::npos : path.rfind('/', path.find_last_not_of('/'));
  if (slash == std::string::npos) return path.empty() || path[0] != '/' ? "." : "/";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Returns whether models of this file name consist of more files in the same folder.
bool HasSideFiles(absl::string_view path) {
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  return absl::StartsWith(name, "saved_model.pb") || absl::EndsWith(name, ".json") || absl::EndsWith(name, ".index") ||
         absl::EndsWith(name, ".meta") || absl::StrContains(name, ".data-") || absl::StrContains(name, ".ckpt") ||
         name == "checkpoint";
}

// Adds the files that a pattern (inputs/*.npy) matches, and its folder, which is listed. Returns whether it is one.
bool AddPattern(absl::string_view given, SandboxPlan* plan) {
  const size_t wildcard = given.find_first_of("*?[");
  if (wildcard == absl::string_view::npos) return false;
  plan->readable.push_back(FolderOf(ExpandHome(given.substr(0, wildcard))));
  glob_t matches = {};
  if (glob(ExpandHome(given).c_str(), 0, nullptr, &matches) == 0) {
    for (size_t i = 0; i < matches.gl_pathc; ++i) plan->readable.emplace_back(matches.gl_pathv[i]);
  }
  globfree(&matches);
  return true;
}

void AddModelFolder(const std::string& folder, SandboxPlan* plan) {
  plan->readable.push_back(folder);
  for (std::string& file : LinkedFilesOf(folder)) plan->readable.push_back(std::move(file));
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Adds a file or folder. Returns whether it exists.
bool AddExisting(absl::string_view given, NamedFiles kind, SandboxPlan* plan) {
  const std::string path = ExpandHome(given);
  struct stat about;
  if (path.empty() || stat(path.c_str(), &about) != 0) return false;
  plan->readable.push_back(path);
  const bool is_folder = S_ISDIR(about.st_mode);
  if (is_folder && kind == NamedFiles::kData) AddPattern(absl::StrCat(path, "/*"), plan);
  if (const std::string certificate = CertificatePath(path); !is_folder && Exists(certificate)) {
    plan->readable.push_back(certificate);
  }
  if (is_folder || HasSideFiles(path)) AddModelFolder(is_folder ? path : FolderOf(path), plan);
  // A part of a SavedModel stands for the whole: variables/, and a file in it.
  const std::string parent = FolderOf(path);
  for (const std::string& folder : {parent, FolderOf(parent)}) {
    if (Exists(folder + "/saved_model.pb") || Exists(folder + "/saved_model.pbtxt")) AddModelFolder(folder, plan);
  }
  return true;
}

}  // namespace

void AddReadable(absl::string_view value, NamedFiles kind, SandboxPlan* plan) {
  if (value.empty() || AddExisting(value, kind, plan)) return;
  bool has_found = false;
  for (const absl::string_view piece : absl::StrSplit(value, ',', absl::SkipEmpty())) {
    has_found |= AddExisting(piece, kind, plan) || AddPattern(piece, plan);
    for (const size_t end : {piece.find_first_of("=:"), piece.find_last_of("=:")}) {
      if (end == absl::string_view::npos) continue;
      const absl::string_view path = piece.substr(end + 1);
      has_found |= AddExisting(path, kind, plan) || AddPattern(path, plan);
    }
  }
  if (!has_found && value != "-") AddModelFolder(FolderOf(ExpandHome(value)), plan);
}

void AddReadableOfText(absl::string_view text, SandboxPlan* plan) {
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\n,=();\"'"), absl::SkipEmpty())) {
    if (AddExisting(word, NamedFiles::kModel, plan)) continue;
    const std::string prefix = ExpandHome(word);
    const bool is_prefix = absl::StrContains(prefix, "/") || Exists(prefix + ".index") || Exists(prefix + ".meta");
    if (is_prefix) AddModelFolder(FolderOf(prefix), plan);
  }
}

void AddWritable(absl::string_view given, SandboxPlan* plan) {
  if (given.empty()) return;
  std::string path = ExpandHome(given);
  // A link to a file that does not exist yet is followed by the writer, too.
  constexpr int kMostLinks = 40;  // As in the kernel.
  for (int i = 0; i < kMostLinks; ++i) {
    char target[PATH_MAX];
    const ssize_t size = readlink(path.c_str(), target, sizeof(target));
    if (size <= 0) break;
    const std::string next(target, static_cast<size_t>(size));
    if (!absl::StartsWith(next, "/") && access(path.c_str(), F_OK) == 0) {
      path = Resolved(path);
      break;
    }
    if (absl::StrContains(next, ":[")) return;  // An inherited pipe, which is not restricted.
    path = absl::StartsWith(next, "/") ? next : absl::StrCat(FolderOf(path), "/", next);
  }
  struct stat about;
  const bool exists = stat(path.c_str(), &about) == 0;
  if (exists) plan->writable.push_back(path);
  if (exists && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) return;
  plan->writable.push_back(FolderOf(path));
}

SandboxGaps EnterSandbox(const SandboxPlan& plan) {
  SandboxGaps gaps;
  // Without it, neither part is available to a user without privileges. It also keeps the process from gaining any.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    gaps.files = gaps.system_calls = Unavailable("no_new_privs", errno);
    return gaps;
  }
  DropPrivileges();
  gaps.files = RestrictFiles(plan);
  gaps.system_calls = RestrictSystemCalls(plan.may_fork);
  return gaps;
}

bool AreFilesRestricted() { return are_files_restricted.load(std::memory_order_relaxed); }

}  // namespace permafrost
