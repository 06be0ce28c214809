// Tests of models that convert_model quantises and the dsp_int8 example runs: outputs equal those of the reference
// kernels bit by bit, and no product with weights is left to these.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "io/file_system.h"
#include "io/formats/npy.h"
#include "io/model_file.h"
#include "runtime_check/delegates/external/external_delegate.h"
#include "runtime_check/session.h"
#include "tests/model_spec.h"
#include "tests/shared_models.h"
#include "tools/transform/tflite_output.h"

namespace permafrost {
namespace {

// Returns the model as a file of TensorFlow Lite in int8.
std::unique_ptr<Graph> Quantized(const Graph& graph, const std::string& inputs) {
  TfliteFlags flags;
  flags.quantize = "int8";
  flags.calibration_inputs = {inputs};
  const absl::StatusOr<TfliteOutput> output = EncodeTflite(graph, flags, 2, RealFileSystem());
  EXPECT_TRUE(output.ok()) << output.status();
  if (!output.ok()) return nullptr;
  const std::string path = testing::TempDir() + "/quantized.tflite";
  std::ofstream(path, std::ios::binary) << output->bytes;
  absl::StatusOr<std::unique_ptr<Graph>> read = OpenModel(RealFileSystem(), path);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *std::move(read) : nullptr;
}

std::vector<Tensor> Run(Session* session, const Tensor& input) {
  const auto outputs = session->Run({input});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *outputs : std::vector<Tensor>();
}

void Check(const Graph& graph, const std::string& inputs) {
  const std::unique_ptr<Graph> quantized = Quantized(graph, inputs);
  ASSERT_NE(quantized, nullptr);
  const std::string feed = quantized->inputs()[0].text, fetch = quantized->outputs()[0].text;
  const absl::StatusOr<FileView> file = RealFileSystem().MapFile(inputs);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<Tensor> all = ParseNpy(file->bytes, file->owner);
  ASSERT_TRUE(all.ok()) << all.status();
  std::vector<int64_t> dims(all->shape().dims().begin(), all->shape().dims().end());
  dims[0] = 1;
  const Shape shape(dims);
  const auto input = Tensor::FromBytes(
      all->dtype(), shape, all->bytes().substr(0, static_cast<size_t>(shape.num_elements()) * 4), all->owner());
  ASSERT_TRUE(input.ok()) << input.status();

  SessionOptions options;
  const auto reference = Session::Create(*quantized, {feed}, {fetch}, options);
  ASSERT_TRUE(reference.ok()) << reference.status();
  auto delegate = LoadExternalDelegate("docs/examples/dsp_int8.so");
  ASSERT_TRUE(delegate.ok()) << delegate.status();
  options.delegate = *std::move(delegate);
  const auto delegated = Session::Create(*quantized, {feed}, {fetch}, options);
  ASSERT_TRUE(delegated.ok()) << delegated.status();
  const std::vector<Tensor> expected = Run(reference->get(), *input), actual = Run(delegated->get(), *input);
  ASSERT_EQ(expected.size(), 1u);
  ASSERT_EQ(actual.size(), 1u);
  EXPECT_TRUE(actual[0].bytes() == expected[0].bytes());

  const DelegationReport& report = (*delegated)->report().delegation;
  EXPECT_EQ(report.failure, "");
  ASSERT_EQ(report.partitions.size(), 1u);
  std::cout << report.partitions[0].pieces[0] << "\n";
  for (const auto& left : report.left) {
    for (const char* op : {"_IntegerConv2D", "_IntegerDepthwiseConv2dNative", "_IntegerMatMul", "Conv2D", "MatMul"}) {
      EXPECT_NE(left.op, op) << left.node << ": " << left.reason;
    }
  }
}

TEST(DspInt8ModelsTest, Digits) {
  absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), DataFile("tests/models/digits/digits.pb"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE((*graph)->DeclareInterface({"image"}, {"probabilities"}).ok());
  Check(**graph, DataFile("tests/models/digits/eval_images.npy"));
}

TEST(DspInt8ModelsTest, MobileNet) {
  for (const SharedModel& model : SharedModels()) {
    if (model.name != "mobilenet_v2") continue;
    absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), model.path);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const absl::StatusOr<ModelSpec> spec = ReadModelSpec(model.folder);
    ASSERT_TRUE(spec.ok()) << spec.status();
    ASSERT_TRUE((*graph)->DeclareInterface(spec->inputs, spec->outputs).ok());
    return Check(**graph, model.folder + "/input_0.npy");
  }
  GTEST_SKIP() << "no shared models";
}

}  // namespace
}  // namespace permafrost
