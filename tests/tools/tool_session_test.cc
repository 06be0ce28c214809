// Tests of the memory regions that tools read for a model.
#include "tools/model/tool_session.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "io/formats/package_conversion.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

TEST(RunOptionsTest, RegionsAreFiles) {
  const SessionOptions options = ToolSessionOptions(2, RealFileSystem());
  EXPECT_EQ(options.num_threads, 2);
  EXPECT_EQ(options.loop_limits.most_iterations, kMostLoopIterations);
  const std::string path = absl::StrCat(std::getenv("TEST_TMPDIR"), "/region");
  const float values[] = {1, 2, 3};
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof(values));
  const absl::StatusOr<Tensor> tensor = options.region_reader(path, DType::kFloat, Shape({3}));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->elements<float>()[2], 3);
  EXPECT_EQ(options.region_reader(path, DType::kFloat, Shape({4})).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(options.region_reader(path + "_not", DType::kFloat, Shape({3})).ok());
  const absl::Status packaged = options.region_reader("memmapped_package://w", DType::kFloat, Shape({3})).status();
  EXPECT_EQ(packaged.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(packaged.message()), HasSubstr("'memmapped_package://w' lies in a memory-mapped package"));
}

// Counts the bytes that are read.
class CountingSource : public ByteSource {
 public:
  explicit CountingSource(FileView view) : source_(MemorySource(std::move(view))) {}
  uint64_t size() const override { return source_->size(); }
  absl::StatusOr<FileView> Read(uint64_t offset, uint64_t length) const override {
    bytes_read_ += length;
    return source_->Read(offset, length);
  }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  std::shared_ptr<const ByteSource> source_;
  mutable uint64_t bytes_read_ = 0;
};

TEST(RunOptionsTest, ASessionReadsTheRegionsThatItNeeds) {
  // Two branches, each with a weight of 4096 bytes; one is fetched.
  Graph graph;
  Node* const x = *graph.AddNode("x", Op::Named("Placeholder"));
  x->SetAttr("dtype", AttrValue::Type(DType::kFloat));
  x->SetAttr("shape", AttrValue::OfShape({1024}));
  for (const std::string name : {"a", "b"}) {
    Node* const weight = *graph.AddConst(name, Tensor::FromVector<float>({1024}, std::vector<float>(1024, 2)));
    Node* const sum = *graph.AddNode("sum_" + name, Op::Named("Add"));
    sum->SetAttr("T", AttrValue::Type(DType::kFloat));
    graph.AddInput(sum, {x, 0});
    graph.AddInput(sum, {weight, 0});
  }
  PackageOptions packing;
  packing.min_conversion_tensor_size = 1;
  StringSink sink;
  const absl::StatusOr<PackageLayout> layout = LayOutPackage(graph, packing);
  ASSERT_TRUE(layout.ok()) << layout.status();
  ASSERT_TRUE(WritePackage(*layout, &sink).ok());

  const auto kept = std::make_shared<const std::string>(sink.Release());
  const auto source = std::make_shared<CountingSource>(FileView{*kept, kept});
  const std::shared_ptr<const Package> package = *OpenPackage(source);
  const std::unique_ptr<Graph> written = *package->ReadGraph();
  const uint64_t to_open = source->bytes_read();
  EXPECT_LT(to_open, 1000u);
  SessionOptions options = ToolSessionOptions(1, RealFileSystem());
  options.region_reader = PackageRegions(package, RealFileSystem());
  const absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(*written, {"x"}, {"sum_a"}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<std::vector<Tensor>> outputs =
      (*session)->Run({Tensor::FromVector<float>({1024}, std::vector<float>(1024, 3))});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].elements<float>()[1023], 5);
  EXPECT_EQ(source->bytes_read() - to_open, 4096u);
}

}  // namespace
}  // namespace permafrost
