// Tests of reading, atomic writing and their errors.
#include "io/file_system.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/checked_files.h"
#include "tests/io/faulty_file_system.h"
#include "tests/io/test_in_folder.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class FileSystemTest : public TestInFolder {
 protected:
  std::vector<std::string> Names() { return *RealFileSystem().ListDirectory(folder_.string()); }

  static absl::Status Write(FileSystem& files, const std::string& path, const std::string& text,
                            uint64_t expected_size = 0) {
    absl::StatusOr<std::unique_ptr<FileWriter>> writer = files.NewWriter(path, expected_size);
    if (!writer.ok()) return writer.status();
    if (absl::Status status = (*writer)->Append(text); !status.ok()) return status;
    return (*writer)->Commit();
  }

  const std::string large_ = std::string(9 << 20, 'x') + std::string(5, 'y');
};

TEST_F(FileSystemTest, MapsAndReads) {
  Put(Path("a"), "text");
  const absl::StatusOr<FileView> view = RealFileSystem().MapFile(Path("a"));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->bytes, "text");
  EXPECT_EQ(*RealFileSystem().ReadFile(Path("a")), "text");
}

TEST_F(FileSystemTest, MapsAnEmptyFile) {
  Put(Path("a"), "");
  const absl::StatusOr<FileView> view = RealFileSystem().MapFile(Path("a"));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_TRUE(view->bytes.empty());
}

TEST_F(FileSystemTest, MapsAnInheritedPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread feeder([&] {
    std::FILE* file = fdopen(ends[1], "w");
    std::fwrite(large_.data(), 1, large_.size(), file);
    std::fclose(file);
  });
  const absl::StatusOr<FileView> view = RealFileSystem().MapFile("/dev/fd/" + std::to_string(ends[0]));
  feeder.join();
  close(ends[0]);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->bytes, large_);
}

// A named pipe without a writer would block forever.
TEST_F(FileSystemTest, RefusesNamedPipesAndDevices) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const std::string& path : {Path("pipe"), std::string("/dev/zero")}) {
    for (const absl::Status& status :
         {RealFileSystem().MapFile(path).status(), RealFileSystem().ReadFile(path).status(),
          MapOwnFile(RealFileSystem(), path).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("expected a regular file"));
    }
  }
  EXPECT_TRUE(RealFileSystem().MapFile("/dev/null").ok());
}

TEST_F(FileSystemTest, FilesOfAModelStayInItsFolder) {
  fs::create_directories(Path("model/variables"));
  fs::create_directories(Path("elsewhere/variables"));
  fs::create_directories(Path("elsewhere/model/variables"));
  Put(Path("model/variables/own"), "own");
  Put(Path("secret"), "secret");
  Put(Path("elsewhere/model/variables/linked"), "linked");
  fs::create_symlink("own", Path("model/variables/inner"));
  fs::create_symlink(Path("secret"), Path("model/variables/absolute"));
  fs::create_symlink("../../secret", Path("model/variables/relative"));
  fs::create_symlink(Path("elsewhere/model/variables/linked"), Path("model/variables/linked"));
  fs::create_symlink(Path("elsewhere/model/variables/linked"), Path("model/variables/other"));
  const auto map = [&](const std::string& name) { return MapFileIn(RealFileSystem(), Path("model/"), name); };
  EXPECT_EQ(map("variables/own")->bytes, "own");
  EXPECT_EQ(map("variables/inner")->bytes, "own");
  // A build system links a whole model: the same name in a folder of the same name.
  EXPECT_EQ(map("variables/linked")->bytes, "linked");
  for (const char* name : {"variables/absolute", "variables/relative", "variables/other", "../secret"}) {
    const absl::Status status = map(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("leads out of its folder")) << name;
  }
  // The folder itself may be a link, since the user named it.
  fs::create_symlink("model", Path("alias"));
  EXPECT_EQ(MapFileIn(RealFileSystem(), Path("alias/"), "variables/own")->bytes, "own");
}

// A content-addressed cache makes folders of links to files that are named by the hash of their content.
TEST_F(FileSystemTest, FilesOfAModelMayBeInTheCacheOfItsFolder) {
  const std::string sha256(64, 'a'), sha1(40, 'b'), md5(30, 'c');
  fs::create_directories(Path("hub/models--o--m/blobs"));
  fs::create_directories(Path("hub/models--o--m/snapshots/revision/variables"));
  fs::create_directories(Path("hub/models--o--private/blobs"));
  fs::create_directories(Path("repository/.git/annex/objects/k9/X3"));
  fs::create_directories(Path("repository/.dvc/cache/files/md5/ab"));
  fs::create_directories(Path("repository/models/m"));
  const std::string blobs = Path("hub/models--o--m/blobs/");
  Put(blobs + sha256, "pinned");
  Put(blobs + sha1, "small");
  Put(blobs + "readme", "no hash");
  Put(Path("secret"), "secret");
  Put(Path("hub/models--o--private/blobs/") + sha256, "private");
  const std::string key = "SHA256E-s6--" + sha256 + ".bin";
  Put(Path("repository/.git/annex/objects/k9/X3/") + key, "annexed");
  Put(Path("repository/.dvc/cache/files/md5/ab/") + md5, "tracked");
  Put(Path("repository/.git/annex/objects/credentials"), "credentials");
  // Ends in a store, but only by its name.
  fs::create_symlink(Path("secret"), blobs + std::string(40, 'd'));

  const std::string snapshot = Path("hub/models--o--m/snapshots/revision/");
  fs::create_symlink("../../blobs/" + sha1, snapshot + "model.pb");
  fs::create_symlink("../../../blobs/" + sha256, snapshot + "variables/shard");
  fs::create_symlink("../../blobs/readme", snapshot + "no_hash");
  fs::create_symlink("../../blobs/" + std::string(40, 'd'), snapshot + "onwards");
  fs::create_symlink("../../../models--o--private/blobs/" + sha256, snapshot + "private");
  const auto map = [](const std::string& folder, const std::string& name) {
    return MapFileIn(RealFileSystem(), folder, name);
  };
  EXPECT_EQ(map(snapshot, "model.pb")->bytes, "small");
  EXPECT_EQ(map(snapshot, "variables/shard")->bytes, "pinned");
  // A part of the snapshot, and a link of the user to it.
  EXPECT_EQ(map(snapshot + "variables/", "shard")->bytes, "pinned");
  fs::create_symlink(snapshot, Path("mine"));
  EXPECT_EQ(map(Path("mine/"), "model.pb")->bytes, "small");
  for (const char* name : {"no_hash", "onwards", "private"}) {
    EXPECT_EQ(map(snapshot, name).status().code(), absl::StatusCode::kPermissionDenied) << name;
  }
  // A folder beside the cache does not belong to it.
  fs::create_directories(Path("hub/models--o--m/elsewhere"));
  fs::create_symlink("../blobs/" + sha1, Path("hub/models--o--m/elsewhere/model.pb"));
  EXPECT_EQ(map(Path("hub/models--o--m/elsewhere/"), "model.pb").status().code(), absl::StatusCode::kPermissionDenied);

  const std::string model = Path("repository/models/m/");
  fs::create_symlink("../../.git/annex/objects/k9/X3/" + key, model + "annexed");
  fs::create_symlink("../../.dvc/cache/files/md5/ab/" + md5, model + "tracked");
  fs::create_symlink("../../.git/annex/objects/credentials", model + "credentials");
  EXPECT_EQ(map(model, "annexed")->bytes, "annexed");
  EXPECT_EQ(map(model, "tracked")->bytes, "tracked");
  EXPECT_EQ(map(model, "credentials").status().code(), absl::StatusCode::kPermissionDenied);
  fs::create_symlink(Path("repository/.dvc/cache/files/md5/ab/") + md5, Path("hub/models--o--m/elsewhere/tracked"));
  EXPECT_EQ(map(Path("hub/models--o--m/elsewhere/"), "tracked").status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(FileSystemTest, OwnFilesAreNeitherLinksNorOthers) {
  Put(Path("victim"), "victim");
  fs::create_symlink("victim", Path("link"));
  const absl::Status link = MapOwnFile(RealFileSystem(), Path("link")).status();
  EXPECT_EQ(link.code(), absl::StatusCode::kPermissionDenied) << link;
  // The link is replaced, not its target.
  std::unique_ptr<FileWriter> writer = *NewOwnWriter(RealFileSystem(), Path("link"));
  ASSERT_TRUE(writer->Append("cache").ok());
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(Get(Path("victim")), "victim");
  EXPECT_EQ(MapOwnFile(RealFileSystem(), Path("link"))->bytes, "cache");
  ASSERT_EQ(chmod(Path("link").c_str(), 0666), 0);
  EXPECT_EQ(MapOwnFile(RealFileSystem(), Path("link")).status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(NewOwnWriter(RealFileSystem(), Path("pipe")).ok());
}

// The next writer into the folder removes what a killed process left, and nothing else.
TEST_F(FileSystemTest, SweepsStaleTemporaryFiles) {
  const std::string stale = ".permafrost-0123456789abcdef.tmp", other = ".permafrost-0123456789abcdeg.tmp";
  Put(Path(stale), "left by a killed process");
  Put(Path(other), "another name");
  Put(Path("victim"), "victim");
  const std::string link = ".permafrost-00000000000000aa.tmp";
  fs::create_symlink("victim", Path(link));
  // A writer that is at work, on a file system without unnamed files.
  FaultyFileSystem files;
  files.calls().Fail(Fault::kOpenUnnamed, 0, EOPNOTSUPP);
  std::unique_ptr<FileWriter> at_work = *files.NewWriter(Path("b"), 0);
  ASSERT_TRUE(at_work->Append(large_).ok());
  ASSERT_TRUE(Write(RealFileSystem(), Path("a"), "text").ok());
  EXPECT_FALSE(fs::exists(Path(stale)));
  EXPECT_TRUE(fs::exists(Path(other)));
  EXPECT_TRUE(fs::is_symlink(Path(link)));
  ASSERT_TRUE(at_work->Commit().ok());
  EXPECT_EQ(Get(Path("b")), large_);
  EXPECT_EQ(Get(Path("victim")), "victim");
}

TEST_F(FileSystemTest, ErrorsNamePathAndReason) {
  const absl::Status missing = RealFileSystem().MapFile(Path("none")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.message(), "cannot open '" + Path("none") + "': No such file or directory");
  const absl::Status folder = RealFileSystem().MapFile(folder_.string()).status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(folder.message()), HasSubstr("Is a directory"));
  EXPECT_EQ(RealFileSystem().MapFile("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RealFileSystem().ListDirectory(Path("none")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FileSystemTest, ReplacesAndKeepsPermissions) {
  Put(Path("a"), "old");
  ASSERT_EQ(chmod(Path("a").c_str(), 0640), 0);
  ASSERT_TRUE(Write(RealFileSystem(), Path("a"), large_, large_.size()).ok());
  EXPECT_EQ(Get(Path("a")), large_);
  struct stat about;
  ASSERT_EQ(stat(Path("a").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0640u);
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(FileSystemTest, UnusedReservedSpaceIsReleased) {
  ASSERT_TRUE(Write(RealFileSystem(), Path("a"), "short", 10 << 20).ok());
  struct stat about;
  ASSERT_EQ(stat(Path("a").c_str(), &about), 0);
  EXPECT_EQ(about.st_size, 5);
  EXPECT_LT(about.st_blocks * 512, 1 << 20);
}

TEST_F(FileSystemTest, SmallAndLargePiecesKeepTheirOrder) {
  std::string expected;
  {
    std::unique_ptr<FileWriter> writer = *RealFileSystem().NewWriter(Path("a"));
    for (size_t size : {1, 70000, 3, 262144, 262143, 5, 10000000, 2}) {
      const std::string piece(size, static_cast<char>('a' + size % 26));
      expected += piece;
      ASSERT_TRUE(writer->Append(piece).ok());
    }
    ASSERT_TRUE(writer->Commit().ok());
  }
  EXPECT_EQ(Get(Path("a")), expected);
}

TEST_F(FileSystemTest, WithoutCommitNothingHappens) {
  Put(Path("a"), "old");
  { ASSERT_TRUE((*RealFileSystem().NewWriter(Path("a")))->Append(large_).ok()); }
  EXPECT_EQ(Get(Path("a")), "old");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

// Ensures that a killed process leaves no file behind.
TEST_F(FileSystemTest, BeforeCommitThereIsNoName) {
  std::unique_ptr<FileWriter> writer = *RealFileSystem().NewWriter(Path("a"));
  ASSERT_TRUE(writer->Append(large_).ok());
  if (!Names().empty()) GTEST_SKIP() << "the file system of " << folder_ << " has no files without names";
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(Get(Path("a")), large_);
}

TEST_F(FileSystemTest, AKilledProcessLeavesNothing) {
  Put(Path("a"), "old");
  const pid_t child = fork();
  if (child == 0) {
    const absl::StatusOr<std::unique_ptr<FileWriter>> writer = RealFileSystem().NewWriter(Path("a"));
    if (writer.ok() && (*writer)->Append(large_).ok()) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  if (Names().size() > 1) GTEST_SKIP() << "the file system of " << folder_ << " has no files without names";
  EXPECT_EQ(Get(Path("a")), "old");
}

TEST_F(FileSystemTest, TemporaryNamesAreHidden) {
  FaultyFileSystem files;
  files.calls().Fail(Fault::kOpenUnnamed, 0, EOPNOTSUPP);
  Put(Path("a"), "old");
  std::unique_ptr<FileWriter> writer = *files.NewWriter(Path("a"), 0);
  EXPECT_TRUE(files.calls().has_failed());
  ASSERT_TRUE(writer->Append(large_).ok());
  EXPECT_THAT(Names(), ElementsAre(StartsWith(".permafrost-"), "a"));
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(Get(Path("a")), large_);
}

TEST_F(FileSystemTest, NewFilesRespectTheUmask) {
  const mode_t before = umask(027);
  for (const Fault fault : {Fault::kNone, Fault::kOpenUnnamed}) {
    FaultyFileSystem files;
    files.calls().Fail(fault, 0, EOPNOTSUPP);
    const std::string path = Path(std::to_string(static_cast<int>(fault)));
    EXPECT_TRUE(Write(files, path, "x").ok());
    struct stat about;
    EXPECT_EQ(stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0640u) << path;
  }
  umask(before);
}

// Records space reserved in advance. For files that are not in memory, simulates a memory file system.
class AheadCalls : public SystemCalls {
 public:
  int AllocateInMemory(int file, uint64_t offset, uint64_t size) override {
    if (SystemCalls::AllocateInMemory(file, offset, size) != 0 && errno != ENOTSUP) return -1;
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_EQ(offset, end_);
    end_ += size;
    changed_.notify_all();
    return 0;
  }
  void WaitFor(uint64_t end) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return end_ >= end; });
  }
  uint64_t end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return end_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t end_ = 0;
};

TEST_F(FileSystemTest, ReservedPagesAreAllocatedAheadAndReleased) {
  // Uses a memory file system if there is one, because elsewhere the file is not changed.
  const std::string shared = "/dev/shm/permafrost_ahead_" + std::to_string(getpid());
  const std::string path = access("/dev/shm", W_OK) == 0 ? shared : Path("a");
  for (const std::string& text : {std::string("short"), large_}) {
    AheadCalls calls;
    PosixFileSystem files(&calls);
    std::unique_ptr<FileWriter> writer = *files.NewWriter(path, 0);
    writer->ReserveAhead(4 << 20);
    calls.WaitFor(4 << 20);
    ASSERT_TRUE(writer->Append(text).ok());
    ASSERT_TRUE(writer->Commit().ok());
    EXPECT_EQ(calls.end(), uint64_t{4} << 20);
    EXPECT_EQ(Get(path), text);
    struct stat about;
    ASSERT_EQ(stat(path.c_str(), &about), 0);
    EXPECT_LT(static_cast<uint64_t>(about.st_blocks) * 512, text.size() + (1 << 20));
  }
  unlink(path.c_str());
}

TEST_F(FileSystemTest, ReservingAheadEndsWithTheWriter) {
  AheadCalls calls;
  PosixFileSystem files(&calls);
  {
    std::unique_ptr<FileWriter> writer = *files.NewWriter(Path("a"), 0);
    writer->ReserveAhead(uint64_t{1} << 50);
    calls.WaitFor(1 << 20);
  }
  const uint64_t end = calls.end();
  EXPECT_LT(end, uint64_t{1} << 50);
  (*files.NewWriter("/dev/null", 0))->ReserveAhead(1 << 20);
  EXPECT_EQ(calls.end(), end);
  EXPECT_THAT(Names(), ElementsAre());
}

TEST_F(FileSystemTest, ShortWritesAreContinued) {
  FaultyFileSystem files;
  files.calls().ShortenWrites(100001);
  ASSERT_TRUE(Write(files, Path("a"), large_).ok());
  EXPECT_EQ(Get(Path("a")), large_);
}

TEST_F(FileSystemTest, FollowsLinks) {
  fs::create_directory(folder_ / "deep");
  Put(Path("deep/target"), "old");
  fs::create_symlink("deep/target", folder_ / "link");
  fs::create_symlink("link", folder_ / "link_to_link");
  fs::create_symlink("deep/new", folder_ / "dangling");
  fs::create_symlink("loop", folder_ / "loop");
  ASSERT_TRUE(Write(RealFileSystem(), Path("link_to_link"), "new").ok());
  EXPECT_EQ(Get(Path("deep/target")), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  ASSERT_TRUE(Write(RealFileSystem(), Path("dangling"), "made").ok());
  EXPECT_EQ(Get(Path("deep/new")), "made");
  EXPECT_FALSE(Write(RealFileSystem(), Path("loop"), "x").ok());
  EXPECT_TRUE(RealFileSystem().IsSameFile(Path("link"), Path("deep/target")));
  EXPECT_FALSE(RealFileSystem().IsSameFile(Path("link"), Path("deep/new")));
}

TEST_F(FileSystemTest, WritesIntoDevicesInPlace) {
  ASSERT_TRUE(Write(RealFileSystem(), "/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FileSystemTest, RefusesPlacesThatCannotBeWritten) {
  fs::create_directory(folder_ / "folder");
  EXPECT_EQ(RealFileSystem().NewWriter(Path("folder")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RealFileSystem().NewWriter(Path("folder/")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RealFileSystem().NewWriter(Path("none/a")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(RealFileSystem().NewWriter("").status().code(), absl::StatusCode::kInvalidArgument);
  Put(Path("file"), "");
  EXPECT_EQ(RealFileSystem().NewWriter(Path("file/a")).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FileSystemTest, RefusesAFileThatIsProtected) {
  if (geteuid() == 0) GTEST_SKIP() << "nothing is protected from root";
  Put(Path("a"), "old");
  ASSERT_EQ(chmod(Path("a").c_str(), 0400), 0);
  EXPECT_EQ(RealFileSystem().NewWriter(Path("a")).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(FileSystemTest, TheMappedInputSurvivesItsReplacement) {
  Put(Path("a"), large_);
  const FileView view = *RealFileSystem().MapFile(Path("a"));
  std::unique_ptr<FileWriter> writer = *RealFileSystem().NewWriter(Path("a"));
  ASSERT_TRUE(writer->Append("new").ok());
  ASSERT_TRUE(writer->Append(view.bytes).ok());
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(view.bytes, large_);
  EXPECT_EQ(Get(Path("a")), "new" + large_);
}

TEST_F(FileSystemTest, ExpandsHome) {
  setenv("HOME", folder_.c_str(), 1);
  EXPECT_EQ(ExpandHome("~/a"), Path("a"));
  EXPECT_EQ(ExpandHome("~"), folder_.string());
  EXPECT_EQ(ExpandHome("~nobody-of-this-name/a"), "~nobody-of-this-name/a");
  EXPECT_EQ(ExpandHome("a~"), "a~");
  EXPECT_EQ(ExpandHome("~root/a").substr(0, 1), "/");
  ASSERT_TRUE(Write(RealFileSystem(), "~/a", "x").ok());
  EXPECT_TRUE(RealFileSystem().Exists("~/a"));
  EXPECT_EQ(Get(Path("a")), "x");
}

struct FaultCase {
  Fault fault;
  int error_number;
  absl::StatusCode code;
  const char* text;
};

class WriteFaultTest : public FileSystemTest, public ::testing::WithParamInterface<FaultCase> {};

// Makes the first call of the kind fail, then the second, and so on, until the writer no longer reaches the fault.
TEST_P(WriteFaultTest, LeavesTheOldFileAndNothingElse) {
  const FaultCase& fault = GetParam();
  int failures = 0;
  for (int nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 20);
    Put(Path("a"), "old");
    FaultyFileSystem files;
    files.calls().Fail(fault.fault, nth, fault.error_number);
    const absl::Status status = Write(files, Path("a"), large_, large_.size());
    if (!files.calls().has_failed()) {
      EXPECT_TRUE(status.ok()) << status;
      if (nth == 0 && fault.fault == Fault::kLink) GTEST_SKIP() << "the file system has no files without names";
      break;
    }
    EXPECT_THAT(Names(), ElementsAre("a"));
    if (Get(Path("a")) == large_) continue;  // It failed after the file was in place; the count below checks this.
    ++failures;
    EXPECT_EQ(Get(Path("a")), "old");
    EXPECT_EQ(status.code(), fault.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path("a")));
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.text));
  }
  EXPECT_GE(failures, fault.fault == Fault::kWrite ? 2 : 1);
}

INSTANTIATE_TEST_SUITE_P(
    Calls, WriteFaultTest,
    ::testing::Values(FaultCase{Fault::kOpen, EACCES, absl::StatusCode::kPermissionDenied, "Permission denied"},
                      FaultCase{Fault::kAllocate, ENOSPC, absl::StatusCode::kResourceExhausted, "No space left"},
                      FaultCase{Fault::kWrite, EIO, absl::StatusCode::kUnavailable, "Input/output error"},
                      FaultCase{Fault::kSync, EIO, absl::StatusCode::kUnavailable, "Input/output error"},
                      FaultCase{Fault::kLink, EACCES, absl::StatusCode::kPermissionDenied, "Permission denied"},
                      FaultCase{Fault::kRename, EACCES, absl::StatusCode::kPermissionDenied, "Permission denied"}));

// Allocating pages in memory would cost as much as writing them, so only the available space is checked.
TEST(SystemCallsTest, AllocatesNothingInMemory) {
  const std::string path = "/dev/shm/permafrost_file_system_test_" + std::to_string(getpid());
  SystemCalls calls;
  const int file = calls.Open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file < 0) GTEST_SKIP() << "no /dev/shm";
  unlink(path.c_str());
  struct statfs system;
  ASSERT_EQ(fstatfs(file, &system), 0);
  if (system.f_type != TMPFS_MAGIC || system.f_blocks == 0) {
    close(file);
    GTEST_SKIP() << "/dev/shm is not a memory file system, or has no limit";
  }
  EXPECT_EQ(calls.Allocate(file, 1 << 20), 0);
  struct stat about;
  ASSERT_EQ(fstat(file, &about), 0);
  EXPECT_EQ(about.st_blocks, 0);
  EXPECT_EQ(calls.Allocate(file, uint64_t{1} << 62), -1);
  EXPECT_EQ(errno, ENOSPC);
  close(file);
}

TEST_F(FileSystemTest, ReadsFail) {
  Put(Path("a"), "text");
  for (const Fault fault : {Fault::kOpen, Fault::kRead, Fault::kMap}) {
    FaultyFileSystem files;
    files.calls().Fail(fault, 0, EIO);
    const absl::Status status =
        fault == Fault::kMap ? files.MapFile(Path("a")).status() : files.ReadFile(Path("a")).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path("a")));
  }
}

TEST_F(FileSystemTest, AFullDiskIsReportedAndLeavesNothing) {
  for (const uint64_t room : {0, 1, 1 << 20, 9 << 20}) {
    Put(Path("a"), "old");
    FaultyFileSystem files;
    files.calls().LimitDisk(room);
    const absl::Status status = Write(files, Path("a"), large_);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(status.message(), "cannot write '" + Path("a") + "': No space left on device");
    EXPECT_EQ(Get(Path("a")), "old");
    EXPECT_THAT(Names(), ElementsAre("a"));
  }
}

}  // namespace
}  // namespace permafrost
