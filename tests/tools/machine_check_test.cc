// Tests of the checks of permafrost_doctor on broken machines.
#include "tools/diagnosis/machine_check.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/diagnosis/delegate_check.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

// A folder with files, removed at the end.
class Folder {
 public:
  Folder() : path_(absl::StrCat(std::getenv("TEST_TMPDIR"), "/folder")) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = path_ + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

 private:
  const std::string path_;
};

// Sets an environment variable during its lifetime.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* const old = std::getenv(name);
    if (old != nullptr) old_ = old;
    was_set_ = old != nullptr;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (was_set_) {
      setenv(name_, old_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* const name_;
  std::string old_;
  bool was_set_;
};

TEST(MachineCheckTest, HugePages) {
  Folder root;
  const std::string file = "/sys/kernel/mm/transparent_hugepage/enabled";
  EXPECT_THAT(CheckHugePages(root.path()).found, HasSubstr("does not tell"));
  root.Write(file, "always [madvise] never\n");
  EXPECT_EQ(CheckHugePages(root.path()).grade, Grade::kGood);
  root.Write(file, "always madvise [never]\n");
  EXPECT_EQ(CheckHugePages(root.path()).grade, Grade::kAdvice);
  EXPECT_THAT(CheckHugePages(root.path()).remedy, HasSubstr("echo madvise"));
}

TEST(MachineCheckTest, Threads) {
  Folder root;
  root.Write("/proc/self/cgroup", "0::/\n");
  const auto with_quota = [&](const char* quota) {
    root.Write("/sys/fs/cgroup/cpu.max", quota);
    return CheckThreads(2, root.path());
  };
  EXPECT_EQ(with_quota("max 100000\n").grade, Grade::kGood);
  EXPECT_EQ(with_quota("200000 100000\n").grade, Grade::kGood);
  EXPECT_THAT(with_quota("200000 100000\n").found, HasSubstr("limited to 2 by a control group"));
  EXPECT_THAT(with_quota("250000 100000\n").remedy, HasSubstr("unused"));
  EXPECT_THAT(with_quota("50000 100000\n").remedy, HasSubstr("raise it"));
}

TEST(MachineCheckTest, ThreadsThatDoNotStart) {
  // Root may exceed the number of processes; a limit on the address space leaves no room for stacks.
  const Finding good = CheckThreads(2);
  EXPECT_EQ(good.grade, Grade::kGood) << good.found;
  const Finding bad = [] {
    rlimit before, none;
    getrlimit(RLIMIT_AS, &before);
    none = before;
    none.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_AS, &none);
    const Finding finding = CheckThreads(64);
    setrlimit(RLIMIT_AS, &before);
    return finding;
  }();
  EXPECT_EQ(bad.grade, Grade::kProblem) << bad.found;
  EXPECT_THAT(bad.remedy, HasSubstr("--threads=1"));
}

TEST(MachineCheckTest, LockedMemory) {
  rlimit before, none;
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
  const Finding finding = CheckLockedMemory();
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
  // Root may lock memory beyond the limit.
  if (finding.grade == Grade::kGood) GTEST_SKIP() << "this user may lock any memory";
  EXPECT_THAT(finding.remedy, HasSubstr("ulimit -l"));
}

TEST(MachineCheckTest, TemporaryFolder) {
  Folder folder;
  {
    const Variable variable("TMPDIR", folder.path());
    const Finding finding = CheckTemporaryFolder();
    EXPECT_NE(finding.grade, Grade::kProblem) << finding.found;
    EXPECT_THAT(finding.found, HasSubstr(folder.path()));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
  const Variable variable("TMPDIR", folder.path() + "/missing");
  const Finding finding = CheckTemporaryFolder();
  EXPECT_EQ(finding.grade, Grade::kProblem);
  EXPECT_THAT(finding.found, HasSubstr("No such file or directory"));
  EXPECT_THAT(finding.remedy, HasSubstr("TMPDIR"));
}

TEST(MachineCheckTest, CacheFolder) {
  Folder folder;
  const auto check = [&](const std::string& path) { return CheckCacheFolder(path, RealFileSystem()); };
  EXPECT_EQ(check(folder.path()).grade, Grade::kGood) << check(folder.path()).found;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THAT(check(folder.path() + "/new").found, HasSubstr("can be created"));
  EXPECT_EQ(check(folder.path() + "/missing/new").grade, Grade::kProblem);
  folder.Write("/file", "");
  EXPECT_THAT(check(folder.path() + "/file").found, HasSubstr("is not a folder"));
  chmod(folder.path().c_str(), 0777);
  EXPECT_THAT(check(folder.path()).found, HasSubstr("every user"));
  EXPECT_THAT(check(folder.path()).remedy, HasSubstr("chmod o-w"));
  if (geteuid() == 0) return;  // Root may write everywhere.
  chmod(folder.path().c_str(), 0500);
  EXPECT_EQ(check(folder.path()).grade, Grade::kProblem);
  chmod(folder.path().c_str(), 0700);
}

TEST(MachineCheckTest, DelegatesAgreeWithTheReference) {
  const std::vector<Finding> findings = CheckDelegates(2);
  ASSERT_GE(findings.size(), 3u);
  for (const Finding& finding : findings) {
    // A machine may lack the devices of others.
    const bool is_certain = finding.subject == "delegate reference" || finding.subject == "delegate onednn" ||
                            finding.subject == "delegate xnnpack";
    EXPECT_NE(finding.grade, Grade::kProblem) << finding.subject << ": " << finding.found;
    if (is_certain) {
      EXPECT_EQ(finding.grade, Grade::kGood) << finding.subject << ": " << finding.found;
      EXPECT_THAT(finding.found, HasSubstr("f32"));
    }
  }
}

}  // namespace
}  // namespace permafrost
