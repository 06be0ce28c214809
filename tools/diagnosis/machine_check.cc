// Reads the system's files and tries what the tools do: starting threads, locking memory, writing files.
#include "tools/diagnosis/machine_check.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/processor.h"
#include "graph/base/status.h"
#include "io/checked_files.h"
#include "io/locked_memory.h"
#include "runtime_check/threads/processors.h"
#include "runtime_check/threads/team_lease.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/command_line/memory_limit.h"

namespace permafrost {
namespace {

// Reads and writes through temporary files of this size tell a full disk from a usable one: a precision plan, or packed
// weights of a small model.
constexpr size_t kProbeBytes = 64 << 10;
// reduce_model keeps a model and its inputs there, and pip unpacks a wheel of 10 MB.
constexpr uint64_t kEnoughTemporaryBytes = 200 << 20;
// A graph has up to 2 GiB, and passes need a few copies of parts of it.
constexpr uint64_t kEnoughMemory = uint64_t{1} << 30;
// Keys and the chunks of a decrypted model that is being read.
constexpr size_t kEnoughLockedBytes = 1 << 20;

std::string ReadSystemFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::string(absl::StripAsciiWhitespace(text.str()));
}

// Returns the space that is free for this user, or 0 if it is unknown.
uint64_t FreeBytes(const std::string& path) {
  struct statvfs about;
  if (statvfs(path.c_str(), &about) != 0) return 0;
  return uint64_t{about.f_bavail} * about.f_frsize;
}

Finding Problem(std::string subject, std::string found, std::string remedy) {
  return {Grade::kProblem, std::move(subject), std::move(found), std::move(remedy)};
}

// Writes a file as the tools do, reads it back as a part of a cache, and removes it.
absl::Status TryFolder(const std::string& folder, FileSystem& files) {
  const std::string path = absl::StrCat(folder, "/permafrost_doctor_", getpid());
  const absl::Cleanup remove = [&] { unlink(path.c_str()); };
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, NewOwnWriter(files, path, kProbeBytes));
  PF_RETURN_IF_ERROR(writer->Append(std::string(kProbeBytes, 'p')));
  PF_RETURN_IF_ERROR(writer->Commit());
  PF_ASSIGN_OR_RETURN(const FileView view, MapOwnFile(files, path));
  if (view.bytes.size() != kProbeBytes)
    return absl::DataLossError("a file that was written has another size when read");
  return absl::OkStatus();
}

}  // namespace

Finding DescribeProgram() {
  Finding finding{Grade::kGood, "program", "", ""};
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  utsname system = {};
  uname(&system);
  const std::string where = length > 0 ? std::string(path, static_cast<size_t>(length)) : "unknown path";
  // The base address of the dynamic linker; a statically linked program has none.
  const bool is_static = getauxval(AT_BASE) == 0;
  std::string library = "another C library than glibc";
#if defined(_CS_GNU_LIBC_VERSION)
  char version[64];
  const size_t size = confstr(_CS_GNU_LIBC_VERSION, version, sizeof(version));
  if (size > 0 && size <= sizeof(version)) library = version;
#endif
  finding.found = absl::StrCat("permafrost ", kVersion, ", ", where, ", ", is_static ? "statically linked, " : "",
                               library, ", ", system.sysname, " ", system.release, ", ", system.machine);
  return finding;
}

Finding CheckInstructionSets() {
  Finding finding{Grade::kGood, "instruction sets", "", ""};
#if defined(__x86_64__)
  const InstructionSets sets = SupportedInstructionSets();
  std::vector<std::string> names = {"SSE2"};
  if (sets.avx2) names.push_back("AVX2");
  if (sets.avx2_fma) names.push_back("FMA");
  if (sets.avx512) names.push_back("AVX-512");
  finding.found = absl::StrJoin(names, ", ");
  if (!sets.avx2_fma) {
    finding.grade = Grade::kAdvice;
    finding.remedy =
        "models run several times slower without AVX2 and FMA: in a virtual machine, pass the processor of the host on";
  }
#elif defined(__aarch64__)
  finding.found = "NEON";
#else
  finding.found = "those that the compiler was told of";
#endif
  return finding;
}

Finding CheckThreads(int num_threads, const std::string& root) {
  Finding finding{Grade::kGood, "threads", "", ""};
  const double limit = ProcessorLimit(root);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  finding.found =
      absl::StrCat(num_threads, num_threads == 1 ? " thread" : " threads", " by default, of ", online,
                   online == 1 ? " processor" : " processors",
                   limit > 0 ? absl::StrCat(", limited to ", FormatNumber(limit), " by a control group") : "");
  if (const absl::Status status = TeamLease::Take(num_threads).status(); !status.ok()) {
    return Problem("threads", absl::StrCat(finding.found, "; ", status.message()),
                   "raise the limits on processes (ulimit -u, TasksMax=, --pids-limit), or use --threads=1");
  }
  if (limit > 0 && limit < 1) {
    finding.grade = Grade::kAdvice;
    finding.remedy =
        "a limit below one processor stops every run for a part of each period: raise it (CPUQuota=, --cpus)";
  } else if (limit > num_threads) {
    finding.grade = Grade::kAdvice;
    finding.remedy = "a fraction of a processor stays unused: a whole number as the limit serves as well";
  }
  return finding;
}

Finding CheckMemory() {
  const uint64_t available = AvailableMemory();
  Finding finding{Grade::kGood, "memory",
                  absl::StrCat(FormatBytes(available),
                               " available, half of it for one tool unless --max_memory says "
                               "otherwise"),
                  ""};
  if (available < kEnoughMemory) {
    finding.grade = Grade::kAdvice;
    finding.remedy =
        "large models need several times their size: end other programs, or raise the limit of the container";
  }
  return finding;
}

Finding CheckLockedMemory() {
  rlimit limit = {};
  const bool is_known = getrlimit(RLIMIT_MEMLOCK, &limit) == 0;
  const std::string text = !is_known                         ? "an unknown limit"
                           : limit.rlim_cur == RLIM_INFINITY ? "no limit"
                                                             : absl::StrCat("a limit of ", FormatBytes(limit.rlim_cur));
  const absl::StatusOr<LockedMemory> memory = LockedMemory::Allocate(kEnoughLockedBytes);
  if (memory.ok() && memory->is_locked()) {
    return {Grade::kGood, "locked memory", absl::StrCat(FormatBytes(kEnoughLockedBytes), " locked, ", text), ""};
  }
  return {Grade::kAdvice, "locked memory",
          absl::StrCat(FormatBytes(kEnoughLockedBytes), " cannot be locked, with ", text,
                       ": keys and decrypted models may reach the swap space"),
          "raise the limit (ulimit -l, LimitMEMLOCK=, --ulimit memlock=-1), or encrypt the swap space"};
}

Finding CheckHugePages(const std::string& root) {
  const std::string modes = ReadSystemFile(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  Finding finding{Grade::kGood, "huge pages", modes, ""};
  if (modes.empty()) {
    finding.found = "the system does not tell";
  } else if (absl::StrContains(modes, "[never]")) {
    finding.grade = Grade::kAdvice;
    finding.remedy =
        "weights of 2 MB and more are mapped faster with huge pages: "
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root";
  }
  return finding;
}

Finding CheckTemporaryFolder() {
  const char* const given = std::getenv("TMPDIR");
  const std::string folder = given == nullptr || *given == '\0' ? "/tmp" : given;
  std::string probe = folder + "/permafrost_doctor_XXXXXX";
  const int file = mkstemp(probe.data());
  if (file < 0) {
    return Problem("temporary folder", absl::StrCat("'", folder, "': ", std::strerror(errno)),
                   "set TMPDIR to a folder that can be written");
  }
  const absl::Cleanup remove = [&] {
    close(file);
    unlink(probe.c_str());
  };
  if (posix_fallocate(file, 0, kProbeBytes) != 0) {
    return Problem("temporary folder", absl::StrCat("'", folder, "' is full"),
                   "remove files, or set TMPDIR to another folder");
  }
  const uint64_t free_bytes = FreeBytes(folder);
  Finding finding{Grade::kGood, "temporary folder", absl::StrCat("'", folder, "', ", FormatBytes(free_bytes), " free"),
                  ""};
  if (free_bytes < kEnoughTemporaryBytes) {
    finding.grade = Grade::kAdvice;
    finding.remedy = "large models need more space: remove files, or set TMPDIR to another folder";
  }
  return finding;
}

Finding CheckCacheFolder(const std::string& given, FileSystem& files) {
  const std::string subject = "cache folder";
  const std::string path = ExpandHome(given);
  struct stat about;
  if (stat(path.c_str(), &about) != 0) {
    const size_t slash = path.find_last_of('/');
    const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    if (errno == ENOENT && access(parent.c_str(), W_OK | X_OK) == 0) {
      return {Grade::kGood, subject, absl::StrCat("'", path, "' does not exist, and can be created"), ""};
    }
    return Problem(subject, absl::StrCat("'", path, "': ", std::strerror(errno)),
                   "name a folder that exists or whose parent can be written");
  }
  if (!S_ISDIR(about.st_mode)) return Problem(subject, absl::StrCat("'", path, "' is not a folder"), "name a folder");
  if (const absl::Status status = TryFolder(path, files); !status.ok()) {
    return Problem(subject, std::string(status.message()), "name a folder that can be written, with free space");
  }
  if ((about.st_mode & S_IWOTH) != 0 && (about.st_mode & S_ISVTX) == 0) {
    return Problem(subject, absl::StrCat("'", path, "' can be written by every user, who may replace the files in it"),
                   absl::StrCat("chmod o-w '", path, "'"));
  }
  return {Grade::kGood, subject, absl::StrCat("'", path, "', ", FormatBytes(FreeBytes(path)), " free"), ""};
}

}  // namespace permafrost
