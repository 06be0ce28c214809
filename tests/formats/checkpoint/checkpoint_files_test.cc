// Tests of all ways to name a checkpoint, and of the errors if there is none.
#include "io/formats/checkpoint/checkpoint_files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/checkpoint/checkpoint.h"
#include "tests/formats/checkpoint/checkpoint_encoding.h"
#include "tests/formats/checkpoint/checkpoint_fixture.h"
#include "tests/io/faulty_file_system.h"
#include "tests/io/memory_file_system.h"

namespace permafrost {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string& Table() {
  static const std::string table = MakeTable({{"", "x"}});
  return table;
}

// Returns the prefix that is found, or the error message.
std::string Found(MemoryFileSystem& files, const std::string& path) {
  const absl::StatusOr<CheckpointFiles> found = FindCheckpointFiles(files, path);
  if (!found.ok()) return std::string(found.status().message());
  return found->tables.empty() ? found->prefix : absl::StrCat(found->prefix, " v1");
}

TEST(CheckpointFiles, ByPrefixAndByFile) {
  MemoryFileSystem files({{"a/m-1.index", Table()},
                          {"a/m-1.data-00000-of-00002", "x"},
                          {"a/m-1.data-00001-of-00002", "x"},
                          {"a/m-1.meta", "x"},
                          {"m.index", Table()},
                          {"old", Table()},
                          {"old.meta", "x"},
                          {"part-00000-of-00002", Table()},
                          {"part-00001-of-00002", Table()}});
  for (const char* path :
       {"a/m-1", "a/m-1.index", "a/m-1.data-00000-of-00002", "a/m-1.data-00001-of-00002", "a/m-1.meta", "a", "a/"}) {
    EXPECT_EQ(Found(files, path), "a/m-1") << path;
  }
  EXPECT_EQ(Found(files, "m"), "m");
  EXPECT_EQ(Found(files, R"(part-?????-of-00002)"), "part v1");
  EXPECT_EQ(Found(files, R"(part-?????-of-?????)"), "part v1");
  EXPECT_EQ(Found(files, "old"), "old v1");
  for (const char* path : {"part", "part-00000-of-00002", "part-00001-of-00002"}) {
    EXPECT_EQ(Found(files, path), "part v1") << path;
    EXPECT_THAT(FindCheckpointFiles(files, path)->tables, ElementsAre("part-00000-of-00002", "part-00001-of-00002"));
  }
}

TEST(CheckpointFiles, Folders) {
  MemoryFileSystem files({{"saved/saved_model.pb", "x"},
                          {"saved/variables/variables.index", Table()},
                          {"run/checkpoint", "model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"m-1\"\n"},
                          {"run/m-1.index", Table()},
                          {"run/m-2.index", Table()},
                          {"moved/checkpoint", "model_checkpoint_path: \"/home/of/another/m-3\""},
                          {"moved/m-3.index", Table()},
                          {"older/checkpoint", "model_checkpoint_path: \"m-4\""},
                          {"older/m-4", Table()},
                          {"gone/checkpoint", "model_checkpoint_path: \"m-5\""},
                          {"several/a.index", Table()},
                          {"several/b.index", Table()},
                          {"other/model.h5", "x"},
                          {"same/graph.pb", "x"},
                          {"same.index", Table()}});
  EXPECT_EQ(Found(files, "saved"), "saved/variables/variables");
  EXPECT_EQ(Found(files, "saved/variables"), "saved/variables/variables");
  EXPECT_EQ(Found(files, "saved/variables/variables"), "saved/variables/variables");
  EXPECT_EQ(Found(files, "run"), "run/m-2");
  EXPECT_EQ(Found(files, "run/checkpoint"), "run/m-2");
  EXPECT_EQ(Found(files, "moved"), "moved/m-3");
  EXPECT_EQ(Found(files, "older"), "older/m-4 v1");
  EXPECT_EQ(Found(files, "gone"),
            "'gone/checkpoint' names 'm-5': found no checkpoint 'gone/m-5': no 'm-5.index' in 'gone'");
  EXPECT_EQ(
      Found(files, "several"),
      "folder 'several' holds 2 checkpoints and no file 'checkpoint' that names the latest; specify one of 'a', 'b'");
  EXPECT_EQ(Found(files, "same"), "same");
  EXPECT_EQ(Found(files, "other"),
            "folder 'other' holds no checkpoint: expected a file 'checkpoint', '*.index' or "
            "'variables/variables.index'");
}

TEST(CheckpointFiles, MissingCheckpoint) {
  MemoryFileSystem files({{"d/model.ckpt-100.index", Table()},
                          {"d/lost.data-00000-of-00001", "x"},
                          {"d/part-00000-of-00002", Table()},
                          {"d/graph.pb", "x"}});
  EXPECT_EQ(Found(files, ""), "the path of the checkpoint is empty");
  EXPECT_EQ(Found(files, "d/model.ckpt-10"),
            "found no checkpoint 'd/model.ckpt-10': no 'model.ckpt-10.index' in 'd'; did "
            "you mean 'model.ckpt-100'?");
  EXPECT_EQ(Found(files, "d/lost"),
            "checkpoint 'd/lost': found 'lost.data-00000-of-00001', but no 'lost.index' beside it");
  EXPECT_EQ(Found(files, "d/part"), "checkpoint 'd/part' has 2 shards: found no file 'd/part-00001-of-00002'");
  EXPECT_EQ(Found(files, "d/graph.pb"),
            "'d/graph.pb': found no checkpoint: the file is not a table, and there is no "
            "'d/graph.pb.index'");
  EXPECT_EQ(Found(files, "e/m"), "checkpoint 'e/m': cannot open 'e': No such file or directory");
}

TEST(CheckpointFiles, States) {
  const auto path = [](absl::string_view text) {
    const absl::StatusOr<std::string> state = ParseCheckpointState(text);
    return state.ok() ? *state : std::string(state.status().message());
  };
  EXPECT_EQ(path("model_checkpoint_path: \"a\""), "a");
  EXPECT_EQ(path("# A remark: \"x\"\n model_checkpoint_path :\n'a b' \"\\\"\\303\\244\"  # more\n; x: 1.5e-3, y: inf"),
            "a b\"\xc3\xa4");
  EXPECT_EQ(path("model_checkpoint_path: \"a\" model_checkpoint_path: \"b\""), "b");
  EXPECT_EQ(path(""), "found no 'model_checkpoint_path', expected the name of the latest checkpoint");
  EXPECT_EQ(path("model_checkpoint_path: \"\""),
            "found no 'model_checkpoint_path', expected the name of the latest checkpoint");
  EXPECT_EQ(path("\nmodel_checkpoint_path: \"a\nb\""), "line 2: a quoted string has no end");
  EXPECT_EQ(path("model_checkpoint_path: \"a\\"), "line 1: a quoted string has no end");
  EXPECT_EQ(path("model_checkpoint_path: \"\\q\""), "line 1: found an unknown escape in a string");
  EXPECT_EQ(path("model_checkpoint_path"), "line 1: expected 'name: value'");
  EXPECT_EQ(path("x: {}"), "line 1: expected a string in quotes or a number");
  EXPECT_EQ(path(std::string("\0\1", 2)), "line 1: expected 'name: value'");
}

TEST(CheckpointFiles, ThroughSymbolicLinks) {
  // Build systems link whole models so: files of the same names in a folder of the same name. Other links lead out of
  // the model and are refused.
  const std::string parent = NewFolder();
  const std::string folder = absl::StrCat(parent, "/objects"), elsewhere = absl::StrCat(parent, "/elsewhere");
  for (const std::string& links : {folder, elsewhere}) {
    std::filesystem::create_directory(links);
    for (const auto& file : std::filesystem::directory_iterator(WrittenFile("objects"))) {
      std::filesystem::create_symlink(std::filesystem::canonical(file.path()),
                                      absl::StrCat(links, "/", file.path().filename().string()));
    }
  }
  EXPECT_TRUE(OpenCheckpoint(RealFileSystem(), folder).ok()) << OpenCheckpoint(RealFileSystem(), folder).status();
  EXPECT_THAT(std::string(OpenCheckpoint(RealFileSystem(), elsewhere).status().message()), HasSubstr("link"));
  std::filesystem::create_symlink("loop", absl::StrCat(folder, "/loop"));
  EXPECT_THAT(std::string(OpenCheckpoint(RealFileSystem(), absl::StrCat(folder, "/loop")).status().message()),
              HasSubstr("Too many levels of symbolic links"));
  std::filesystem::remove(absl::StrCat(folder, "/ckpt-2.index"));
  std::filesystem::create_symlink("nowhere", absl::StrCat(folder, "/ckpt-2.index"));
  EXPECT_EQ(OpenCheckpoint(RealFileSystem(), folder).status().code(), absl::StatusCode::kNotFound);
  std::filesystem::remove_all(parent);
}

TEST(CheckpointFiles, AnyCallThatFailsIsAnError) {
  for (const auto& [fault, error] : {std::pair{Fault::kOpen, EACCES}, std::pair{Fault::kMap, ENOMEM}}) {
    for (const char* name : {"v2", "v1", "v1_shards", "objects"}) {
      int failures = 0;
      for (int nth = 0;; ++nth) {
        FaultyFileSystem files;
        files.calls().Fail(fault, nth, error);
        const absl::Status status = OpenCheckpoint(files, WrittenFile(name)).status();
        if (!files.calls().has_failed()) {
          EXPECT_TRUE(status.ok()) << status;
          break;
        }
        ++failures;
        EXPECT_EQ(status.code(),
                  error == EACCES ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kResourceExhausted)
            << status;
      }
      EXPECT_GE(failures, 2) << name;
    }
  }
}

}  // namespace
}  // namespace permafrost
