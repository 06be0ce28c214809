// Tests of TensorFlow Lite models: outputs equal those of LiteRT's reference kernels, and damaged files are errors.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/validation/validate.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/npy.h"
#include "io/model_file.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/session.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;

// The guarantee for float models: |a - e| <= 1e-4 max(1, largest |e|), or twice the spread between LiteRT's own kernel
// sets if that is larger.
constexpr double kTolerance = 1e-4;
constexpr double kSpreadFactor = 2;

absl::StatusOr<Tensor> ReadArray(const fs::path& path) {
  PF_ASSIGN_OR_RETURN(const FileView file, RealFileSystem().MapFile(path.string()));
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

// Runs every recorded sample of the model.
Outcome Check(const fs::path& folder) {
  SCOPED_TRACE(folder.string());
  const absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), (folder / "model.tflite").string());
  if (absl::IsUnimplemented(graph.status())) return Outcome::kNotSupported;
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return Outcome::kNoSamples;
  EXPECT_TRUE(Validate(**graph).ok()) << Validate(**graph);
  std::vector<std::string> feeds, fetches;
  for (const Endpoint& input : (*graph)->inputs()) feeds.push_back(input.text);
  for (const Endpoint& output : (*graph)->outputs()) fetches.push_back(output.text);
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(**graph, feeds, fetches);
  if (absl::IsUnimplemented(session.status())) return Outcome::kNotSupported;
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return Outcome::kNoSamples;
  int samples = 0;
  for (;; ++samples) {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < feeds.size(); ++i) {
      absl::StatusOr<Tensor> input = ReadArray(folder / absl::StrCat("input_", samples, "_", i, ".npy"));
      if (input.ok()) inputs.push_back(*std::move(input));
    }
    if (inputs.size() != feeds.size() || !fs::exists(folder / absl::StrCat("output_", samples, "_0.npy"))) break;
    const absl::StatusOr<std::vector<Tensor>> outputs = (*session)->Run(inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) break;
    for (size_t i = 0; i < outputs->size(); ++i) {
      const absl::StatusOr<Tensor> expected = ReadArray(folder / absl::StrCat("output_", samples, "_", i, ".npy"));
      if (!expected.ok()) continue;
      double tolerance = kTolerance;
      const absl::StatusOr<Tensor> other = ReadArray(folder / absl::StrCat("output_xnn_", samples, "_", i, ".npy"));
      if (other.ok()) tolerance = std::max(tolerance, kSpreadFactor * CompareTensors(*expected, *other).relative());
      EXPECT_EQ((*outputs)[i].shape(), expected->shape()) << "output " << i;
      EXPECT_LE(CompareTensors(*expected, (*outputs)[i]).relative(), tolerance)
          << "sample " << samples << ", output " << i;
    }
  }
  return samples > 0 ? Outcome::kRan : Outcome::kNoSamples;
}

TEST(TfliteTest, RunsTheRecordedModels) {
  const std::vector<fs::path> models = ModelsBelow(DataFile("tests/formats/tflite"));
  ASSERT_GE(models.size(), 15u);
  for (const fs::path& model : models) EXPECT_EQ(Check(model), Outcome::kRan) << model;
}

TEST(TfliteTest, RunsTheSharedModels) {
  const std::string shared = SharedFolder();
  if (shared.empty() || !fs::exists(fs::path(shared) / "models_tflite")) GTEST_SKIP() << "no shared models";
  int ran = 0, not_supported = 0;
  for (const fs::path& model : ModelsBelow(fs::path(shared) / "models_tflite")) {
    // A model that LiteRT refuses is an error here, too, or is read.
    if (!fs::exists(model / "output_0_0.npy")) {
      OpenModel(RealFileSystem(), (model / "model.tflite").string()).status().IgnoreError();
      continue;
    }
    const Outcome outcome = Check(model);
    ran += outcome == Outcome::kRan ? 1 : 0;
    not_supported += outcome == Outcome::kNotSupported ? 1 : 0;
    if (outcome == Outcome::kNotSupported) {
      std::cout << "not supported: " << model.string() << "\n";
    }
  }
  std::cout << ran << " models ran, " << not_supported << " are not supported\n";
  EXPECT_GE(ran, 30);
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

TEST(TfliteTest, TruncatedAnywhereIsAnError) {
  for (const char* name : {"control_flow", "dense_float_flattens"}) {
    const std::string bytes = BytesOf(name);
    for (size_t size = 8; size + 1 < bytes.size(); ++size) {
      const absl::Status status = StatusOfReading(bytes.substr(0, size));
      // The last bytes may be padding that nothing refers to.
      if (size + 16 < bytes.size()) EXPECT_FALSE(status.ok()) << name << " cut to " << size << " bytes";
      EXPECT_FALSE(absl::StrContains(status.message(), "\n"));
    }
  }
}

TEST(TfliteTest, FlippedBitsNeverCrash) {
  for (const char* name : {"control_flow", "l2_norm_composite", "dequantize_int4", "conv_float_dilated"}) {
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
