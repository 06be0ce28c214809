// Tests of the mutations of TensorFlow Lite models.
#include "tests/fuzz/tflite_mutator.h"

#include <gtest/gtest.h>

#include <string>

#include "flatbuffers/flatbuffers.h"
#include "io/formats/tflite/schema_generated.h"

namespace permafrost {
namespace {

constexpr uint64_t kSeeds = 2000;

// A model of one operator with the type of its options. FlatBuffers do not require the options themselves.
std::string Model(bool has_options) {
  flatbuffers::FlatBufferBuilder builder;
  const auto code = tflite::CreateOperatorCode(builder, 0, 0, 1, tflite::BuiltinOperator::ADD);
  const auto buffer = tflite::CreateBuffer(builder);
  const std::vector<int32_t> shape = {2}, inputs = {0, 0}, outputs = {1};
  const auto dims = builder.CreateVector(shape);
  std::vector<flatbuffers::Offset<tflite::Tensor>> tensors;
  for (const char* name : {"x", "y"}) {
    tensors.push_back(tflite::CreateTensor(builder, dims, tflite::TensorType::FLOAT32, 0, builder.CreateString(name)));
  }
  const flatbuffers::Offset<void> options =
      has_options ? tflite::CreateAddOptions(builder).Union() : flatbuffers::Offset<void>();
  const auto op = tflite::CreateOperator(builder, 0, builder.CreateVector(inputs), builder.CreateVector(outputs),
                                         tflite::BuiltinOptions::AddOptions, options);
  const std::vector<int32_t> graph_inputs = {0};
  const auto graph = tflite::CreateSubGraph(builder, builder.CreateVector(tensors), builder.CreateVector(graph_inputs),
                                            builder.CreateVector(outputs), builder.CreateVector(&op, 1));
  tflite::FinishModelBuffer(
      builder, tflite::CreateModel(builder, 3, builder.CreateVector(&code, 1), builder.CreateVector(&graph, 1), 0,
                                   builder.CreateVector(&buffer, 1)));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

TEST(MutateTflite, ChangesModelsInTheSameWayForTheSameSeed) {
  const std::string model = Model(true);
  int changed = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string mutated = MutateTflite(model, model, seed);
    EXPECT_EQ(mutated, MutateTflite(model, model, seed));
    changed += mutated != model ? 1 : 0;
  }
  EXPECT_GT(changed, static_cast<int>(kSeeds / 2));
}

TEST(MutateTflite, TakesOptionsWithATypeAndNoValue) {
  const std::string model = Model(false);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(model.data()), model.size());
  ASSERT_TRUE(tflite::VerifyModelBuffer(verifier));
  const std::string other = Model(true);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    MutateTflite(model, other, seed);
    MutateTflite(other, model, seed);
  }
}

TEST(MutateTflite, ReturnsNothingForOtherBytes) {
  EXPECT_EQ(MutateTflite("", "", 1), "");
  EXPECT_EQ(MutateTflite(std::string(100, 'x'), Model(true), 1), "");
}

}  // namespace
}  // namespace permafrost
