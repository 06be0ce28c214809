// Tests that the reference kernels compute the same results on every processor: within 1e-5 of those recorded on
// x86-64, where this test runs as well. For another processor: bazel test --config=aarch64 //tests/processors/...
//
// PERMAFROST_RECORD=DIR writes the results of this machine into DIR.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "embedding/permafrost_runtime.hpp"
#include "graph/tensor.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/npy.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

constexpr float kTolerance = 1e-5f;

// Returns numbers from 0 to 1 that are equal on every machine: no library generator, no platform-dependent rounding.
std::vector<float> Pixels(size_t count) {
  std::vector<float> pixels(count);
  uint32_t state = 12345;
  for (float& pixel : pixels) {
    state = state * 1664525u + 1013904223u;
    pixel = static_cast<float>(state >> 24) / 256.0f;
  }
  return pixels;
}

// Returns the outputs of the model for the pixels.
std::vector<float> Answer(const std::string& path, const std::string& output_name, const std::vector<int64_t>& shape) {
  const pf::Result<pf::Model> model = pf::Model::OpenFile(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return {};
  pf::SessionOptions options;
  options.outputs = {output_name};
  pf::Result<pf::Session> session = pf::Session::Create(*model, options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) return {};
  size_t count = 1;
  for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
  const std::vector<float> pixels = Pixels(count);
  const pf::Result<pf::Outputs> outputs = session->Run({pf::TensorOver(shape, pixels.data(), pixels.size())});
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (!outputs.ok()) return {};
  const pf_tensor output = (*outputs)[0];
  const float* const data = pf::DataOf<float>(output);
  return std::vector<float>(data, data + pf::NumElements(output));
}

void CompareWithRecord(const std::string& name, const std::vector<float>& found) {
  ASSERT_FALSE(found.empty());
  if (const char* const folder = std::getenv("PERMAFROST_RECORD"); folder != nullptr) {
    const auto writer = RealFileSystem().NewWriter(absl::StrCat(folder, "/", name, ".npy"));
    ASSERT_TRUE(writer.ok()) << writer.status();
    const Tensor tensor = Tensor::FromVector<float>(Shape({static_cast<int64_t>(found.size())}), found);
    ASSERT_TRUE(WriteNpy(tensor, writer->get()).ok());
    ASSERT_TRUE((*writer)->Commit().ok());
  }
  const auto bytes = RealFileSystem().ReadFile(DataFile(absl::StrCat("tests/processors/", name, ".npy")));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto recorded = ParseNpy(*bytes, nullptr);
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  const auto expected = recorded->elements<float>();
  ASSERT_EQ(found.size(), expected.size());
  float worst = 0, largest = 1;
  for (size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::abs(found[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
    ASSERT_FALSE(std::isnan(found[i])) << i;
  }
  std::printf("%s: largest difference %g of %g\n", name.c_str(), worst, largest);
  EXPECT_LE(worst, kTolerance * largest);
}

TEST(SameAnswersTest, Digits) {
  CompareWithRecord("digits", Answer(DataFile("tests/models/digits/digits.pb"), "probabilities", {4, 8, 8, 1}));
}

TEST(SameAnswersTest, MobileNetV2) {
  for (const SharedModel& model : SharedModels()) {
    if (model.name == "mobilenet_v2") {
      return CompareWithRecord("mobilenet_v2", Answer(model.path, "predictions", {1, 224, 224, 3}));
    }
  }
  GTEST_SKIP() << "the models beside the workspace are not there";
}

}  // namespace
}  // namespace permafrost
