// Tests of opening and saving models.
#include "io/model_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "io/formats/zstd.h"
#include "tests/io/faulty_file_system.h"
#include "tests/io/test_in_folder.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelFileTest : public TestInFolder {
 protected:
  static std::unique_ptr<Graph> Open(const std::string& path) {
    absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), path);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? *std::move(graph) : std::make_unique<Graph>();
  }
  const std::string digits_ = DataFile("tests/models/digits/digits.pb");
};

TEST_F(ModelFileTest, FormatIsDetectedFromContent) {
  const std::unique_ptr<Graph> graph = Open(digits_);
  ASSERT_GT(graph->num_nodes(), 0u);
  ASSERT_TRUE(SaveModel(RealFileSystem(), *graph, Path("text.pb"), {"pbtxt"}).ok());
  EXPECT_THAT(Get(Path("text.pb")).substr(0, 6), "node {");
  const std::unique_ptr<Graph> from_text = Open(Path("text.pb"));
  EXPECT_EQ(from_text->num_nodes(), graph->num_nodes());
  EXPECT_EQ(*EncodedSize(*graph, {"pbtxt"}), fs::file_size(Path("text.pb")));
  EXPECT_EQ(*EncodedSize(*graph), fs::file_size(digits_));
}

TEST_F(ModelFileTest, SavesOverItsOwnInput) {
  fs::copy_file(digits_, Path("model.pb"));
  const std::unique_ptr<Graph> graph = Open(Path("model.pb"));
  Node* const extra = *graph->AddNode("extra", Op::Named("NoOp"));
  ASSERT_TRUE(SaveModel(RealFileSystem(), *graph, Path("model.pb")).ok());
  ASSERT_TRUE(graph->RemoveNode(extra).ok());
  ASSERT_TRUE(SaveModel(RealFileSystem(), *graph, Path("model.pb")).ok());
  EXPECT_EQ(Get(Path("model.pb")), Get(digits_));
  EXPECT_THAT(*RealFileSystem().ListDirectory(folder_.string()), ElementsAre("model.pb"));
}

TEST_F(ModelFileTest, SavesIntoAFileOpenedBefore) {
  // Larger than the thresholds for reading ahead and for reserving memory ahead on another thread.
  Graph large;
  (*large.AddNode("large", Op::Named("NoOp")))->SetAttr("text", AttrValue::String(std::string(3 << 20, 'x')));
  ASSERT_TRUE(SaveModel(RealFileSystem(), large, Path("model.pb")).ok());
  const std::string expected = Get(Path("model.pb"));
  std::unique_ptr<FileWriter> file = RealFileSystem().NewWriter(Path("model.pb")).value();
  file->ReserveAhead(expected.size());
  OpenOptions options;
  options.reads_all = true;
  absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), Path("model.pb"), options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE((*graph)->AddNode("extra", Op::Named("NoOp")).ok());
  ASSERT_TRUE(SaveModel(std::move(file), **graph).ok());
  EXPECT_EQ(Open(Path("model.pb"))->num_nodes(), 2u);
  EXPECT_EQ(Get(Path("model.pb")).substr(0, expected.size()), expected);
  EXPECT_THAT(*RealFileSystem().ListDirectory(folder_.string()), ElementsAre("model.pb"));

  file = RealFileSystem().NewWriter(Path("model.pb")).value();
  EXPECT_EQ(SaveModel(std::move(file), **graph, {"no_such_format"}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Open(Path("model.pb"))->num_nodes(), 2u);
}

TEST_F(ModelFileTest, AFailedSaveLeavesTheOldFile) {
  const std::unique_ptr<Graph> graph = Open(digits_);
  for (const char* format : {"pb", "pbtxt"}) {
    Put("model.pb", "old");
    FaultyFileSystem files;
    files.calls().LimitDisk(1000);
    const absl::Status status = SaveModel(files, *graph, Path("model.pb"), {format});
    EXPECT_EQ(status.message(), "cannot write '" + Path("model.pb") + "': No space left on device");
    EXPECT_EQ(Get(Path("model.pb")), "old");
    EXPECT_THAT(*RealFileSystem().ListDirectory(folder_.string()), ElementsAre("model.pb"));
  }
}

TEST_F(ModelFileTest, ErrorsOfTheFileSystemPassThrough) {
  EXPECT_EQ(OpenModel(RealFileSystem(), Path("none")).status().message(),
            "cannot open '" + Path("none") + "': No such file or directory");
  FaultyFileSystem files;
  files.calls().Fail(Fault::kMap, 0, ENOMEM);
  EXPECT_EQ(OpenModel(files, digits_).status().message(), "cannot map '" + digits_ + "': Cannot allocate memory");
}

TEST_F(ModelFileTest, NamesWhatIsNotAFrozenGraph) {
  const std::string zeros(300, '\0');
  const std::pair<std::string, const char*> cases[] = {
      {"", "is empty"},
      {"\x28\xb5\x2f\xfd" + zeros, "zstd: byte 0: "},
      {"\x1f\x8b\x08" + zeros, "gzip: byte 0: the member is damaged"},
      {"PK\x03\x04" + zeros, "zip archive"},
      {"PK\x03\x04" + zeros + "config.json...model.weights.h5", "load_model('model.keras').export('folder')"},
      {"PK\x03\x04" + zeros + "archive/data.pkl", "ai_edge_torch.convert("},
      {"PK\x03\x04" + zeros + "model/saved_model.pb", "pass the folder"},
      {"PK\x03\x04" + zeros + "a.npy", "NumPy arrays"},
      {"\x80\x02\x8a\x0al\xfc" + zeros, "older PyTorch files"},
      {std::string("\x40\x01\0\0\0\0\0\0{\"__metadata__\"", 22) + zeros, "safetensors"},
      {"<?xml version=\"1.0\"?>\n<net name=\"m\" version=\"11\">", "OpenVINO"},
      {"GGUF" + zeros, "GGUF"},
      {"\x89HDF\r\n\x1a\n" + zeros, "load_model('model.h5').export('folder')"},
      {std::string("\x1c\0\0\0TFL3", 8) + zeros, "TensorFlow Lite"},
      {std::string("\x08\x07\x12\x07pytorch\x1a\x03", 13) + "2.0", "onnx2tf -i model.onnx"},
      {std::string("\x08\x01\x12\x04\x0a\x02\x0a\x00", 8), "SavedModel protobuf"},
      {"\n  <!DOCTYPE html><html>", "HTML page"},
      {zeros + "\x57\xfb\x80\x8b\x24\x75\x47\xdb", "freeze_graph --input_checkpoint"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git lfs pull"},
      {"{\"format\": \"graph-model\"}", "JSON"},
      {"age-encryption.org/v1\n", "age: header, byte 22: the file is truncated within the header"},
      {"hello", "cannot be read as a text GraphDef: line 1, column"},
      {std::string("\x0a\xff\0", 3), "cannot be read as a GraphDef: offset 3: "},
      {std::string("\x20\x01", 2), "holds no nodes"},
  };
  for (const auto& [content, expected] : cases) {
    const absl::Status status = OpenModel(RealFileSystem(), Put("model.pb", content)).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(expected));
    EXPECT_THAT(std::string(status.message()), HasSubstr("'" + Path("model.pb") + "': "));
  }
}

TEST_F(ModelFileTest, RejectsFolders) {
  EXPECT_THAT(std::string(OpenModel(RealFileSystem(), folder_.string()).status().message()), HasSubstr("is a folder"));
  Put("saved_model.pb", "");
  const absl::Status status = OpenModel(RealFileSystem(), folder_.string()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a SavedModel folder"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("freeze_graph"));
}

TEST_F(ModelFileTest, CompressedSizeIsThatOfTheWrittenFile) {
  const std::unique_ptr<Graph> graph = Open(digits_);
  const absl::StatusOr<uint64_t> size = CompressedSize(*graph);
  ASSERT_TRUE(size.ok()) << size.status();
  SaveOptions options;
  options.filters = {ZstdFilter(kDefaultZstdLevel)};
  ASSERT_TRUE(SaveModel(RealFileSystem(), *graph, Path("model.zst"), options).ok());
  EXPECT_EQ(*size, fs::file_size(Path("model.zst")));
  EXPECT_EQ(*size, *EncodedSize(*graph, options));
  EXPECT_GT(*size, 1000u);
  EXPECT_LT(*size, fs::file_size(digits_));
}

TEST_F(ModelFileTest, CompressedModelsAreReadAsTheyAre) {
  const std::unique_ptr<Graph> graph = Open(digits_);
  for (const char* format : {"pb", "pbtxt"}) {
    for (const int level : {kFastestZstdLevel, kSmallestZstdLevel}) {
      SaveOptions options{format};
      ASSERT_TRUE(SaveModel(RealFileSystem(), *graph, Path("plain"), options).ok());
      options.filters = {ZstdFilter(level)};
      ASSERT_TRUE(SaveModel(RealFileSystem(), *graph, Path("model"), options).ok());
      EXPECT_EQ(Get(Path("model")).substr(0, 4), "\x28\xb5\x2f\xfd");
      ASSERT_TRUE(SaveModel(RealFileSystem(), *Open(Path("model")), Path("again"), {format}).ok());
      EXPECT_EQ(Get(Path("again")), Get(Path("plain"))) << format << level;
    }
  }
}

}  // namespace
}  // namespace permafrost
