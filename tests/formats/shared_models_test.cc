// Reads the large shared models, if they are available, and checks that they are written back byte for byte.
#include "tests/shared_models.h"

#include <string>

#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/graphdef.h"
#include "tests/formats/differential.h"

namespace permafrost {
namespace {

TEST(SharedModels, RoundTripByteForByteAndAsMessages) {
  const std::vector<SharedModel> models = SharedModels();
  if (models.empty()) GTEST_SKIP() << "found no folder of shared models";
  for (const SharedModel& model : models) {
    SCOPED_TRACE(model.name);
    const FileView file = *RealFileSystem().MapFile(model.path);
    const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(file.bytes, file.owner);
    ASSERT_TRUE(graph.ok()) << graph.status();
    StringSink sink;
    ASSERT_TRUE(WriteGraphDef(**graph, &sink).ok());
    EXPECT_TRUE(sink.text() == file.bytes);
    EXPECT_EQ(CompareWithProtobuf(file.bytes), "");
  }
}

}  // namespace
}  // namespace permafrost
