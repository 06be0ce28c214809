// Tests of damaged checkpoints: truncated at every byte, with every bit flipped, with missing or exchanged files.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/checkpoint/checkpoint.h"
#include "tests/formats/checkpoint/checkpoint_fixture.h"
#include "tests/io/memory_file_system.h"

namespace permafrost {
namespace {

using ::testing::HasSubstr;

constexpr char kIndex[] = "v2.index";
constexpr char kShards[][24] = {"v2.data-00000-of-00002", "v2.data-00001-of-00002"};

std::string Load(const std::string& name) {
  absl::StatusOr<std::string> bytes = RealFileSystem().ReadFile(WrittenFile(name));
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *std::move(bytes) : "";
}

// The result of opening a checkpoint and reading all of it.
struct Outcome {
  absl::Status opened;
  std::vector<absl::Status> failed;  // Errors of variables.
};

// Reads all variables, and checks that every value that is returned is correct.
Outcome ReadAllOf(MemoryFileSystem& files, const std::string& path, const std::map<std::string, Tensor>& expected) {
  Outcome outcome;
  const absl::StatusOr<std::unique_ptr<VariableSource>> source = OpenCheckpoint(files, path);
  outcome.opened = source.status();
  if (!source.ok()) return outcome;
  EXPECT_EQ((*source)->variables().size(), expected.size());
  for (const auto& [name, value] : expected) {
    const absl::StatusOr<Tensor> read = (*source)->Read(name);
    if (read.ok()) {
      EXPECT_TRUE(*read == value) << name;
    } else {
      outcome.failed.push_back(read.status());
    }
  }
  return outcome;
}

class DamagedBundle : public ::testing::Test {
 protected:
  DamagedBundle() : expected_(RecordedVariables("v2")) {
    for (const char* name : {kIndex, kShards[0], kShards[1]}) files_.files()[name] = Load(name);
  }

  Outcome Read() { return ReadAllOf(files_, "v2", expected_); }

  const std::map<std::string, Tensor> expected_;
  MemoryFileSystem files_;
};

TEST_F(DamagedBundle, UndamagedCheckpoint) {
  const Outcome outcome = Read();
  EXPECT_TRUE(outcome.opened.ok()) << outcome.opened;
  EXPECT_TRUE(outcome.failed.empty());
}

TEST_F(DamagedBundle, IndexTruncatedAtEveryByte) {
  const std::string bytes = files_.files()[kIndex];
  ASSERT_GT(bytes.size(), 1000u);
  for (size_t size = 0; size < bytes.size(); ++size) {
    files_.files()[kIndex] = bytes.substr(0, size);
    const absl::Status status = Read().opened;
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    ASSERT_THAT(std::string(status.message()), HasSubstr("'v2.index': "));
  }
}

TEST_F(DamagedBundle, EveryBitOfTheIndexFlipped) {
  std::string& bytes = files_.files()[kIndex];
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    bytes[i / 8] ^= static_cast<char>(1 << (i % 8));
    const absl::Status status = Read().opened;
    ASSERT_FALSE(status.ok()) << "bit " << i;
    ASSERT_THAT(std::string(status.message()), HasSubstr("'v2.index': ")) << "bit " << i;
    bytes[i / 8] ^= static_cast<char>(1 << (i % 8));
  }
}

TEST_F(DamagedBundle, ShardTruncatedAtEveryByte) {
  for (const char* shard : kShards) {
    const std::string bytes = files_.files()[shard];
    for (size_t size = 0; size < bytes.size(); ++size) {
      files_.files()[shard] = bytes.substr(0, size);
      const absl::Status status = Read().opened;
      ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
      ASSERT_THAT(std::string(status.message()),
                  HasSubstr(absl::StrCat("of '", shard, "', which has ", size, " bytes")));
    }
    files_.files()[shard] = bytes;
  }
}

TEST_F(DamagedBundle, EveryBitOfAShardFlippedCostsOneVariable) {
  for (const char* shard : kShards) {
    std::string& bytes = files_.files()[shard];
    for (size_t i = 0; i < bytes.size() * 8; ++i) {
      bytes[i / 8] ^= static_cast<char>(1 << (i % 8));
      const Outcome outcome = Read();
      ASSERT_TRUE(outcome.opened.ok()) << outcome.opened;
      ASSERT_EQ(outcome.failed.size(), 1u) << shard << ", bit " << i;
      ASSERT_EQ(outcome.failed[0].code(), absl::StatusCode::kDataLoss);
      ASSERT_THAT(std::string(outcome.failed[0].message()), HasSubstr(absl::StrCat("'", shard, "', ")));
      bytes[i / 8] ^= static_cast<char>(1 << (i % 8));
    }
  }
}

TEST_F(DamagedBundle, AFileIsMissing) {
  for (const char* shard : kShards) {
    const std::string bytes = files_.files()[shard];
    files_.files().erase(shard);
    const absl::Status status = Read().opened;
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(status.message(),
              absl::StrCat("checkpoint 'v2' has 2 shards: cannot open '", shard, "': No such file or directory"));
    files_.files()[shard] = bytes;
  }
  files_.files().erase(kIndex);
  const absl::Status status = Read().opened;
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "checkpoint 'v2': found 'v2.data-00000-of-00002', but no 'v2.index' beside it");
}

TEST_F(DamagedBundle, ExchangedShards) {
  std::swap(files_.files()[kShards[0]], files_.files()[kShards[1]]);
  EXPECT_EQ(Read().opened.code(), absl::StatusCode::kDataLoss);
}

class DamagedTable : public ::testing::Test {
 protected:
  DamagedTable() : expected_(RecordedVariables("v1_shards")) {
    for (const char* name : {kFirst, kSecond}) files_.files()[name] = Load(name);
  }

  static constexpr char kFirst[] = "v1_shards-00000-of-00002";
  static constexpr char kSecond[] = "v1_shards-00001-of-00002";

  Outcome Read() { return ReadAllOf(files_, "v1_shards", expected_); }

  const std::map<std::string, Tensor> expected_;
  MemoryFileSystem files_;
};

TEST_F(DamagedTable, TruncatedAtEveryByte) {
  const std::string bytes = files_.files()[kFirst];
  for (size_t size = 0; size < bytes.size(); ++size) {
    files_.files()[kFirst] = bytes.substr(0, size);
    ASSERT_EQ(Read().opened.code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST_F(DamagedTable, EveryBitFlippedIsFound) {
  for (const char* name : {kFirst, kSecond}) {
    std::string& bytes = files_.files()[name];
    for (size_t i = 0; i < bytes.size() * 8; ++i) {
      bytes[i / 8] ^= static_cast<char>(1 << (i % 8));
      const Outcome outcome = Read();
      ASSERT_TRUE(!outcome.opened.ok() || !outcome.failed.empty()) << name << ", bit " << i;
      bytes[i / 8] ^= static_cast<char>(1 << (i % 8));
    }
  }
}

TEST_F(DamagedTable, AShardIsMissing) {
  files_.files().erase(kSecond);
  const absl::Status status = Read().opened;
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), absl::StrCat("checkpoint 'v1_shards' has 2 shards: found no file '", kSecond, "'"));
}

TEST_F(DamagedTable, ExchangedShard) {
  files_.files()[kSecond] = files_.files()[kFirst];
  EXPECT_EQ(Read().opened.message(), absl::StrCat("'", kSecond, "': variable 'own0': its slices overlap"));
}

}  // namespace
}  // namespace permafrost
