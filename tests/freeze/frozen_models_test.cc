// Freezes the models of models/, which make_models.py wrote, and compares the runtime's results with TensorFlow's.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "graph/base/status.h"
#include "graph/validation/validate.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/npy.h"
#include "io/formats/saved_model.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/session.h"
#include "tools/model/frozen_model.h"
#include "tools/model/model_flags.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// TensorFlow adds in another order.
constexpr double kTolerance = 1e-5;
constexpr char kModels[] = "tests/freeze/models";

std::string Folder(absl::string_view model) { return absl::StrCat(kModels, "/", model); }

FrozenModelRequest SavedModel(absl::string_view model) {
  FrozenModelRequest request;
  request.saved_model = Folder(model);
  request.tags = {"serve"};
  return request;
}

FrozenModelRequest Checkpoint(absl::string_view model, absl::string_view file) {
  FrozenModelRequest request;
  const std::string path = absl::StrCat(Folder(model), "/", file);
  (absl::EndsWith(file, ".meta") ? request.meta_graph : request.graph) = path;
  request.checkpoint = Folder(model) + "/model.ckpt";
  request.outputs = {"scores"};
  return request;
}

// Returns the recorded tensors of the case by name: "in.x" and "out.y".
std::map<std::string, Tensor> Recorded(absl::string_view model) {
  std::map<std::string, Tensor> tensors;
  for (const auto& entry : fs::directory_iterator(Folder(model) + "/case")) {
    const absl::StatusOr<FileView> file = RealFileSystem().MapFile(entry.path().string());
    EXPECT_TRUE(file.ok()) << file.status();
    const absl::StatusOr<Tensor> tensor = ParseNpy(file->bytes, file->owner);
    EXPECT_TRUE(tensor.ok()) << entry.path() << tensor.status();
    tensors.emplace(entry.path().stem().string(), *tensor);
  }
  return tensors;
}

// Returns the name of a tensor by its key in the signature, or the name itself.
std::string NameOf(const std::vector<SignatureTensor>* tensors, absl::string_view key) {
  for (size_t i = 0; tensors != nullptr && i < tensors->size(); ++i) {
    if ((*tensors)[i].key == key) return (*tensors)[i].name;
  }
  return std::string(key);
}

// Freezes the model, runs it and compares. `answers` is the prefix of the recorded outputs to compare with.
void ExpectTensorFlowsAnswers(absl::string_view model, const FrozenModelRequest& request,
                              absl::string_view answers = "out.") {
  SCOPED_TRACE(model);
  const absl::StatusOr<FrozenModel> frozen = OpenFrozenModel(RealFileSystem(), request);
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_TRUE(Validate(*frozen->graph).ok()) << Validate(*frozen->graph);
  EXPECT_TRUE(ValidateFunctions(*frozen->graph).ok()) << ValidateFunctions(*frozen->graph);
  for (const Node* node = frozen->graph->first(); node != nullptr; node = node->next()) {
    EXPECT_FALSE(absl::StrContains(node->op().name(), "Var")) << node->Describe();
  }
  const Signature* signature = frozen->signature.has_value() ? &*frozen->signature : nullptr;
  std::vector<std::string> feeds, fetches;
  std::vector<Tensor> inputs, expected;
  for (const auto& [name, tensor] : Recorded(model)) {
    absl::string_view key = name;
    if (absl::ConsumePrefix(&key, "in.")) {
      feeds.push_back(NameOf(signature == nullptr ? nullptr : &signature->inputs, key));
      inputs.push_back(tensor);
    } else if (absl::ConsumePrefix(&key, answers)) {
      fetches.push_back(NameOf(signature == nullptr ? nullptr : &signature->outputs, key));
      expected.push_back(tensor);
    }
  }
  ASSERT_FALSE(expected.empty());
  const auto session = Session::Create(*frozen->graph, feeds, fetches);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto outputs = (*session)->Run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  for (size_t i = 0; i < expected.size(); ++i) {
    OutputDifference difference = CompareTensors(expected[i], (*outputs)[i]);
    difference.scale_floor = 1;  // Results below one may differ by the tolerance itself.
    EXPECT_TRUE(difference.IsWithin(kTolerance)) << fetches[i] << ": " << difference.ToString();
  }
}

std::string Error(const FrozenModelRequest& request) {
  return std::string(OpenFrozenModel(RealFileSystem(), request).status().message());
}

// A copy of a SavedModel without the files in `leave_out`, with the given `saved_model.pb`.
class BrokenModel {
 public:
  explicit BrokenModel(absl::string_view model) {
    std::string pattern = testing::TempDir() + "/freezeXXXXXX";
    path_ = mkdtemp(pattern.data());
    fs::copy(Folder(model), path_, fs::copy_options::recursive);
  }
  ~BrokenModel() { fs::remove_all(path_); }

  void Write(absl::string_view file, absl::string_view bytes) {
    fs::remove(absl::StrCat(path_, "/", file));
    std::ofstream out(absl::StrCat(path_, "/", file), std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string Read(absl::string_view file) { return *RealFileSystem().ReadFile(absl::StrCat(path_, "/", file)); }
  void Remove(absl::string_view file) { fs::remove_all(absl::StrCat(path_, "/", file)); }
  const std::string& path() const { return path_; }
  absl::Status Open() {
    FrozenModelRequest request;
    request.saved_model = path_;
    request.tags = {"serve"};
    return OpenFrozenModel(RealFileSystem(), request).status();
  }

 private:
  std::string path_;
};

TEST(FrozenModelsTest, CheckpointsOfTensorFlow1) {
  ExpectTensorFlowsAnswers("tf1_checkpoint_v1", Checkpoint("tf1_checkpoint_v1", "graph.pbtxt"));
  ExpectTensorFlowsAnswers("tf1_checkpoint_v1", Checkpoint("tf1_checkpoint_v1", "model.ckpt.meta"));
  ExpectTensorFlowsAnswers("tf1_checkpoint_v2", Checkpoint("tf1_checkpoint_v2", "graph.pb"));
  ExpectTensorFlowsAnswers("tf1_checkpoint_v2", Checkpoint("tf1_checkpoint_v2", "model.ckpt.meta"));
}

TEST(FrozenModelsTest, PartitionedVariables) {
  ExpectTensorFlowsAnswers("tf1_partitioned", Checkpoint("tf1_partitioned", "graph.pb"));
  ExpectTensorFlowsAnswers("tf1_partitioned", Checkpoint("tf1_partitioned", "model.ckpt.meta"));
}

TEST(FrozenModelsTest, MovingAverages) {
  FrozenModelRequest request = Checkpoint("tf1_average", "model.ckpt.meta");
  ExpectTensorFlowsAnswers("tf1_average", request);
  request.options.naming.average_suffix = "/ExponentialMovingAverage";
  ExpectTensorFlowsAnswers("tf1_average", request, "average.");
}

TEST(FrozenModelsTest, SavedModels) {
  for (const char* model : {"tf1_saved_model", "tf2_cnn", "tf2_lstm", "tf2_transformer", "tf2_control_flow"}) {
    FrozenModelRequest request = SavedModel(model);
    ExpectTensorFlowsAnswers(model, request);
    request.options.inline_calls = false;
    ExpectTensorFlowsAnswers(model, request);
  }
}

TEST(FrozenModelsTest, MessagesAsText) {
  BrokenModel text("tf2_control_flow");
  text.Remove("saved_model.pb");
  text.Write("saved_model.pbtxt", *RealFileSystem().ReadFile(Folder("text/tf2_control_flow.pbtxt")));
  FrozenModelRequest request = SavedModel("tf2_control_flow");
  request.saved_model = text.path();
  ExpectTensorFlowsAnswers("tf2_control_flow", request);

  request = Checkpoint("tf1_partitioned", "model.ckpt.meta");
  request.meta_graph = Folder("text/tf1_partitioned.meta");
  ExpectTensorFlowsAnswers("tf1_partitioned", request);
  request = Checkpoint("tf1_partitioned", "graph.pb");
  request.saver = Folder("text/tf1_partitioned.saver");
  ExpectTensorFlowsAnswers("tf1_partitioned", request);
}

TEST(FrozenModelsTest, ToolsTakeSavedModelFolders) {
  std::ostringstream out, err;
  Console console = {out, err};
  const auto graph = OpenModelFile(RealFileSystem(), Folder("tf2_control_flow"), {}, console);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> inputs, outputs;
  for (const Endpoint& input : (*graph)->inputs()) inputs.push_back(input.text);
  for (const Endpoint& output : (*graph)->outputs()) outputs.push_back(output.text);
  EXPECT_THAT(inputs, ElementsAre("n", "x"));
  EXPECT_THAT(outputs, ElementsAre("total", "y"));
  EXPECT_EQ(err.str(), "");
  ReadFlags read;
  read.signature = "serve";
  EXPECT_THAT(
      std::string(OpenModelFile(RealFileSystem(), Folder("tf2_control_flow"), read, console).status().message()),
      HasSubstr("there is no signature 'serve', found 'serving_default'"));
  ASSERT_TRUE(OpenModelFile(RealFileSystem(), Folder("tf2_table"), {}, console).ok());
  EXPECT_EQ(err.str(), "");
}

// Returns the only output of the frozen model for these words, from the second of two runs.
absl::StatusOr<Tensor> LookUp(const FrozenModelRequest& request, std::vector<std::string> words) {
  PF_ASSIGN_OR_RETURN(const FrozenModel frozen, OpenFrozenModel(RealFileSystem(), request));
  EXPECT_THAT(frozen.report.notes, ElementsAre());
  EXPECT_TRUE(Validate(*frozen.graph).ok()) << Validate(*frozen.graph);
  PF_ASSIGN_OR_RETURN(const auto session, Session::Create(*frozen.graph, {frozen.signature->inputs[0].name},
                                                          {frozen.signature->outputs[0].name}));
  const Tensor input = Tensor::FromStrings(Shape({static_cast<int64_t>(words.size())}), words);
  PF_RETURN_IF_ERROR(session->Run({input}).status());
  PF_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({input}));
  return outputs[0];
}

TEST(FrozenModelsTest, TablesKeepTheirEntries) {
  for (const bool inlines : {true, false}) {
    FrozenModelRequest request = SavedModel("tf2_table");
    request.options.inline_calls = inlines;
    const absl::StatusOr<Tensor> rows = LookUp(request, {"blue", "pink", "red"});
    ASSERT_TRUE(rows.ok()) << rows.status();
    // Results of TensorFlow.
    const std::vector<float> expected = {-0.45467079f, -0.99164653f,  0.060143601f,
                                         1.3402152f,   0.0012301534f, 0.29874554f};
    EXPECT_TRUE(CompareTensors(Tensor::FromVector(Shape({3, 2}), expected), *rows).IsWithin(kTolerance));
  }
}

TEST(FrozenModelsTest, TablesAreFilledFromAssetFiles) {
  for (const bool inlines : {true, false}) {
    FrozenModelRequest request = SavedModel("tf2_asset_table");
    request.options.inline_calls = inlines;
    const absl::StatusOr<Tensor> ids = LookUp(request, {"green", "pink", "light blue"});
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, Tensor::FromVector<int64_t>(Shape({3}), {2, -1, 1}));
  }
}

TEST(FrozenModelsTest, AssetFilesLieInTheModelsFolder) {
  BrokenModel model("tf2_asset_table");
  std::string bytes = model.Read("saved_model.pb");
  // The same length, so that the sizes in the file hold.
  for (size_t at; (at = bytes.find("vocabulary.txt")) != std::string::npos;) bytes.replace(at, 14, "../abulary.txt");
  model.Write("saved_model.pb", bytes);
  FrozenModelRequest request = SavedModel("tf2_asset_table");
  request.saved_model = model.path();
  EXPECT_THAT(Error(request),
              HasSubstr("found the asset '../abulary.txt', expected a path within the folder 'assets'"));
}

// The line numbers of the file begin at 1.
TEST(FrozenModelsTest, LineNumbersOfAssetFilesHaveAnOffset) {
  for (const bool inlines : {true, false}) {
    FrozenModelRequest request = SavedModel("tf2_asset_offset");
    request.options.inline_calls = inlines;
    const absl::StatusOr<FrozenModel> frozen = OpenFrozenModel(RealFileSystem(), request);
    ASSERT_TRUE(frozen.ok()) << frozen.status();
    const auto session =
        Session::Create(*frozen->graph, {frozen->signature->inputs[0].name}, {frozen->signature->outputs[0].name});
    ASSERT_TRUE(session.ok()) << session.status();
    const auto ids = (*session)->Run({Tensor::FromStrings(Shape({2, 2}), {"green", "pink", "red", "light blue"})});
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ((*ids)[0], Tensor::FromVector<int64_t>(Shape({2, 2}), {3, 0, 1, 2}));
  }
}

// Runs the frozen graph three times in one session and compares with three calls of TensorFlow.
void ExpectRecordedCalls(absl::string_view model, const Graph& graph) {
  const std::map<std::string, Tensor> recorded = Recorded(model);
  std::vector<std::string> feeds, fetches;
  std::vector<Tensor> inputs;
  for (const auto& [name, tensor] : recorded) {
    absl::string_view key = name;
    if (absl::ConsumePrefix(&key, "in.")) {
      feeds.emplace_back(key);
      inputs.push_back(tensor);
    } else if (absl::ConsumePrefix(&key, "out.")) {
      fetches.emplace_back(key);
    }
  }
  const auto session = Session::Create(graph, feeds, fetches);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const char* call : {"out.", "call_1.", "call_2."}) {
    const auto outputs = (*session)->Run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    for (size_t i = 0; i < fetches.size(); ++i) {
      const Tensor& expected = recorded.at(absl::StrCat(call, fetches[i]));
      OutputDifference difference = CompareTensors(expected, (*outputs)[i]);
      difference.scale_floor = 1;
      EXPECT_TRUE(difference.IsWithin(kTolerance)) << call << fetches[i] << ": " << difference.ToString();
    }
  }
}

TEST(FrozenModelsTest, VariablesThatOutputsChangeKeepTheirState) {
  for (const char* model : {"tf2_state", "tf2_random_layers"}) {
    for (const bool inlines : {true, false}) {
      SCOPED_TRACE(absl::StrCat(model, inlines ? ", inlined" : ""));
      FrozenModelRequest request = SavedModel(model);
      request.options.inline_calls = inlines;
      const absl::StatusOr<FrozenModel> frozen = OpenFrozenModel(RealFileSystem(), request);
      ASSERT_TRUE(frozen.ok()) << frozen.status();
      EXPECT_TRUE(Validate(*frozen->graph).ok()) << Validate(*frozen->graph);
      ASSERT_EQ(frozen->report.notes.size(), 1);
      EXPECT_THAT(frozen->report.notes[0], HasSubstr("kept as variables"));
      ExpectRecordedCalls(model, *frozen->graph);
      // A new session starts from the initial values.
      ExpectRecordedCalls(model, *frozen->graph);
    }
  }
}

// Weights become constants, and so does an average that only training reads.
TEST(FrozenModelsTest, OnlyVariablesThatOutputsChangeAreKept) {
  const absl::StatusOr<FrozenModel> frozen = OpenFrozenModel(RealFileSystem(), SavedModel("tf2_state"));
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_THAT(frozen->report.stateful, ElementsAre("count", "state"));
  ASSERT_EQ(frozen->report.variables.size(), 1);
  EXPECT_EQ(frozen->report.variables[0].node, "weights");
  EXPECT_EQ(frozen->graph->Find("average"), nullptr);
}

// Every read gives the saved value, 0, also behind the assignment.
TEST(FrozenModelsTest, AssignmentsAreDropped) {
  for (const bool inlines : {true, false}) {
    FrozenModelRequest request = SavedModel("tf2_assigns");
    request.options.inline_calls = inlines;
    request.options.drop_assignments = true;
    const absl::StatusOr<FrozenModel> frozen = OpenFrozenModel(RealFileSystem(), request);
    ASSERT_TRUE(frozen.ok()) << frozen.status();
    EXPECT_THAT(frozen->report.notes, ElementsAre());
    EXPECT_THAT(frozen->report.stateful, ElementsAre());
    const auto session = Session::Create(*frozen->graph, {"x"}, {"y"});
    ASSERT_TRUE(session.ok()) << session.status();
    for (int run = 0; run < 2; ++run) {
      const auto outputs = (*session)->Run({Tensor::FromVector<float>(Shape({2}), {1, 2})});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_EQ((*outputs)[0], Tensor::FromVector<float>(Shape({2}), {0, 0}));
    }
  }
}

TEST(FrozenModelsTest, UnknownOpsInFunctionsAreCarried) {
  for (const bool inlines : {true, false}) {
    FrozenModelRequest request = SavedModel("tf2_unknown_op");
    request.options.inline_calls = inlines;
    const absl::StatusOr<FrozenModel> frozen = OpenFrozenModel(RealFileSystem(), request);
    ASSERT_TRUE(frozen.ok()) << frozen.status();
    EXPECT_TRUE(ValidateFunctions(*frozen->graph).ok()) << ValidateFunctions(*frozen->graph);
    EXPECT_THAT(std::string(frozen->graph->library()), HasSubstr("BesselJ0"));
    EXPECT_THAT(std::string(frozen->graph->library()), testing::Not(HasSubstr("\x12\x0e"
                                                                              "ReadVariableOp")));
    EXPECT_EQ(frozen->report.variables.size(), 1);
    EXPECT_THAT(frozen->report.notes, ElementsAre());
  }
}

TEST(FrozenModelsTest, Errors) {
  FrozenModelRequest request = SavedModel("tf2_cnn");
  request.tags = {"gpu"};
  EXPECT_EQ(Error(request),
            "'tests/freeze/models/tf2_cnn/saved_model.pb': no meta graph has the tags 'gpu', found 'serve'");
  EXPECT_THAT(Error(SavedModel("nothing")), HasSubstr("tests/freeze/models/nothing"));
  request = Checkpoint("tf1_checkpoint_v2", "graph.pb");
  request.outputs = {"score"};
  EXPECT_THAT(Error(request), HasSubstr("did you mean 'scores'"));
  request.outputs = {};
  EXPECT_THAT(Error(request), HasSubstr("--output_node_names is missing"));
  request = Checkpoint("tf1_checkpoint_v2", "graph.pb");
  request.checkpoint = "";
  EXPECT_THAT(Error(request), HasSubstr("--input_checkpoint is missing"));
  request.checkpoint = Folder("tf2_cnn") + "/variables/variables";
  EXPECT_THAT(Error(request), HasSubstr("the checkpoint has no value for variable 'net/"));
}

TEST(BrokenSavedModelTest, FilesThatAreMissing) {
  for (const char* file :
       {"saved_model.pb", "variables", "variables/variables.index", "variables/variables.data-00000-of-00001"}) {
    BrokenModel broken("tf2_transformer");
    broken.Remove(file);
    const absl::Status status = broken.Open();
    EXPECT_FALSE(status.ok()) << file;
    EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("\n"))) << file;
  }
}

// Truncated anywhere, or with any bit flipped, the file must be rejected or give a graph, without a crash.
TEST(BrokenSavedModelTest, DamagedProtobuf) {
  BrokenModel broken("tf2_assigns");
  const std::string whole = broken.Read("saved_model.pb");
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    const std::vector<std::string> tags = {"serve"};
    EXPECT_FALSE(ReadSavedModel({cut, nullptr}, false, tags).ok()) << size;
  }
  std::string flipped = whole;
  for (size_t bit = 0; bit < 8 * whole.size(); bit += 3) {
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    (void)ReadSavedModel({flipped, nullptr}, false, {});
    flipped[bit / 8] = whole[bit / 8];
  }
}

// Truncated anywhere, the text must be rejected with the line, or give a graph without the missing part.
TEST(BrokenSavedModelTest, DamagedText) {
  const std::string whole = *RealFileSystem().ReadFile(Folder("text/tf1_partitioned.meta"));
  for (size_t size = 0; size < whole.size(); size += 97) {
    const std::string cut = whole.substr(0, size);
    const absl::StatusOr<MetaGraph> meta = ReadMetaGraph({cut, nullptr}, true);
    EXPECT_FALSE(absl::StrContains(meta.status().message(), "\n")) << size;
  }
  EXPECT_THAT(std::string(ReadMetaGraph({"graph_def { node { name: 3 } }", nullptr}, true).status().message()),
              HasSubstr("line 1, column"));
  EXPECT_THAT(std::string(ReadMetaGraph({"graph_def { node {", nullptr}, true).status().message()),
              HasSubstr("line 1"));
  EXPECT_THAT(std::string(ReadSavedModel({"saved_model_schema_version: 7", nullptr}, true, {}).status().message()),
              HasSubstr("schema version 7"));
  BrokenModel empty("tf2_assigns");
  empty.Remove("saved_model.pb");
  empty.Write("saved_model.pbtxt", "");
  EXPECT_THAT(std::string(empty.Open().message()), HasSubstr("saved_model.pbtxt"));
}

}  // namespace
}  // namespace permafrost
