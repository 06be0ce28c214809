// Tests of memory-mapped packages: layout, choice of regions, damaged files, and reads limited to what is needed.
#include "io/formats/memmapped_package.h"

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef.h"
#include "io/formats/package_conversion.h"
#include "io/model_file.h"
#include "tests/runtime_check/small_graph.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Counts the bytes read.
class CountingSource : public ByteSource {
 public:
  explicit CountingSource(std::string bytes) {
    auto kept = std::make_shared<const std::string>(std::move(bytes));
    source_ = MemorySource({*kept, kept});
  }
  uint64_t size() const override { return source_->size(); }
  absl::StatusOr<FileView> Read(uint64_t offset, uint64_t length) const override {
    reads_.emplace_back(offset, length);
    return source_->Read(offset, length);
  }
  std::vector<std::pair<uint64_t, uint64_t>> TakeReads() { return std::exchange(reads_, {}); }

 private:
  std::shared_ptr<const ByteSource> source_;
  mutable std::vector<std::pair<uint64_t, uint64_t>> reads_;
};

std::string Written(const Graph& graph, const PackageOptions& options) {
  StringSink sink;
  const absl::StatusOr<PackageLayout> layout = LayOutPackage(graph, options);
  EXPECT_TRUE(layout.ok()) << layout.status();
  if (!layout.ok()) return "";
  EXPECT_TRUE(WritePackage(*layout, &sink).ok());
  EXPECT_EQ(sink.text().size(), layout->file_bytes);
  return sink.Release();
}

FileView Kept(std::string bytes) {
  auto kept = std::make_shared<const std::string>(std::move(bytes));
  return {*kept, kept};
}

std::shared_ptr<const Package> Opened(const std::string& bytes) {
  const absl::StatusOr<std::shared_ptr<const Package>> package = OpenPackage(MemorySource(Kept(bytes)));
  EXPECT_TRUE(package.ok()) << package.status();
  return package.ok() ? *package : nullptr;
}

std::string Encoded(const Graph& graph) {
  StringSink sink;
  EXPECT_TRUE(WriteGraphDef(graph, &sink).ok());
  return sink.Release();
}

PackageOptions AtLeast(uint64_t bytes) {
  PackageOptions options;
  options.min_conversion_tensor_size = bytes;
  return options;
}

std::string OpOf(const Graph& graph, absl::string_view name) { return std::string(graph.Find(name)->op().name()); }

// x * w + b, with w of 48 bytes, b of 12, and a Reshape whose shape input has 8 bytes.
SmallGraph* Model() {
  auto* small = new SmallGraph;
  small->Placeholder("x", DType::kFloat, {2, 4});
  small->Const("w", Floats({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  small->Const("b", Floats({3}, {1, 2, 3}));
  small->Const("shape", Tensor::FromVector<int32_t>({2}, {3, 2}));
  small->Float("product", "MatMul", {"x", "w"});
  small->Float("sum", "BiasAdd", {"product", "b"});
  small->Float("y", "Reshape", {"sum", "shape"});
  return small;
}

TEST(PackageWriter, LaysOutTheExampleOfTheFormat) {
  // One tensor of three floats, then a message of ten bytes.
  StringSink sink;
  PackageWriter writer(&sink);
  ASSERT_TRUE(writer.AddTensor("memmapped_package://t", std::string(12, 'f')).ok());
  ASSERT_TRUE(writer.BeginMessage(kPackageGraphName).ok());
  ASSERT_TRUE(writer.Append("0123456789").ok());
  EXPECT_EQ(writer.offset(), 22u);
  ASSERT_TRUE(writer.Finish().ok());
  const std::string first = "\x12\x15memmapped_package://t\x18\x0c";
  const std::string second = "\x08\x0c\x12\x15memmapped_package://.\x18\x0a";
  EXPECT_EQ(sink.text(), absl::StrCat("ffffffffffff0123456789", "\x0a\x19", first, "\x0a\x1b", second,
                                      absl::string_view("\x16\0\0\0\0\0\0\0", 8)));
}

TEST(PackageWriter, AlignsTensorsAndNothingElse) {
  StringSink sink;
  PackageWriter writer(&sink, kPageAlignment);
  ASSERT_TRUE(writer.AddTensor("memmapped_package://a", "a").ok());
  ASSERT_TRUE(writer.BeginMessage("memmapped_package://m").ok());
  ASSERT_TRUE(writer.Append("m").ok());
  ASSERT_TRUE(writer.AddTensor("memmapped_package://b", "bb").ok());
  ASSERT_TRUE(writer.Finish().ok());
  const std::shared_ptr<const Package> package = Opened(sink.text());
  ASSERT_NE(package, nullptr);
  ASSERT_EQ(package->regions().size(), 3u);
  EXPECT_EQ(package->regions()[1].offset, 1u);
  EXPECT_EQ(package->regions()[2].offset, 4096u);
  EXPECT_EQ(package->Read("memmapped_package://b")->bytes, "bb");
  EXPECT_EQ(package->Read("memmapped_package://c").status().code(), absl::StatusCode::kNotFound);
}

TEST(PackageWriter, RefusesNamesAndEmptyRegions) {
  StringSink sink;
  PackageWriter writer(&sink);
  for (const char* name : {"t", "memmapped_package:/t", "memmapped_package://a/b", "memmapped_package://a b"}) {
    EXPECT_EQ(writer.AddTensor(name, "x").code(), absl::StatusCode::kInvalidArgument) << name;
  }
  ASSERT_TRUE(writer.AddTensor("memmapped_package://t", "x").ok());
  EXPECT_THAT(std::string(writer.AddTensor("memmapped_package://t", "x").message()), HasSubstr("two regions"));
  ASSERT_TRUE(writer.BeginTensor("memmapped_package://empty").ok());
  EXPECT_THAT(std::string(writer.Finish().message()), HasSubstr("has no bytes"));
}

TEST(RegionNames, AreThoseOfTheOriginal) {
  RegionNames names;
  names.Reserve(kPackageGraphName);
  EXPECT_EQ(names.NameFor("conv1/weights:0"), "memmapped_package://conv1_weights_0");
  EXPECT_EQ(names.NameFor("conv1_weights/0"), "memmapped_package://conv1_weights_0_");
  EXPECT_EQ(names.NameFor("conv1_weights_0"), "memmapped_package://conv1_weights_0__");
  EXPECT_EQ(names.NameFor("."), "memmapped_package://._");
}

TEST(RegionNames, ManySimilarNamesStayShort) {
  RegionNames names;
  size_t longest = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string name(17, '/');
    for (int bit = 0; bit < 17; ++bit) name[bit] = (i >> bit & 1) != 0 ? '-' : '/';
    longest = std::max(longest, names.NameFor(name).size());
  }
  EXPECT_LT(longest, 120u);
}

TEST(LayOutPackage, ConvertsLargeConstantsThatShapesDoNotRead) {
  const std::unique_ptr<SmallGraph> model(Model());
  const absl::StatusOr<PackageLayout> layout = LayOutPackage(model->graph(), AtLeast(1));
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->constants.size(), 2u);
  EXPECT_EQ(layout->kept.for_shapes, 1u);
  EXPECT_EQ(OpOf(*layout->graph, "w"), "ImmutableConst");
  EXPECT_EQ(OpOf(*layout->graph, "shape"), "Const");
  EXPECT_EQ(OpOf(model->graph(), "w"), "Const");
  EXPECT_EQ(*StringAttr(*layout->graph->Find("w"), "memory_region_name"), "memmapped_package://w");
  EXPECT_EQ(LayOutPackage(model->graph(), AtLeast(13))->constants.size(), 1u);
  EXPECT_EQ(LayOutPackage(model->graph(), AtLeast(49))->constants.size(), 0u);
}

TEST(LayOutPackage, InputsOfShapeComputationsStay) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {6});
  const AttrValue int32 = AttrValue::Type(DType::kInt32);
  small.Const("a", Tensor::FromVector<int32_t>({2}, {1, 1}));
  small.Const("b", Tensor::FromVector<int32_t>({2}, {1, 2}));
  small.Add("target", "Add", {"a", "b"}, {{"T", int32}});
  small.Float("y", "Reshape", {"x", "target"});
  small.Const("c", Tensor::FromVector<int32_t>({2}, {1, 2}));
  small.Add("unrelated", "Add", {"c", "c"}, {{"T", int32}});
  const absl::StatusOr<PackageLayout> layout = LayOutPackage(small.graph(), AtLeast(1));
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->kept.for_shapes, 2u);
  ASSERT_EQ(layout->constants.size(), 1u);
  EXPECT_EQ(layout->constants[0].node->name(), "c");
}

TEST(LayOutPackage, AGraphWithoutShapesKeepsEverySmallInteger) {
  const std::unique_ptr<SmallGraph> model(Model());
  model->Const("other", Tensor::FromVector<int32_t>({3}, {1, 2, 3}));
  model->Float("wrong", "MatMul", {"x", "b"});  // A matrix times a vector.
  const absl::StatusOr<PackageLayout> layout = LayOutPackage(model->graph(), AtLeast(1));
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->kept.for_shapes, 2u);
  EXPECT_EQ(layout->constants.size(), 2u);
}

TEST(LayOutPackage, QuantizedTypesOnRequest) {
  SmallGraph small;
  small.Const("codes", *Tensor::FromBytes(DType::kQUint8, {4}, "abcd", nullptr));
  small.Const("text", Tensor::FromStrings({1}, {"some text"}));
  EXPECT_EQ(LayOutPackage(small.graph(), AtLeast(1))->constants.size(), 0u);
  EXPECT_EQ(LayOutPackage(small.graph(), AtLeast(1))->kept.of_type, 2u);
  PackageOptions options = AtLeast(1);
  options.include_quantized = true;
  EXPECT_EQ(LayOutPackage(small.graph(), options)->constants.size(), 1u);
  EXPECT_EQ(LayOutPackage(small.graph(), options)->kept.of_type, 1u);
}

TEST(LayOutPackage, EqualBytesShareARegionOnRequest) {
  SmallGraph small;
  small.Const("a", Floats({2, 2}, {1, 2, 3, 4}));
  small.Const("b", Floats({4}, {1, 2, 3, 4}));
  small.Const("c", Floats({4}, {1, 2, 3, 5}));
  EXPECT_EQ(LayOutPackage(small.graph(), AtLeast(1))->regions.size(), 3u);
  PackageOptions options = AtLeast(1);
  options.dedupe = true;
  const std::string bytes = Written(small.graph(), options);
  EXPECT_EQ(Opened(bytes)->regions().size(), 3u);  // Two tensors and the graph.
  const absl::StatusOr<std::unique_ptr<Graph>> read = ReadModel(Kept(bytes));
  ASSERT_TRUE(read.ok()) << read.status();
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(*ConstValue(*(*read)->Find(name)), *ConstValue(*small.graph().Find(name)));
  }
  EXPECT_EQ(ConstValue(*(*read)->Find("a"))->bytes().data(), ConstValue(*(*read)->Find("b"))->bytes().data());
}

TEST(LayOutPackage, ARegionOfAnotherPackageKeepsItsName) {
  SmallGraph small;
  small.Const("w", Floats({4}, {1, 2, 3, 4}));
  small.Add("foreign", "ImmutableConst", {},
            {{"dtype", AttrValue::Type(DType::kFloat)},
             {"shape", AttrValue::OfShape({4})},
             {"memory_region_name", AttrValue::String("memmapped_package://w")}});
  EXPECT_EQ(LayOutPackage(small.graph(), AtLeast(1))->regions[0].name, "memmapped_package://w_");
}

TEST(LayOutPackage, NamesTheNodeWhoseValueIsMalformed) {
  SmallGraph small;
  small.Add("none", "Const", {}, {{"dtype", AttrValue::Type(DType::kFloat)}});
  EXPECT_EQ(LayOutPackage(small.graph(), AtLeast(1)).status().message(), "node 'none' (Const): has no attr 'value'");
}

TEST(PackageFormat, RestoresTheGraph) {
  const std::unique_ptr<SmallGraph> model(Model());
  model->mutable_graph().Find("w")->set_device("/cpu:0");
  model->mutable_graph().Find("w")->SetAttr("_class", AttrValue::StringList({"loc:@b"}));
  model->mutable_graph().AddControlInput(model->mutable_graph().Find("w"), model->mutable_graph().Find("x"));
  for (const uint64_t limit : {1u, 13u, 10000u}) {
    const std::string bytes = Written(model->graph(), AtLeast(limit));
    const absl::StatusOr<std::unique_ptr<Graph>> read = ReadModel(Kept(bytes));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(Encoded(**read), Encoded(model->graph())) << limit;
  }
}

TEST(PackageFormat, ValuesAreViewsOfTheFile) {
  const std::unique_ptr<SmallGraph> model(Model());
  const FileView file = Kept(Written(model->graph(), AtLeast(1)));
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadModel(file);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Tensor w = *ConstValue(*(*graph)->Find("w")), b = *ConstValue(*(*graph)->Find("b"));
  EXPECT_EQ(w.bytes().data(), file.bytes.data());
  EXPECT_EQ(b.bytes().data(), file.bytes.data() + 64);
}

TEST(PackageFormat, TheBundledModelComesBackByteForByte) {
  const std::string path = DataFile("tests/models/digits/digits.pb");
  const absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), path);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::string out = ::testing::TempDir() + "digits.pbmm";
  ASSERT_TRUE(SaveModel(RealFileSystem(), **graph, out, {"package"}).ok());
  EXPECT_EQ(*EncodedSize(**graph, {"package"}), std::filesystem::file_size(out));
  const absl::StatusOr<std::unique_ptr<Graph>> read = OpenModel(RealFileSystem(), out);
  ASSERT_TRUE(read.ok()) << read.status();
  int views = 0;
  for (const Node* node = (*read)->first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kConst || node->FindAttr("value")->held_tensor() == nullptr) continue;
    ++views;
    EXPECT_TRUE(node->FindAttr("value")->held_tensor()->IsAligned());
  }
  EXPECT_GT(views, 0);
  EXPECT_TRUE(Encoded(**read) == Encoded(**graph));
  std::filesystem::remove(out);
}

TEST(Package, ReadsOnlyTheDirectoryTheGraphAndRequestedRegions) {
  const std::unique_ptr<SmallGraph> model(Model());
  const std::string bytes = Written(model->graph(), AtLeast(1));
  const auto source = std::make_shared<CountingSource>(bytes);
  const std::shared_ptr<const Package> package = *OpenPackage(source);
  const uint64_t graph_at = 64 + 12, graph_bytes = package->Find(kPackageGraphName)->length;
  const uint64_t directory_at = graph_at + graph_bytes;
  using Range = std::pair<uint64_t, uint64_t>;
  EXPECT_THAT(source->TakeReads(),
              ElementsAre(Range(bytes.size() - 8, 8), Range(directory_at, bytes.size() - 8 - directory_at)));
  const std::unique_ptr<Graph> graph = *package->ReadGraph();
  EXPECT_THAT(source->TakeReads(), ElementsAre(Range(graph_at, graph_bytes)));
  EXPECT_EQ(OpOf(*graph, "b"), "ImmutableConst");
  EXPECT_EQ(*package->ReadTensor("memmapped_package://b", DType::kFloat, {3}), Floats({3}, {1, 2, 3}));
  EXPECT_THAT(source->TakeReads(), ElementsAre(Range(64, 12)));
  EXPECT_EQ(package->ReadTensor("memmapped_package://b", DType::kFloat, {4}).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_THAT(source->TakeReads(), IsEmpty());
}

TEST(Package, DirectoriesWithoutLengthsAreRead) {
  // Offsets 0 and 64, then the graph at 68. The first length includes the padding.
  const std::string graph =
      "\x0a\x08\x0a\x01n\x12\x03"
      "Abs";
  const auto entry = [](uint64_t offset, absl::string_view name) {
    std::string element, field;
    if (offset != 0) AppendVarintField(1, offset, &element);
    AppendBytesField(2, absl::StrCat(kPackagePrefix, name), &element);
    AppendBytesField(1, element, &field);
    return field;
  };
  std::string bytes =
      absl::StrCat("1234", std::string(60, '\0'), "5678", graph, entry(0, "a"), entry(64, "b"), entry(68, "."));
  bytes.push_back(static_cast<char>(68 + graph.size()));
  bytes.append(7, '\0');
  const std::shared_ptr<const Package> package = Opened(bytes);
  ASSERT_NE(package, nullptr);
  EXPECT_EQ(package->Find("memmapped_package://a")->length, 64u);
  EXPECT_EQ(package->Find("memmapped_package://b")->length, 4u);
  EXPECT_EQ(package->ReadTensor("memmapped_package://a", DType::kUint8, {4})->bytes(), "1234");
  EXPECT_EQ(ReadModel(Kept(bytes)).value()->num_nodes(), 1u);
}

TEST(Package, ReadsWhatTensorFlowWrites) {
  // Written by tests/oracle/packages_oracle.py.
  const absl::StatusOr<std::unique_ptr<Graph>> theirs =
      OpenModel(RealFileSystem(), DataFile("tests/formats/packages/tensorflow.pbmm"));
  const absl::StatusOr<std::unique_ptr<Graph>> original =
      OpenModel(RealFileSystem(), DataFile("tests/formats/packages/linear.pbtxt"));
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  ASSERT_TRUE(original.ok()) << original.status();
  EXPECT_NE((*theirs)->Find("layer/w")->FindAttr("value")->held_tensor(), nullptr);
  EXPECT_EQ((*theirs)->Find("layer/b")->FindAttr("value")->held_tensor(), nullptr);
  ASSERT_EQ((*theirs)->num_nodes(), (*original)->num_nodes());
  for (const Node* node = (*original)->first(); node != nullptr; node = node->next()) {
    const Node* const found = (*theirs)->Find(node->name());
    ASSERT_NE(found, nullptr) << node->name();
    EXPECT_EQ(found->op(), node->op());
    ASSERT_EQ(found->attrs().size(), node->attrs().size());
    if (node->op() != ops::kConst) continue;
    EXPECT_EQ(*ConstValue(*found), *ConstValue(*node));
  }
}

// Reads everything that a package contains.
absl::Status ReadAllOf(const std::string& bytes) {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, ReadModel(Kept(bytes)));
  for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kConst) PF_RETURN_IF_ERROR(ConstValue(*node).status());
  }
  return absl::OkStatus();
}

TEST(Package, TruncationAtEveryByte) {
  const std::unique_ptr<SmallGraph> model(Model());
  const std::string bytes = Written(model->graph(), AtLeast(1));
  ASSERT_TRUE(ReadAllOf(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(OpenPackage(MemorySource(Kept(bytes.substr(0, size)))).ok()) << size;
    EXPECT_FALSE(ReadAllOf(bytes.substr(0, size)).ok()) << size;
  }
}

TEST(Package, EverySingleBitFlip) {
  const std::unique_ptr<SmallGraph> model(Model());
  const std::string bytes = Written(model->graph(), AtLeast(1));
  const size_t directory_at = bytes.size() - 8 - 3 * 30;
  int refused = 0, flips = 0;
  for (size_t i = 64 + 12; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const bool ok = ReadAllOf(damaged).ok();
      if (i < directory_at) continue;
      ++flips;
      refused += !ok;
    }
  }
  // Flips that stay undetected change the name of a region that is not read, or a length that is not needed.
  EXPECT_GT(refused, flips * 8 / 10);
}

TEST(Package, ALargeDirectoryIsReadOnce) {
  StringSink sink;
  PackageWriter writer(&sink, 32);
  constexpr int kRegions = 100000;
  for (int i = 0; i < kRegions; ++i) ASSERT_TRUE(writer.AddTensor(absl::StrCat(kPackagePrefix, "t", i), "x").ok());
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_EQ(Opened(sink.text())->regions().size(), static_cast<size_t>(kRegions));
}

}  // namespace
}  // namespace permafrost
