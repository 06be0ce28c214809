// Compares convolutions over images with long lines, whose inner pixels are read in place, with sums in double
// precision.
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "runtime_check/checking/evaluate.h"
#include "tests/runtime_check/delegates/guarded_memory.h"

namespace permafrost {
namespace {

struct Case {
  int64_t batch, height, width, channels, taps_y, taps_x, outputs, stride_y, stride_x, dilation_y, dilation_x;
  const char* padding;

  std::string ToString() const {
    return absl::StrCat(batch, "x", height, "x", width, "x", channels, ", ", taps_y, "x", taps_x, " taps to ", outputs,
                        ", strides ", stride_y, " ", stride_x, ", dilations ", dilation_y, " ", dilation_x, ", ",
                        padding);
  }
};

template <typename T>
Tensor RandomTensor(const Shape& shape, int seed) {
  std::mt19937 generator(static_cast<unsigned>(seed));
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<T> values(static_cast<size_t>(shape.num_elements()));
  for (T& value : values) value = static_cast<T>(distribution(generator));
  return Tensor::FromVector(shape, std::move(values));
}

template <typename T>
absl::StatusOr<Tensor> Convolved(const Case& c, const Tensor& image, const Tensor& filter) {
  Graph graph;
  Node* const node = *graph.AddNode("n", Op::Named("Conv2D"));
  graph.AddInput(node, {*graph.AddConst("image", image), 0});
  graph.AddInput(node, {*graph.AddConst("filter", filter), 0});
  node->SetAttr("T", AttrValue::Type(DTypeOf<T>::value));
  node->SetAttr("strides", AttrValue::IntList({1, c.stride_y, c.stride_x, 1}));
  node->SetAttr("dilations", AttrValue::IntList({1, c.dilation_y, c.dilation_x, 1}));
  node->SetAttr("padding", AttrValue::String(c.padding));
  const auto outputs = KernelEvaluator().Evaluate(*node, {image, filter});
  if (!outputs.ok()) return outputs.status();
  return (*outputs)[0];
}

TEST(ImageLinesTest, InnerPixelsAndBordersAreTheSums) {
  const Case cases[] = {
      {1, 9, 113, 3, 3, 3, 32, 2, 2, 1, 1, "SAME"},  {1, 9, 113, 3, 3, 3, 32, 2, 2, 1, 1, "VALID"},
      {1, 9, 112, 3, 3, 3, 32, 2, 2, 1, 1, "SAME"},  {1, 8, 64, 3, 3, 3, 32, 1, 1, 1, 1, "VALID"},
      {2, 7, 60, 3, 3, 3, 5, 1, 1, 1, 1, "SAME"},    {1, 6, 131, 1, 5, 5, 16, 2, 2, 1, 1, "SAME"},
      {1, 5, 64, 4, 1, 7, 40, 1, 1, 1, 1, "SAME"},   {1, 12, 64, 4, 7, 1, 33, 1, 1, 1, 1, "SAME"},
      {1, 5, 120, 16, 1, 1, 24, 2, 2, 1, 1, "SAME"}, {3, 8, 58, 64, 3, 3, 48, 1, 1, 1, 1, "SAME"},
      {1, 11, 70, 3, 3, 3, 8, 1, 1, 2, 1, "SAME"},   {1, 11, 70, 3, 3, 3, 8, 1, 1, 1, 2, "SAME"},
      {1, 2, 70, 3, 5, 3, 8, 1, 1, 1, 1, "SAME"},    {1, 4, 300, 2, 3, 3, 1, 3, 5, 1, 1, "VALID"},
      {2, 5, 57, 1, 2, 2, 3, 1, 1, 1, 1, "SAME"},    {1, 3, 56, 130, 3, 3, 20, 1, 1, 1, 1, "SAME"},
      {1, 70, 59, 3, 3, 3, 32, 1, 1, 1, 1, "SAME"},  {1, 4, 9, 1, 1, 1, 2, 3, 3, 1, 1, "VALID"},
      {1, 1, 3, 3, 1, 3, 4, 1, 1, 1, 1, "SAME"},
  };
  for (const Case& c : cases) {
    const Shape image_shape({c.batch, c.height, c.width, c.channels});
    const Shape filter_shape({c.taps_y, c.taps_x, c.channels, c.outputs});
    const Tensor image = RandomTensor<float>(image_shape, 1), filter = RandomTensor<float>(filter_shape, 2);
    // The image ends at the end of its memory if it consists of whole registers; aligned images are not copied.
    GuardedMemory memory(image.bytes().size(), 64);
    memory.Fill(image.bytes());
    memory.MakeReadOnly();
    const auto guarded = Tensor::FromBytes(DType::kFloat, image_shape, memory.bytes(), nullptr);
    ASSERT_TRUE(guarded.ok()) << guarded.status();
    const auto found = Convolved<float>(c, *guarded, filter);
    const auto expected =
        Convolved<double>(c, RandomTensor<double>(image_shape, 1), RandomTensor<double>(filter_shape, 2));
    ASSERT_TRUE(found.ok() && expected.ok()) << c.ToString() << found.status() << expected.status();
    ASSERT_EQ(found->shape(), expected->shape()) << c.ToString();
    const double tolerance = 1e-6 * static_cast<double>(c.taps_y * c.taps_x * c.channels + 1);
    for (int64_t i = 0; i < found->num_elements(); ++i) {
      ASSERT_NEAR(found->data<float>()[i], expected->data<double>()[i], tolerance) << c.ToString() << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace permafrost
