// Tests of TensorFlow Lite models: outputs equal those of LiteRT's reference kernels, and damaged files are errors.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/validation/validate.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/npy.h"
#include "io/formats/tflite/operator_import.h"
#include "io/model_file.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/session.h"
#include "tests/shared_models.h"
#include "transforms/pipeline/pipeline.h"
#include "transforms/pipeline/presets.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;

// The guarantee for float models: |a - e| <= 1e-4 max(1, largest |e|), or twice the spread between LiteRT's own kernel
// sets if that is larger.
constexpr double kTolerance = 1e-4;
constexpr double kSpreadFactor = 2;
// The promise for integer outputs: the share of models whose outputs are equal bit by bit.
constexpr double kLeastEqual = 0.95;

// Reads an array of strings, which NumPy pickles (protocol 4): a list of bytes objects at the end of the file. Returns
// Unimplemented for lists with equal elements by reference, which the recorded files do not have.
absl::StatusOr<Tensor> ReadStrings(absl::string_view file) {
  const size_t shape_at = file.find("'shape': (");
  const size_t list_at = file.rfind("\x89]\x94");  // False, empty list, memoise.
  if (shape_at == absl::string_view::npos || list_at == absl::string_view::npos) {
    return absl::UnimplementedError("no array of strings");
  }
  std::vector<int64_t> dims;
  absl::string_view text = file.substr(shape_at + 10);
  for (const absl::string_view dim : absl::StrSplit(text.substr(0, text.find(')')), ',', absl::SkipWhitespace())) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(dim, &size)) return absl::DataLossError("bad shape");
    dims.push_back(size);
  }
  std::vector<std::string> strings;
  text = file.substr(list_at + 3);
  absl::ConsumePrefix(&text, "(");
  while (absl::ConsumePrefix(&text, "C")) {  // Bytes with a length of one byte.
    const size_t size = static_cast<unsigned char>(text.at(0));
    strings.emplace_back(text.substr(1, size));
    text.remove_prefix(1 + size);
    absl::ConsumePrefix(&text, "\x94");
  }
  const Shape shape(dims);
  if (shape.num_elements() != static_cast<int64_t>(strings.size())) return absl::UnimplementedError("other objects");
  return Tensor::FromStrings(shape, std::move(strings));
}

absl::StatusOr<Tensor> ReadArray(const fs::path& path) {
  PF_ASSIGN_OR_RETURN(const FileView file, RealFileSystem().MapFile(path.string()));
  if (absl::StrContains(file.bytes.substr(0, 128), "'descr': '|O'")) return ReadStrings(file.bytes);
  return ParseNpy(file.bytes, file.owner);
}

std::vector<fs::path> ModelsBelow(const fs::path& folder) {
  std::vector<fs::path> models;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.path().filename() == "model.tflite") models.push_back(entry.path().parent_path());
  }
  std::sort(models.begin(), models.end());
  return models;
}

enum class Outcome { kRan, kNotSupported, kNoSamples };

// The result of running the samples of one model.
struct Result {
  Outcome outcome = Outcome::kNoSamples;
  std::string reason;                      // Of kNotSupported.
  int64_t differing_codes = 0, codes = 0;  // Integers and bools of outputs that differ from LiteRT's, and all of them.
  double largest_code_difference = 0;
};

bool HoldsCodes(DType dtype) {
  return dtype != DType::kFloat && dtype != DType::kHalf && dtype != DType::kDouble && dtype != DType::kString;
}

int64_t NumDifferent(const Tensor& a, const Tensor& b) {
  const size_t size = SizeOf(a.dtype());
  int64_t count = 0;
  for (size_t i = 0; i < a.bytes().size(); i += size) count += a.bytes().substr(i, size) != b.bytes().substr(i, size);
  return count;
}

// Whether the samples of a model with recurrent operators are steps of one run, or each starts with fresh states.
// Samples of models with resource variables are always steps of one run.
enum class States : uint8_t { kKept, kFresh };

bool HasRecurrentOperators(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    for (const char* op : {"TFLiteLSTM", "TFLiteRNN", "TFLiteSVDF"}) {
      if (node->op().name() == op) return true;
    }
  }
  return false;
}

// Runs every recorded sample of the model, after `transforms` if there are any.
Result Check(const fs::path& folder, absl::string_view transforms = "", States states = States::kKept) {
  SCOPED_TRACE(folder.string());
  Result result;
  absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), (folder / "model.tflite").string());
  const auto not_supported = [&](const absl::Status& status) {
    result.outcome = Outcome::kNotSupported;
    result.reason = std::string(status.message());
    return result;
  };
  if (absl::IsUnimplemented(graph.status())) return not_supported(graph.status());
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return result;
  EXPECT_TRUE(Validate(**graph).ok()) << Validate(**graph);
  if (!transforms.empty()) {
    const auto parsed = ParsePipeline(transforms);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    const auto calls = ExpandPresets(*parsed);
    const KernelEvaluator evaluator;
    PassContext context;
    context.evaluator = &evaluator;
    const auto reports = RunPipeline(&*graph, *calls, &context);
    EXPECT_TRUE(reports.ok()) << reports.status();
  }
  std::vector<std::string> feeds, fetches;
  for (const Endpoint& input : (*graph)->inputs()) feeds.push_back(input.text);
  for (const Endpoint& output : (*graph)->outputs()) fetches.push_back(output.text);
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(**graph, feeds, fetches);
  // A model that needs an integer kernel which does not exist.
  if (absl::IsFailedPrecondition(session.status()) && transforms.empty()) return not_supported(session.status());
  if (absl::IsUnimplemented(session.status())) return not_supported(session.status());
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return result;
  const bool is_reset = states == States::kFresh && HasRecurrentOperators(**graph);
  int samples = 0;
  for (;; ++samples) {
    if (samples > 0 && is_reset) session = Session::Create(**graph, feeds, fetches);
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) break;
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < feeds.size(); ++i) {
      absl::StatusOr<Tensor> input = ReadArray(folder / absl::StrCat("input_", samples, "_", i, ".npy"));
      if (input.ok()) inputs.push_back(*std::move(input));
    }
    if (inputs.size() != feeds.size() || !fs::exists(folder / absl::StrCat("output_", samples, "_0.npy"))) break;
    const absl::StatusOr<std::vector<Tensor>> outputs = (*session)->Run(inputs);
    if (absl::IsUnimplemented(outputs.status())) return not_supported(outputs.status());
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) break;
    for (size_t i = 0; i < outputs->size(); ++i) {
      const absl::StatusOr<Tensor> expected = ReadArray(folder / absl::StrCat("output_", samples, "_", i, ".npy"));
      if (!expected.ok()) continue;
      const Tensor& actual = (*outputs)[i];
      if (expected->dtype() == DType::kString) {
        EXPECT_EQ(actual.shape(), expected->shape()) << "output " << i;
        EXPECT_EQ(actual.strings(), expected->strings()) << "output " << i;
        continue;
      }
      if (HoldsCodes(expected->dtype())) {
        EXPECT_EQ(actual.dtype(), expected->dtype()) << "output " << i;
        EXPECT_EQ(actual.shape(), expected->shape()) << "output " << i;
        if (actual.dtype() != expected->dtype() || actual.shape() != expected->shape()) continue;
        result.codes += actual.num_elements();
        result.differing_codes += NumDifferent(actual, *expected);
        result.largest_code_difference =
            std::max(result.largest_code_difference, CompareTensors(*expected, actual).max_abs);
        continue;
      }
      double tolerance = kTolerance;
      const absl::StatusOr<Tensor> other = ReadArray(folder / absl::StrCat("output_xnn_", samples, "_", i, ".npy"));
      if (other.ok()) tolerance = std::max(tolerance, kSpreadFactor * CompareTensors(*expected, *other).relative());
      EXPECT_EQ((*outputs)[i].shape(), expected->shape()) << "output " << i;
      EXPECT_LE(CompareTensors(*expected, (*outputs)[i]).relative(), tolerance)
          << "sample " << samples << ", output " << i;
    }
  }
  if (samples > 0) result.outcome = Outcome::kRan;
  return result;
}

// Every operator of the schema has a row or a reason for having none.
TEST(TfliteTest, OperatorsWithoutRowHaveReasons) {
  int with_row = 0;
  for (const tflite::BuiltinOperator op : tflite::EnumValuesBuiltinOperator()) {
    if (op == tflite::BuiltinOperator::CUSTOM) continue;
    const bool has_row = FindBuiltinOperator(op) != nullptr;
    with_row += has_row ? 1 : 0;
    EXPECT_NE(has_row, !WhyNoRow(op).empty()) << tflite::EnumNameBuiltinOperator(op);
  }
  EXPECT_GE(with_row, 169);
}

TEST(TfliteTest, RunsTheRecordedModels) {
  const std::vector<fs::path> models = ModelsBelow(DataFile("tests/formats/tflite"));
  ASSERT_GE(models.size(), 94u);
  for (const fs::path& model : models) {
    const Result result = Check(model);
    EXPECT_EQ(result.outcome, Outcome::kRan) << model << ": " << result.reason;
    EXPECT_EQ(result.differing_codes, 0) << model << ": of " << result.codes << " codes";
  }
}

// Passes see float ops; what they leave must still fuse to the same integer kernels.
TEST(TfliteTest, PresetsKeepIntegerArithmetic) {
  for (const fs::path& model : ModelsBelow(DataFile("tests/formats/tflite"))) {
    const Result result = Check(model, "optimize_for_inference");
    EXPECT_EQ(result.outcome, Outcome::kRan) << model << ": " << result.reason;
    EXPECT_EQ(result.differing_codes, 0) << model << ": of " << result.codes << " codes";
  }
}

TEST(TfliteTest, RunsTheSharedModels) {
  const std::string shared = SharedFolder();
  if (shared.empty() || !fs::exists(fs::path(shared) / "models_tflite")) GTEST_SKIP() << "no shared models";
  struct Group {
    int models = 0, ran = 0, with_codes = 0, equal = 0;
  };
  std::map<std::string, Group> groups;
  for (const fs::path& model : ModelsBelow(fs::path(shared) / "models_tflite")) {
    // A model that LiteRT refuses is an error here, too, or is read.
    if (!fs::exists(model / "output_0_0.npy")) {
      OpenModel(RealFileSystem(), (model / "model.tflite").string()).status().IgnoreError();
      continue;
    }
    const std::string parent = model.parent_path().filename().string();
    Group& group = groups[parent == "models_tflite" ? "whole models" : parent];
    const Result result = Check(model, "", States::kFresh);
    ++group.models;
    group.ran += result.outcome == Outcome::kRan ? 1 : 0;
    if (result.outcome == Outcome::kNotSupported) {
      std::cout << "not supported: " << model.string() << ": " << result.reason << "\n";
    } else if (result.codes > 0) {
      ++group.with_codes;
      group.equal += result.differing_codes == 0 ? 1 : 0;
      if (result.differing_codes == 0) continue;
      std::cout << "differs: " << model.string() << ": " << result.differing_codes << " of " << result.codes
                << " codes, by at most " << result.largest_code_difference << "\n";
      EXPECT_LE(result.largest_code_difference, 1) << model;
    }
  }
  for (const auto& [name, group] : groups) {
    std::cout << name << ": " << group.ran << " of " << group.models << " models ran; " << group.equal << " of "
              << group.with_codes << " with integer outputs are equal bit by bit\n";
    EXPECT_GE(group.equal, group.with_codes * kLeastEqual) << name;
  }
}

absl::Status StatusOfReading(const std::string& bytes) {
  const auto kept = std::make_shared<const std::string>(bytes);
  return ReadModel(FileView{*kept, kept}).status();
}

std::string BytesOf(const std::string& name) {
  const absl::StatusOr<FileView> file =
      RealFileSystem().MapFile(DataFile(absl::StrCat("tests/formats/tflite/", name, "/model.tflite")));
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? std::string(file->bytes) : "";
}

// A union with a type and no value is a valid FlatBuffer, which the object API cannot copy.
TEST(TfliteTest, OptionsWithoutAValueAreAnError) {
  using namespace tflite;  // NOLINT
  for (const bool has_type : {false, true}) {
    flatbuffers::FlatBufferBuilder builder;
    const std::vector<int32_t> in = {0}, out = {1};
    const std::vector<flatbuffers::Offset<tflite::Tensor>> tensors = {
        CreateTensor(builder, builder.CreateVector(in), TensorType::FLOAT32, 0, builder.CreateString("x")),
        CreateTensor(builder, builder.CreateVector(in), TensorType::FLOAT32, 0, builder.CreateString("y"))};
    const auto op = CreateOperator(builder, 0, builder.CreateVector(in), builder.CreateVector(out),
                                   has_type ? BuiltinOptions::AddOptions : BuiltinOptions::NONE);
    const auto code = CreateOperatorCode(builder, 8, 0, 1, BuiltinOperator::FLOOR);
    const auto graph = CreateSubGraph(builder, builder.CreateVector(tensors), builder.CreateVector(in),
                                      builder.CreateVector(out), builder.CreateVector(&op, 1));
    const auto buffer = CreateBuffer(builder);
    FinishModelBuffer(builder, CreateModel(builder, 3, builder.CreateVector(&code, 1), builder.CreateVector(&graph, 1),
                                           0, builder.CreateVector(&buffer, 1)));
    const absl::Status status =
        StatusOfReading(std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()));
    EXPECT_EQ(status.ok(), !has_type) << status;
    EXPECT_EQ(absl::StrContains(status.message(), "operator 0: has a type of options without a value"), has_type)
        << status;
  }
}

TEST(TfliteTest, TruncatedAnywhereIsAnError) {
  for (const char* name : {"control_flow", "dense_float_flattens"}) {
    const std::string bytes = BytesOf(name);
    for (size_t size = 8; size + 1 < bytes.size(); ++size) {
      const absl::Status status = StatusOfReading(bytes.substr(0, size));
      // The last bytes may be padding that nothing refers to.
      if (size + 16 < bytes.size()) {
        EXPECT_FALSE(status.ok()) << name << " cut to " << size << " bytes";
      }
      EXPECT_FALSE(absl::StrContains(status.message(), "\n"));
    }
  }
}

TEST(TfliteTest, FlippedBitsNeverCrash) {
  for (const char* name : {"control_flow", "l2_norm_composite", "dequantize_int4", "conv_float_dilated",
                           "conv_int8_per_channel", "concatenation_uint8_rescaling", "prelu_int8", "variables",
                           "string_table", "rnn_step", "svdf_int8", "detection_fast"}) {
    std::string bytes = BytesOf(name);
    for (size_t i = 8; i < bytes.size(); ++i) {
      const char original = bytes[i];
      for (const int mask : {1, 0x80, 0xff}) {
        bytes[i] = static_cast<char>(original ^ mask);
        const absl::Status status = StatusOfReading(bytes);
        EXPECT_FALSE(absl::StrContains(status.message(), "\n"));
      }
      bytes[i] = original;
    }
  }
}

}  // namespace
}  // namespace permafrost
