// Tests of writing TensorFlow Lite models that were read: unchanged files, operators that edits leave alone,
// signatures, metadata and archives, and operators that are only carried.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/validation/validate.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/graphdef.h"
#include "io/formats/npy.h"
#include "io/formats/tflite/archive.h"
#include "io/formats/tflite/carried_operator.h"
#include "io/formats/tflite/metadata.h"
#include "io/formats/tflite/provenance.h"
#include "io/model_file.h"
#include "io/model_writer.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/checking/seeded_inputs.h"
#include "runtime_check/session.h"
#include "tests/shared_models.h"
#include "tools/model/model_inputs.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FilesBelow(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tflite") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Every model at hand: those of the workspace and, beside it, the shared ones.
std::vector<fs::path> AllModels() {
  std::vector<fs::path> files = FilesBelow(DataFile("tests/formats/tflite"));
  if (const std::string shared = SharedFolder(); !shared.empty()) {
    for (const fs::path& file : FilesBelow(fs::path(shared) / "models_tflite")) files.push_back(file);
  }
  return files;
}

absl::StatusOr<std::string> Written(const Graph& graph) {
  SaveOptions save;
  save.format = "tflite";
  StringSink sink;
  const absl::Status status = WriteModel(graph, save, &sink);
  if (!status.ok()) return status;
  return std::string(sink.text());
}

absl::StatusOr<std::unique_ptr<Graph>> Read(const std::string& bytes) {
  auto owned = std::make_shared<const std::string>(bytes);
  return ReadModel(FileView{*owned, owned});
}

void Transform(absl::string_view transforms, std::unique_ptr<Graph>* graph) {
  const KernelEvaluator evaluator;
  PassContext context;
  context.evaluator = &evaluator;
  const auto calls = ParseTransforms(transforms);
  ASSERT_TRUE(calls.ok()) << calls.status();
  const auto reports = RunPipeline(graph, *calls, &context);
  ASSERT_TRUE(reports.ok()) << reports.status();
}

// The number of operators in all subgraphs.
int NumOperators(absl::string_view bytes) {
  const auto container = TfliteContainer::Open(FileView{bytes, nullptr}, uint64_t{1} << 34);
  EXPECT_TRUE(container.ok()) << container.status();
  if (!container.ok()) return -1;
  int count = 0;
  for (const auto* subgraph : *container->model().subgraphs()) {
    count += subgraph->operators() == nullptr ? 0 : static_cast<int>(subgraph->operators()->size());
  }
  return count;
}

TfliteContainer Opened(const std::string& bytes) {
  auto owned = std::make_shared<const std::string>(bytes);
  return *TfliteContainer::Open(FileView{*owned, owned}, uint64_t{1} << 34);
}

TEST(TfliteRoundTrip, UnchangedModelsAreTheSameBytes) {
  int count = 0;
  for (const fs::path& file : AllModels()) {
    SCOPED_TRACE(file.string());
    const auto graph = OpenModel(RealFileSystem(), file.string());
    if (!graph.ok()) {
      std::cout << file << ": " << graph.status() << "\n";
      continue;
    }
    EXPECT_TRUE(Validate(**graph).ok()) << Validate(**graph);
    const auto original = RealFileSystem().ReadFile(file.string());
    ASSERT_TRUE(original.ok());
    // Clones share the source.
    const auto written = Written(*(*graph)->Clone());
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_TRUE(*written == *original);
    ++count;
  }
  std::cout << count << " models\n";
  EXPECT_GE(count, 10);
}

// New names change no operator, so all are written as they were, with the same results.
TEST(TfliteRoundTrip, OperatorsSurviveNewNames) {
  int count = 0;
  for (const fs::path& file : AllModels()) {
    SCOPED_TRACE(file.string());
    auto graph = OpenModel(RealFileSystem(), file.string());
    if (!graph.ok()) continue;
    const auto original = RealFileSystem().ReadFile(file.string());
    Transform("obfuscate_names", &*graph);
    const auto kept = (*graph)->Clone();
    const auto operators = KeepOperators(kept.get());
    ASSERT_TRUE(operators.ok()) << operators.status();
    EXPECT_TRUE(Validate(*kept).ok()) << Validate(*kept);
    if (operators->kept != operators->total) {
      std::cout << file << ": " << operators->kept << " of " << operators->total << " operators\n";
    }
    const auto written = Written(**graph);
    if (!written.ok()) {
      ADD_FAILURE() << written.status();
      continue;
    }
    EXPECT_LE(written->size(), original->size() * 1.02 + 4096) << NumOperators(*original);
    const auto again = Read(*written);
    EXPECT_TRUE(again.ok()) << again.status();
    // Runtimes take a tensor with data, even without bytes, for a constant, also in subgraphs that were copied.
    const TfliteContainer container = Opened(*written);
    for (const auto* subgraph : *container.model().subgraphs()) {
      if (subgraph->tensors() == nullptr || *written == *original) continue;
      for (const auto* tensor : *subgraph->tensors()) {
        const bool has_data = container.model().buffers()->Get(tensor->buffer())->data() != nullptr;
        EXPECT_TRUE(!has_data || container.IsConstant(*tensor)) << tensor->name()->str();
      }
    }
    ++count;
  }
  EXPECT_GE(count, 10);
}

bool HasVariables(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kVarHandleOp || node->op() == ops::kHashTableV2) return true;
  }
  return false;
}

// Expects the same outputs from two runs, the second of which starts with the variables that the first leaves.
void ExpectSameRuns(const Graph& expected, const Graph& actual) {
  const auto texts = [](const std::vector<Endpoint>& endpoints) {
    std::vector<std::string> names;
    for (const Endpoint& endpoint : endpoints) names.push_back(endpoint.text);
    return names;
  };
  const auto feeds = SeededInputs(expected.inputs(), {}, 1);
  ASSERT_TRUE(feeds.ok()) << feeds.status();
  std::vector<std::vector<Tensor>> results;
  for (const Graph* graph : {&expected, &actual}) {
    const auto session = Session::Create(*graph, texts(graph->inputs()), texts(graph->outputs()));
    ASSERT_TRUE(session.ok()) << session.status();
    for (int run = 0; run < 2; ++run) {
      auto outputs = (*session)->Run(*feeds);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      results.push_back(*std::move(outputs));
    }
  }
  for (size_t run = 0; run < 2; ++run) {
    ASSERT_EQ(results[run].size(), results[run + 2].size());
    for (size_t i = 0; i < results[run].size(); ++i) EXPECT_EQ(results[run][i], results[run + 2][i]) << run << " " << i;
  }
}

// Initial values are found by the structure of the graph, whatever the names, and operators that read and change
// variables keep their places between each other.
TEST(TfliteRoundTrip, VariablesSurviveNewNames) {
  int count = 0;
  for (const fs::path& file : AllModels()) {
    SCOPED_TRACE(file.string());
    auto graph = OpenModel(RealFileSystem(), file.string());
    if (!graph.ok() || !HasVariables(**graph)) continue;
    const auto original = (*graph)->Clone();
    Transform("obfuscate_names", &*graph);
    const auto operators = KeepOperators((*graph)->Clone().get());
    ASSERT_TRUE(operators.ok()) << operators.status();
    const auto written = Written(**graph);
    ASSERT_TRUE(written.ok()) << written.status();
    const auto again = Read(*written);
    ASSERT_TRUE(again.ok()) << again.status();
    // Inputs of strings and functions with open shapes cannot be made up.
    if (SeededInputs(original->inputs(), {}, 1).ok()) ExpectSameRuns(*original, **again);
    ++count;
  }
  EXPECT_GE(count, 5);
}

// Handles are not kept as they are if the file's initialiser is not: the new value would be lost.
TEST(TfliteRoundTrip, ChangedInitialValuesAreWritten) {
  const std::string file = DataFile("tests/formats/tflite/variables_reset/model.tflite");
  auto graph = OpenModel(RealFileSystem(), file);
  ASSERT_TRUE(graph.ok()) << graph.status();
  int changed = 0;
  for (Node* node = (*graph)->first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kAssignVariableOp || !absl::EndsWith(node->name(), "/Assign")) continue;
    Node* value = node->input(1).node;
    ASSERT_EQ(value->op(), Op(ops::kConst));
    value->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector(Shape({2}), std::vector<float>{40, -7})));
    ++changed;
    break;
  }
  ASSERT_EQ(changed, 1);
  const auto written = Written(**graph);
  ASSERT_TRUE(written.ok()) << written.status();
  const auto again = Read(*written);
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectSameRuns(**graph, **again);
}

// A model with an operator that nothing knows: z = RELU6(x + c) behind 'Mystery'(., w), with a signature and an
// archive.
std::string MysteryModel() {
  using namespace tflite;  // NOLINT
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<int32_t> shape = {4};
  const auto tensor = [&](const char* name, uint32_t buffer) {
    return CreateTensor(builder, builder.CreateVector(shape), TensorType::FLOAT32, buffer, builder.CreateString(name));
  };
  const std::vector<float> values = {1, 2, 3, 4}, weights = {5, 6, 7, 8};
  const auto data = [&](const std::vector<float>& numbers) {
    builder.ForceVectorAlignment(4 * numbers.size(), 1, 16);
    return CreateBuffer(builder, builder.CreateVector(reinterpret_cast<const uint8_t*>(numbers.data()), 16));
  };
  const std::vector<flatbuffers::Offset<Buffer>> buffers = {CreateBuffer(builder), data(values), data(weights)};
  const std::vector<flatbuffers::Offset<tflite::Tensor>> tensors = {tensor("the x:0", 0), tensor("c", 1),
                                                                    tensor("sum", 0), tensor("w", 2), tensor("z:0", 0)};
  const auto add_options = CreateAddOptions(builder, ActivationFunctionType::RELU6);
  const std::vector<uint8_t> options = {1, 2, 3};
  const std::vector<flatbuffers::Offset<Operator>> operators = {
      CreateOperator(builder, 0, builder.CreateVector(std::vector<int32_t>{0, 1}),
                     builder.CreateVector(std::vector<int32_t>{2}), BuiltinOptions::AddOptions, add_options.Union()),
      CreateOperator(builder, 1, builder.CreateVector(std::vector<int32_t>{2, -1, 3}),
                     builder.CreateVector(std::vector<int32_t>{4}), BuiltinOptions::NONE, 0,
                     builder.CreateVector(options))};
  const std::vector<flatbuffers::Offset<OperatorCode>> codes = {
      CreateOperatorCode(builder, 0, 0, 1, BuiltinOperator::ADD),
      CreateOperatorCode(builder, 32, builder.CreateString("Mystery"), 7, BuiltinOperator::CUSTOM)};
  const auto subgraph =
      CreateSubGraph(builder, builder.CreateVector(tensors), builder.CreateVector(std::vector<int32_t>{0}),
                     builder.CreateVector(std::vector<int32_t>{4}), builder.CreateVector(operators));
  const std::vector<flatbuffers::Offset<TensorMap>> inputs = {
      CreateTensorMap(builder, builder.CreateString("image"), 0)};
  const std::vector<flatbuffers::Offset<TensorMap>> outputs = {
      CreateTensorMap(builder, builder.CreateString("scores"), 4)};
  const auto signature = CreateSignatureDef(builder, builder.CreateVector(inputs), builder.CreateVector(outputs),
                                            builder.CreateString("run"), 0);
  FinishModelBuffer(builder, CreateModel(builder, 3, builder.CreateVector(codes), builder.CreateVector(&subgraph, 1),
                                         builder.CreateString("a test"), builder.CreateVector(buffers), 0, 0,
                                         builder.CreateVector(&signature, 1)));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()) +
         *MakeArchive({{"labels.txt", "cat\ndog\n"}});
}

// Expects the operator Mystery with everything that belongs to it.
void ExpectMystery(const TfliteContainer& container) {
  const auto& operators = *container.subgraph(0).operators();
  ASSERT_EQ(operators.size(), 2u);
  const tflite::Operator& op = *operators.Get(1);
  EXPECT_EQ(container.CustomName(op), "Mystery");
  EXPECT_EQ(container.model().operator_codes()->Get(op.opcode_index())->version(), 7);
  ASSERT_EQ(op.inputs()->size(), 3u);
  EXPECT_EQ(op.inputs()->Get(1), -1);
  ASSERT_NE(op.custom_options(), nullptr);
  EXPECT_EQ(std::vector<uint8_t>(op.custom_options()->begin(), op.custom_options()->end()),
            (std::vector<uint8_t>{1, 2, 3}));
  const auto weights = container.Stored(container.tensor(0, op.inputs()->Get(2)));
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->elements<float>()[0], 5);
}

TEST(CarriedOperators, SurviveOtherFormats) {
  auto graph = Read(MysteryModel());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Node* mystery = (*graph)->Find("z");
  ASSERT_NE(mystery, nullptr);
  EXPECT_EQ(mystery->op().name(), "TFLite:Mystery");
  // The attributes that kernels from libraries read. Operand 1 is omitted.
  EXPECT_EQ(StringAttr(*mystery, "custom_options").value_or(""), std::string("\1\2\3"));
  EXPECT_EQ(IntListAttr(*mystery, "operands").value_or(std::vector<int64_t>()), (std::vector<int64_t>{0, 2}));
  StringSink pb;
  ASSERT_TRUE(WriteGraphDef(**graph, &pb).ok());
  auto owned = std::make_shared<const std::string>(pb.text());
  auto again = ReadModel(FileView{*owned, owned});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(TfliteSourceOf(**again), nullptr);
  ASSERT_TRUE((*again)->DeclareInterface({"the_x"}, {"z"}).ok());
  const auto written = Written(**again);
  ASSERT_TRUE(written.ok()) << written.status();
  ExpectMystery(Opened(*written));
}

TEST(CarriedOperators, RunningOneIsAnError) {
  const auto graph = Read(MysteryModel());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto session = Session::Create(**graph, {"the_x"}, {"z"});
  ASSERT_FALSE(session.ok());
  EXPECT_TRUE(absl::StrContains(session.status().message(), "TFLite:Mystery")) << session.status();
}

TEST(CarriedOperators, MalformedDescriptionsAreErrors) {
  auto graph = Read(MysteryModel());
  ASSERT_TRUE(graph.ok()) << graph.status();
  Node* mystery = (*graph)->Find("z");
  const std::string model(*StringAttr(*mystery, "model"));
  for (size_t i = 0; i < model.size(); ++i) {
    for (const char flip : {'\x01', '\x7f', '\xff'}) {
      std::string damaged = model;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      mystery->SetAttr("model", AttrValue::String(damaged));
      Written(**graph).status().IgnoreError();  // Any outcome but a crash.
    }
    mystery->SetAttr("model", AttrValue::String(model.substr(0, i)));
    EXPECT_FALSE(Written(**graph).ok()) << i;
  }
}

TEST(TfliteRoundTrip, EditsKeepNamesSignatureAndArchive) {
  auto graph = Read(MysteryModel());
  ASSERT_TRUE(graph.ok()) << graph.status();
  // The last node of ADD: its operator is written anew, the other as it was.
  Node* last = (*graph)->Find("sum");
  ASSERT_NE(last, nullptr);
  ASSERT_EQ(last->op(), Op(ops::kRelu6));
  last->set_op(ops::kRelu);
  const auto kept = KeepOperators((*graph)->Clone().get());
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->kept, 1);
  EXPECT_EQ(kept->total, 2);
  const auto written = Written(**graph);
  ASSERT_TRUE(written.ok()) << written.status();
  const TfliteContainer container = Opened(*written);
  ExpectMystery(container);
  const tflite::Operator& add = *container.subgraph(0).operators()->Get(0);
  ASSERT_NE(add.builtin_options_as<tflite::AddOptions>(), nullptr);
  EXPECT_EQ(add.builtin_options_as<tflite::AddOptions>()->fused_activation_function(),
            tflite::ActivationFunctionType::RELU);
  EXPECT_EQ(container.tensor(0, container.subgraph(0).inputs()->Get(0)).name()->str(), "the x:0");
  EXPECT_EQ(container.tensor(0, container.subgraph(0).outputs()->Get(0)).name()->str(), "z:0");
  const auto facts = ReadTfliteFacts(*TfliteSourceOf(**Read(*written)));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->description, "a test");
  ASSERT_EQ(facts->signatures.size(), 1u);
  EXPECT_EQ(facts->signatures[0].key, "run");
  EXPECT_EQ(facts->signatures[0].inputs[0].first, "image");
  EXPECT_EQ(facts->signatures[0].outputs[0].first, "scores");
  const auto labels = ReadLabels(*TfliteSourceOf(**Read(*written)), 1000);
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(*labels, "cat\ndog\n");
}

// An edit inside an operator is found although the node keeps its name.
TEST(TfliteRoundTrip, ChangedConstantsAreWritten) {
  auto graph = Read(MysteryModel());
  ASSERT_TRUE(graph.ok()) << graph.status();
  Node* constant = (*graph)->Find("c");
  ASSERT_NE(constant, nullptr);
  constant->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector(Shape({4}), std::vector<float>{9, 9, 9, 9})));
  const auto written = Written(**graph);
  ASSERT_TRUE(written.ok()) << written.status();
  const TfliteContainer container = Opened(*written);
  const tflite::Operator& add = *container.subgraph(0).operators()->Get(0);
  EXPECT_EQ(container.Stored(container.tensor(0, add.inputs()->Get(1)))->elements<float>()[0], 9);
}

TEST(TfliteSignatures, AreEntryPoints) {
  const auto graph = Read(MysteryModel());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto source = TfliteSourceOf(**graph);
  ASSERT_NE(source, nullptr);
  EXPECT_TRUE(OpenSignature(*source, "run").ok());
  const auto unknown = OpenSignature(*source, "walk");
  EXPECT_EQ(unknown.status().message(), "the model has no signature 'walk', expected 'run'");
}

// Files of inputs are named by arguments of the signature, by which users know the model, or by nodes.
TEST(TfliteSignatures, NameFilesOfInputs) {
  const auto graph = Read(MysteryModel());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::string path = testing::TempDir() + "/signature_input.npy";
  auto writer = RealFileSystem().NewWriter(path);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(WriteNpy(Tensor::FromVector(Shape({4}), std::vector<float>{1, 2, 3, 4}), writer->get()).ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  for (const char* name : {"image", "the_x"}) {
    const auto sets = ReadInputSets(RealFileSystem(), {absl::StrCat(name, "=", path)}, **graph);
    ASSERT_TRUE(sets.ok()) << sets.status();
    ASSERT_EQ(sets->size(), 1u);
    EXPECT_EQ((*sets)[0][0].elements<float>()[3], 4);
  }
  EXPECT_FALSE(ReadInputSets(RealFileSystem(), {absl::StrCat("scores=", path)}, **graph).ok());
}

TEST(TfliteMetadata, IsAdded) {
  const auto model = WithMetadata(MysteryModel(), {"names.txt", "a\nb\n", {1}, {2}});
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectMystery(Opened(*model));
  const auto facts = ReadTfliteFacts(*TfliteSourceOf(**Read(*model)));
  ASSERT_TRUE(facts.ok()) << facts.status();
  ASSERT_EQ(facts->inputs.size(), 1u);
  EXPECT_EQ(facts->inputs[0].mean, std::vector<float>{1});
  EXPECT_EQ(facts->inputs[0].std, std::vector<float>{2});
  EXPECT_EQ(*ReadLabels(*TfliteSourceOf(**Read(*model)), 1000), "a\nb\n");
}

TEST(Archive, DamageIsAnError) {
  const std::string archive = *MakeArchive({{"a.txt", "first"}, {"b.txt", "second"}});
  const auto found = FindArchive(archive);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->entries.size(), 2u);
  EXPECT_EQ(*ReadEntry(archive, found->entries[1], 100), "second");
  EXPECT_FALSE(ReadEntry(archive, found->entries[1], 5).ok());
  for (size_t i = 0; i < archive.size(); ++i) {
    std::string damaged = archive;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
    const auto result = FindArchive(damaged);
    if (!result.ok()) continue;
    for (const ArchiveEntry& entry : result->entries) ReadEntry(damaged, entry, 100).status().IgnoreError();
  }
  // Offsets from the start of the file.
  const std::string moved = MovedArchive(archive, 0, 0);
  EXPECT_EQ(moved, archive);
}

}  // namespace
}  // namespace permafrost
