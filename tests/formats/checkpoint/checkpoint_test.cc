// Tests of checkpoints written by TensorFlow: found by each of their names, and read value by value.
#include "io/formats/checkpoint/checkpoint.h"

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "tests/formats/checkpoint/checkpoint_fixture.h"

namespace permafrost {
namespace {

using ::testing::HasSubstr;

void ExpectVariables(absl::string_view path, const std::map<std::string, Tensor>& expected) {
  const absl::StatusOr<std::unique_ptr<VariableSource>> source = OpenCheckpoint(RealFileSystem(), std::string(path));
  ASSERT_TRUE(source.ok()) << source.status();
  std::map<std::string, VariableInfo> listed;
  std::string last;
  for (const VariableInfo& variable : (*source)->variables()) {
    EXPECT_LT(last, variable.name);
    last = variable.name;
    listed[last] = variable;
  }
  for (const auto& [name, value] : expected) {
    SCOPED_TRACE(name);
    ASSERT_EQ(listed.count(name), 1u);
    EXPECT_EQ(listed[name].dtype, value.dtype());
    EXPECT_EQ(listed[name].shape, value.shape());
    const absl::StatusOr<Tensor> read = (*source)->Read(name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == value);
    listed.erase(name);
  }
  // Entries that TensorFlow adds to object-based checkpoints.
  for (const auto& [name, variable] : listed) {
    EXPECT_TRUE(name == "_CHECKPOINTABLE_OBJECT_GRAPH" || absl::StrContains(name, "save_counter")) << name;
    EXPECT_TRUE((*source)->Read(name).ok()) << name;
  }
}

class WrittenByTensorFlow : public ::testing::TestWithParam<const char*> {};

TEST_P(WrittenByTensorFlow, EveryValueIsCorrect) {
  const std::map<std::string, Tensor> expected = RecordedVariables(GetParam());
  ASSERT_FALSE(expected.empty());
  ExpectVariables(WrittenFile(GetParam()), expected);
}

INSTANTIATE_TEST_SUITE_P(Checkpoint, WrittenByTensorFlow, ::testing::Values("v2", "v1", "v1_shards", "objects"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Checkpoint, AnyOfItsFilesNamesIt) {
  const std::map<std::string, Tensor> expected = RecordedVariables("v2");
  for (const char* name : {"v2.index", "v2.data-00000-of-00002", "v2.data-00001-of-00002"}) {
    SCOPED_TRACE(name);
    ExpectVariables(WrittenFile(name), expected);
  }
  for (const char* name : {"v1_shards-00000-of-00002", "v1_shards-00001-of-00002"}) {
    SCOPED_TRACE(name);
    ExpectVariables(WrittenFile(name), RecordedVariables("v1_shards"));
  }
  for (const char* name : {"objects/", "objects/checkpoint", "objects/ckpt-2", "objects/ckpt-2.index"}) {
    SCOPED_TRACE(name);
    ExpectVariables(WrittenFile(name), RecordedVariables("objects"));
  }
}

TEST(Checkpoint, ValuesAreViewsThatKeepTheirFile) {
  Tensor value;
  {
    const std::unique_ptr<VariableSource> source = *OpenCheckpoint(RealFileSystem(), WrittenFile("v2"));
    value = *source->Read("types/float");
    const Tensor again = *source->Read("types/float");
    EXPECT_EQ(value.bytes().data(), again.bytes().data());
  }
  EXPECT_TRUE(value == RecordedVariables("v2").at("types/float"));
}

TEST(Checkpoint, AnUnknownNameGetsTheNearest) {
  for (const char* name : {"v2", "v1"}) {
    const std::unique_ptr<VariableSource> source = *OpenCheckpoint(RealFileSystem(), WrittenFile(name));
    const absl::Status status = source->Read("types/flaot").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(status.message(), absl::StrCat("checkpoint '", WrittenFile(name),
                                             "': has no variable 'types/flaot'; did you mean 'types/float'?"));
  }
}

}  // namespace
}  // namespace permafrost
