// Tests of the dsp_int8 example: its results equal those of the reference kernels bit by bit, and it refuses what it
// cannot compute.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "runtime_check/delegates/external/external_delegate.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/small_graph.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::shared_ptr<const Delegate> Dsp() {
  auto delegate = LoadExternalDelegate("docs/examples/dsp_int8.so");
  EXPECT_TRUE(delegate.ok()) << delegate.status();
  return delegate.ok() ? *std::move(delegate) : nullptr;
}

class Random {
 public:
  Tensor Codes(const Shape& shape) { return Make<int8_t>(shape, -128, 127); }
  Tensor Weights(const Shape& shape) { return Make<int8_t>(shape, -127, 127); }
  Tensor Sums(const Shape& shape) { return Make<int32_t>(shape, -20000, 20000); }
  Tensor OfType(DType dtype, const Shape& shape) {
    if (dtype == DType::kUint8) return Make<uint8_t>(shape, 0, 255);
    if (dtype == DType::kInt16) return Make<int16_t>(shape, -32768, 32767);
    return dtype == DType::kInt8 ? Codes(shape) : Reals(shape);
  }
  Tensor Reals(const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(shape.num_elements()));
    for (float& value : values) value = std::uniform_real_distribution<float>(-4, 4)(engine_);
    return Tensor::FromVector<float>(shape, std::move(values));
  }
  std::vector<float> Scales(int64_t count) {
    std::vector<float> scales(static_cast<size_t>(count));
    for (float& scale : scales) scale = std::uniform_real_distribution<float>(0.001f, 0.02f)(engine_);
    return scales;
  }

 private:
  template <typename T>
  Tensor Make(const Shape& shape, int low, int high) {
    std::vector<T> values(static_cast<size_t>(shape.num_elements()));
    for (T& value : values) value = static_cast<T>(std::uniform_int_distribution<int>(low, high)(engine_));
    return Tensor::FromVector<T>(shape, std::move(values));
  }

  std::mt19937 engine_{20};
};

using Attrs = std::vector<std::pair<std::string, AttrValue>>;

AttrValue Types(std::vector<DType> types) { return AttrValue::TypeList(types); }

std::unique_ptr<Session> MakeSession(const Graph& graph, const std::vector<std::string>& feeds,
                                     const std::vector<std::string>& fetches,
                                     std::shared_ptr<const Delegate> delegate) {
  SessionOptions options;
  options.delegate = std::move(delegate);
  auto session = Session::Create(graph, feeds, fetches, options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

// Runs a graph with and without the delegate, expects equal bytes, and returns the report.
DelegationReport Compare(const Graph& graph, const std::vector<std::string>& feeds,
                         const std::vector<std::string>& fetches, const std::vector<Tensor>& inputs) {
  const auto reference = MakeSession(graph, feeds, fetches, nullptr);
  const auto delegated = MakeSession(graph, feeds, fetches, Dsp());
  if (reference == nullptr || delegated == nullptr) return {};
  const auto expected = reference->Run(inputs);
  EXPECT_TRUE(expected.ok()) << expected.status();
  for (int round = 0; round < 2; ++round) {
    const auto actual = delegated->Run(inputs);
    EXPECT_TRUE(actual.ok()) << actual.status();
    if (!expected.ok() || !actual.ok()) return {};
    for (size_t i = 0; i < expected->size(); ++i) {
      EXPECT_EQ((*actual)[i].shape(), (*expected)[i].shape());
      EXPECT_TRUE((*actual)[i].bytes() == (*expected)[i].bytes()) << "output " << i << ", run " << round;
    }
  }
  return delegated->report().delegation;
}

// Sizes and options of a convolution.
struct Convolution {
  Shape input, filter;  // The filter as HWIO, or [height, width, channels, multiplier].
  int64_t stride = 1, dilation = 1;
  std::string padding = "SAME";
  std::vector<int64_t> pads;  // Top, bottom, left, right: EXPLICIT.
  std::string activation = "NONE";
  std::string rounding = "twice";
  bool per_channel = true, output_first = false, has_bias = true;
};

// x [codes] -> a convolution "y".
void AddConvolution(const Convolution& c, bool is_depthwise, SmallGraph* graph) {
  Random random;
  const int64_t outputs = is_depthwise ? c.filter.dim(2) * c.filter.dim(3) : c.filter.dim(3);
  Shape filter = c.filter;
  if (c.output_first) filter = Shape({c.filter.dim(3), c.filter.dim(0), c.filter.dim(1), c.filter.dim(2)});
  graph->Placeholder("x", DType::kInt8, c.input);
  graph->Const("filter", random.Weights(filter));
  graph->Const("bias", random.Sums({outputs}));
  const float depth = static_cast<float>(c.filter.num_elements() / outputs);
  Attrs attrs = {
      {"Tin", c.has_bias ? Types({DType::kInt8, DType::kInt8, DType::kInt32}) : Types({DType::kInt8, DType::kInt8})},
      {"Tout", AttrValue::Type(DType::kInt8)},
      {"input_scales", AttrValue::FloatList({0.05f})},
      {"input_zero_points", AttrValue::IntList({-7})},
      {"output_scale", AttrValue::Float(0.03f + 0.01f * depth / 16)},
      {"output_zero_point", AttrValue::Int(5)},
      {"filter_scales", AttrValue::FloatList(random.Scales(c.per_channel ? outputs : 1))},
      {"activation", AttrValue::String(c.activation)},
      {"rounding", AttrValue::String(c.rounding)},
      {"strides", AttrValue::IntList({1, c.stride, c.stride, 1})},
      {"dilations", AttrValue::IntList({1, c.dilation, c.dilation, 1})},
      {"padding", AttrValue::String(c.pads.empty() ? c.padding : "EXPLICIT")}};
  if (!c.pads.empty()) {
    std::vector<int64_t> pads = {0, 0};
    pads.insert(pads.end(), c.pads.begin(), c.pads.end());
    pads.insert(pads.end(), {0, 0});
    attrs.emplace_back("explicit_paddings", AttrValue::IntList(pads));
  }
  if (!is_depthwise) attrs.emplace_back("filter_format", AttrValue::String(c.output_first ? "OHWI" : "HWIO"));
  std::vector<std::string> inputs = {"x", "filter"};
  if (c.has_bias) inputs.emplace_back("bias");
  graph->Add("y", is_depthwise ? "_IntegerDepthwiseConv2dNative" : "_IntegerConv2D", inputs, attrs);
}

// Returns the line of --explain for node y.
std::string LineOfY(const DelegationReport& report) {
  if (report.partitions.size() != 1) return "";
  for (const std::string& line : report.partitions[0].pieces) {
    if (absl::StartsWith(line, "y: ")) return line;
  }
  return "";
}

std::string Check(const Convolution& c, bool is_depthwise) {
  SmallGraph graph;
  AddConvolution(c, is_depthwise, &graph);
  const DelegationReport report = Compare(graph.graph(), {"x"}, {"y"}, {Random().Codes(c.input)});
  EXPECT_THAT(report.left, IsEmpty()) << report.left[0].reason;
  EXPECT_EQ(report.failure, "");
  return LineOfY(report);
}

TEST(DspInt8Test, Convolutions) {
  Convolution c;
  c.input = Shape({2, 9, 11, 5});
  c.filter = Shape({3, 3, 5, 21});
  EXPECT_THAT(Check(c, false), HasSubstr("convolution 9x11x5 -> 9x11x21 by 3x3, 2 tiles of 9x11x21; 187110 MACs"));
  for (const char* activation : {"RELU", "RELU6", "RELU_N1_TO_1"}) {
    c.activation = activation;
    EXPECT_NE(Check(c, false), "");
  }
  c.stride = 2;
  c.output_first = true;
  EXPECT_NE(Check(c, false), "");
  c.stride = 1;
  c.dilation = 2;
  c.per_channel = false;
  EXPECT_NE(Check(c, false), "");
  c.padding = "VALID";
  c.has_bias = false;
  EXPECT_NE(Check(c, false), "");
  c.pads = {3, 0, 1, 4};
  c.rounding = "once";
  EXPECT_NE(Check(c, false), "");
  c = Convolution();
  c.input = Shape({1, 6, 6, 12});
  c.filter = Shape({3, 3, 4, 15});  // Three groups.
  EXPECT_NE(Check(c, false), "");
}

TEST(DspInt8Test, ConvolutionsInTiles) {
  Convolution c;
  c.input = Shape({1, 130, 90, 40});
  c.filter = Shape({3, 3, 40, 24});
  EXPECT_THAT(Check(c, false), HasSubstr(" tiles of "));
  c.stride = 2;
  EXPECT_NE(Check(c, false), "");
  c = Convolution();
  c.input = Shape({1, 3, 3, 700});
  c.filter = Shape({3, 3, 700, 90});  // The weights of all channels exceed local memory.
  EXPECT_THAT(Check(c, false), HasSubstr(" tiles of 3x3x"));
  c = Convolution();
  c.input = Shape({1, 1, 9000, 150});
  c.filter = Shape({1, 5, 150, 8});
  EXPECT_THAT(Check(c, false), HasSubstr(" tiles of 1x"));
}

TEST(DspInt8Test, DepthwiseConvolutions) {
  Convolution c;
  c.input = Shape({2, 10, 7, 19});
  c.filter = Shape({3, 3, 19, 1});
  EXPECT_THAT(Check(c, true), HasSubstr("depthwise convolution 10x7x19 -> 10x7x19 by 3x3"));
  c.filter = Shape({5, 3, 19, 3});
  c.stride = 2;
  c.activation = "RELU6";
  EXPECT_NE(Check(c, true), "");
  c = Convolution();
  c.input = Shape({1, 40, 40, 700});
  c.filter = Shape({3, 3, 700, 1});
  EXPECT_THAT(Check(c, true), HasSubstr(" tiles of "));
}

// Sums that are halves of the output's scale: "exact" rounds them away from zero, in double precision.
TEST(DspInt8Test, MatrixProducts) {
  for (const bool transposed : {false, true}) {
    for (const char* rounding : {"exact", "twice", "once"}) {
      for (const float scale : {0.25f, 0.0173f, 3.1e-3f}) {
        Random random;
        SmallGraph graph;
        graph.Placeholder("x", DType::kInt8, {5, 130});
        graph.Const("filter", random.Weights(transposed ? Shape({33, 130}) : Shape({130, 33})));
        graph.Const("bias", random.Sums({33}));
        std::vector<float> scales = random.Scales(33);
        std::fill(scales.begin(), scales.begin() + 10, 0.5f);
        graph.Add("y", "_IntegerMatMul", {"x", "filter", "bias"},
                  {{"Tin", Types({DType::kInt8, DType::kInt8, DType::kInt32})},
                   {"Tout", AttrValue::Type(DType::kInt8)},
                   {"input_scales", AttrValue::FloatList({scale})},
                   {"input_zero_points", AttrValue::IntList({3})},
                   {"output_scale", AttrValue::Float(64 * scale)},
                   {"output_zero_point", AttrValue::Int(-9)},
                   {"filter_scales", AttrValue::FloatList(scales)},
                   {"activation", AttrValue::String("NONE")},
                   {"rounding", AttrValue::String(rounding)},
                   {"transpose_b", AttrValue::Bool(transposed)}});
        EXPECT_NE(LineOfY(Compare(graph.graph(), {"x"}, {"y"}, {random.Codes({5, 130})})), "");
      }
    }
  }
}

// A convolution "y" and an operator "z" behind it.
DelegationReport CheckBehind(const std::string& op, const std::vector<std::string>& more_inputs, const Attrs& attrs,
                             const std::vector<std::pair<std::string, Tensor>>& constants = {}) {
  Convolution c;
  c.input = Shape({1, 12, 10, 6});
  c.filter = Shape({1, 1, 6, 20});
  SmallGraph graph;
  AddConvolution(c, false, &graph);
  for (const auto& [name, value] : constants) graph.Const(name, value);
  std::vector<std::string> inputs = {"y"};
  inputs.insert(inputs.end(), more_inputs.begin(), more_inputs.end());
  graph.Add("z", op, inputs, attrs);
  return Compare(graph.graph(), {"x"}, {"z", "y"}, {Random().Codes(c.input)});
}

void ExpectAllTaken(const DelegationReport& report) {
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.left, IsEmpty()) << report.left[0].reason;
}

Attrs Scaled(std::vector<DType> types, const std::vector<float>& scales, const std::vector<int64_t>& points,
             const Attrs& more) {
  Attrs attrs = {{"Tin", Types(std::move(types))},
                 {"Tout", AttrValue::Type(DType::kInt8)},
                 {"input_scales", AttrValue::FloatList(scales)},
                 {"input_zero_points", AttrValue::IntList(points)}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

Attrs Result(float scale, int64_t point, const std::string& activation = "NONE") {
  return {{"output_scale", AttrValue::Float(scale)},
          {"output_zero_point", AttrValue::Int(point)},
          {"activation", AttrValue::String(activation)}};
}

// The scale that AddConvolution gives the result of a filter of depth 6.
const float kScaleOfY = 0.03f + 0.01f * 6.0f / 16;

TEST(DspInt8Test, Poolings) {
  Attrs attrs = Scaled({DType::kInt8}, {kScaleOfY}, {5}, Result(kScaleOfY, 5, "RELU6"));
  for (const char* padding : {"SAME", "VALID"}) {
    Attrs window = {{"ksize", AttrValue::IntList({1, 3, 2, 1})},
                    {"strides", AttrValue::IntList({1, 2, 1, 1})},
                    {"padding", AttrValue::String(padding)}};
    Attrs all = attrs;
    all.insert(all.end(), window.begin(), window.end());
    ExpectAllTaken(CheckBehind("_IntegerPool", {}, all));
    window.emplace_back("T", AttrValue::Type(DType::kInt8));
    ExpectAllTaken(CheckBehind("MaxPool", {}, window));
  }
}

TEST(DspInt8Test, SumsAndProducts) {
  for (const char* function : {"Add", "Sub", "Mul"}) {
    for (const Shape& shape : {Shape({}), Shape({20}), Shape({1, 1, 1, 20}), Shape({12, 10, 20})}) {
      SCOPED_TRACE(absl::StrCat(function, " ", shape.ToString()));
      Attrs attrs = Scaled({DType::kInt8, DType::kInt8}, {kScaleOfY, 0.011f}, {5, -3}, Result(0.05f, 2, "RELU"));
      attrs.emplace_back("function", AttrValue::String(function));
      attrs.emplace_back("rounding", AttrValue::String("twice"));
      ExpectAllTaken(CheckBehind("_IntegerBinary", {"c"}, attrs, {{"c", Random().Codes(shape)}}));
    }
  }
}

TEST(DspInt8Test, Means) {
  for (const char* rounding : {"twice", "once"}) {
    for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{1, 2}, {-1}, {1, 2, 3}, {0}, {3, 2}}) {
      Attrs attrs = Scaled({DType::kInt8, DType::kInt32}, {kScaleOfY}, {5}, Result(0.021f, -11));
      attrs.pop_back();  // No activation.
      attrs.emplace_back("function", AttrValue::String("Mean"));
      attrs.emplace_back("keep_dims", AttrValue::Bool(axes.size() == 1));
      attrs.emplace_back("rounding", AttrValue::String(rounding));
      const Shape shape({static_cast<int64_t>(axes.size())});
      ExpectAllTaken(
          CheckBehind("_IntegerReduce", {"axes"}, attrs, {{"axes", Tensor::FromVector<int32_t>(shape, axes)}}));
    }
  }
}

TEST(DspInt8Test, MovesCodes) {
  for (const int32_t axis : {1, -1}) {
    ExpectAllTaken(CheckBehind(
        "ConcatV2", {"c", "y", "axis"},
        {{"T", AttrValue::Type(DType::kInt8)}, {"Tidx", AttrValue::Type(DType::kInt32)}, {"N", AttrValue::Int(3)}},
        {{"c", Random().Codes(axis == 1 ? Shape({1, 3, 10, 20}) : Shape({1, 12, 10, 4}))},
         {"axis", Tensor::FromVector<int32_t>({}, {axis})}}));
  }
  ExpectAllTaken(CheckBehind("Reshape", {"shape"},
                             {{"T", AttrValue::Type(DType::kInt8)}, {"Tshape", AttrValue::Type(DType::kInt32)}},
                             {{"shape", Tensor::FromVector<int32_t>({2}, {40, -1})}}));
}

// A chain whose tensors share scratch memory, with a view in the middle.
TEST(DspInt8Test, KeepsTensorsInside) {
  Convolution c;
  c.input = Shape({1, 8, 8, 3});
  c.filter = Shape({3, 3, 3, 16});
  SmallGraph graph;
  AddConvolution(c, false, &graph);
  graph.Const("shape", Tensor::FromVector<int32_t>({2}, {64, 16}));
  graph.Add("view", "Reshape", {"y", "shape"},
            {{"T", AttrValue::Type(DType::kInt8)}, {"Tshape", AttrValue::Type(DType::kInt32)}});
  std::string last = "view";
  const float scale = 0.03f + 0.01f * 27 / 16;
  for (int i = 0; i < 5; ++i) {
    Attrs attrs = Scaled({DType::kInt8, DType::kInt8}, {scale, scale}, {5, 5}, Result(scale, 5));
    attrs.emplace_back("function", AttrValue::String("Add"));
    attrs.emplace_back("rounding", AttrValue::String("twice"));
    const std::string name = absl::StrCat("sum", i);
    graph.Add(name, "_IntegerBinary", {last, "view"}, attrs);
    last = name;
  }
  const DelegationReport report = Compare(graph.graph(), {"x"}, {last}, {Random().Codes(c.input)});
  ExpectAllTaken(report);
  // The sums take turns: y, which all sums read, and two results.
  EXPECT_EQ(report.partitions[0].scratch_bytes, (1 << 20) + 3 * 1024);
}

TEST(DspInt8Test, SaysWhatItRefuses) {
  const auto reason_of = [](const DelegationReport& report) {
    return report.left.empty() ? std::string() : report.left[0].reason;
  };
  Attrs softmax = Scaled({DType::kInt8}, {kScaleOfY}, {5}, {});
  softmax.emplace_back("output_scale", AttrValue::Float(1.0f / 256));
  softmax.emplace_back("output_zero_point", AttrValue::Int(-128));
  EXPECT_EQ(reason_of(CheckBehind("_IntegerSoftmax", {}, softmax)), "has no unit for exponentials");
  EXPECT_EQ(reason_of(CheckBehind("Cast", {},
                                  {{"SrcT", AttrValue::Type(DType::kInt8)}, {"DstT", AttrValue::Type(DType::kFloat)}})),
            "has no unit for 'Cast'");
  Attrs sum = Scaled({DType::kInt8, DType::kInt8}, {kScaleOfY, 0.011f}, {5, -3}, Result(0.05f, 2));
  sum.emplace_back("function", AttrValue::String("Add"));
  sum.emplace_back("rounding", AttrValue::String("once"));
  EXPECT_EQ(reason_of(CheckBehind("_IntegerBinary", {"c"}, sum, {{"c", Random().Codes({20})}})),
            "rounds sums and products of codes twice only");
  sum.back().second = AttrValue::String("twice");
  EXPECT_EQ(reason_of(CheckBehind("_IntegerBinary", {"c"}, sum, {{"c", Random().Codes({12, 1, 20})}})),
            "repeats an operand along the first dimensions only");
  // A window whose inputs exceed local memory.
  Convolution large;
  large.input = Shape({1, 25, 25, 900});
  large.filter = Shape({25, 25, 900, 1});
  SmallGraph graph;
  AddConvolution(large, false, &graph);
  EXPECT_EQ(reason_of(Compare(graph.graph(), {"x"}, {"y"}, {Random().Codes(large.input)})),
            "one result needs more than the 512 KB of local memory that one buffer has");
  // Floats.
  SmallGraph floats;
  floats.Placeholder("x", DType::kFloat, {3});
  floats.Float("y", "Relu", {"x"});
  EXPECT_EQ(reason_of(Compare(floats.graph(), {"x"}, {"y"}, {Random().Reals({3})})),
            "has no float: input 0 is of floats");
}

// A tensor that two nodes read with different scales has none in the interface.
TEST(DspInt8Test, TwoScalesOfOneTensor) {
  Convolution c;
  c.input = Shape({1, 4, 4, 6});
  c.filter = Shape({1, 1, 6, 20});
  SmallGraph graph;
  AddConvolution(c, false, &graph);
  Attrs sum = Scaled({DType::kInt8, DType::kInt8}, {0.5f, 0.5f}, {5, 5}, Result(0.05f, 2));
  sum.emplace_back("function", AttrValue::String("Add"));
  sum.emplace_back("rounding", AttrValue::String("twice"));
  graph.Add("z", "_IntegerBinary", {"y", "y"}, sum);
  const DelegationReport report = Compare(graph.graph(), {"x"}, {"z"}, {Random().Codes(c.input)});
  EXPECT_THAT(report.partitions, IsEmpty());
  ASSERT_THAT(report.left, SizeIs(2));
  EXPECT_THAT(report.left[0].reason, HasSubstr("the result has no scale"));
}

// --- Models ---------------------------------------------------------------------------------------------------------

// Runs a model file on random inputs. Returns the nodes that the reference kernels run.
std::vector<DelegationReport::Left> CheckModel(const std::string& path, int64_t* macs) {
  SCOPED_TRACE(path);
  *macs = 0;
  const auto graph = OpenModel(RealFileSystem(), path);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  std::vector<std::string> feeds, fetches;
  std::vector<Tensor> inputs;
  Random random;
  for (const Endpoint& input : (*graph)->inputs()) {
    feeds.push_back(input.text);
    Shape shape;
    const Shape declared = ShapeAttr(*input.node, "shape").value();
    for (const int64_t dim : declared.dims()) shape.AddDim(dim == kUnknownDim ? 1 : dim);
    inputs.push_back(random.OfType(TypeAttr(*input.node, "dtype").value(), shape));
  }
  for (const Endpoint& output : (*graph)->outputs()) fetches.push_back(output.text);
  const DelegationReport report = Compare(**graph, feeds, fetches, inputs);
  EXPECT_EQ(report.failure, "");
  for (const auto& partition : report.partitions) {
    int64_t each = 0;
    EXPECT_TRUE(absl::SimpleAtoi(partition.pieces[0].substr(8, partition.pieces[0].find(" MACs") - 8), &each));
    *macs += each;
    std::cout << path << ": " << partition.pieces[0] << "\n";
  }
  return report.left;
}

// No multiplication by weights is left.
void ExpectAllWeightsTaken(const std::vector<DelegationReport::Left>& left) {
  for (const auto& node : left) {
    for (const char* op : {"_IntegerConv2D", "_IntegerDepthwiseConv2dNative", "_IntegerMatMul", "Conv2D", "MatMul"}) {
      EXPECT_NE(node.op, op) << node.node << ": " << node.reason;
    }
  }
}

TEST(DspInt8Test, RunsTheRecordedModels) {
  const std::string folder = DataFile("tests/formats/tflite");
  int64_t macs = 0;
  for (const char* model :
       {"conv_int8_per_channel", "conv_int8_rounding", "depthwise_int8_multiplier", "dense_int8_keep_dims"}) {
    ExpectAllWeightsTaken(CheckModel(absl::StrCat(folder, "/", model, "/model.tflite"), &macs));
    EXPECT_GT(macs, 0) << model;
  }
  // Models without integer operators, or with others, run as without the delegate.
  for (const char* model : {"conv_uint8_relu6_stride", "conv_int16x8", "softmax_int8_beta", "conv_float_dilated"}) {
    CheckModel(absl::StrCat(folder, "/", model, "/model.tflite"), &macs);
    EXPECT_EQ(macs, 0) << model;
  }
}

TEST(DspInt8Test, RunsTheSharedModels) {
  const std::filesystem::path folder = std::filesystem::path(SharedFolder()) / "models_tflite";
  if (SharedFolder().empty() || !std::filesystem::exists(folder)) GTEST_SKIP() << "no shared models";
  for (const char* model : {"keyword_spotting_int8", "image_classification_int8", "efficientnet_lite0_int8"}) {
    int64_t macs = 0;
    ExpectAllWeightsTaken(CheckModel((folder / model / "model.tflite").string(), &macs));
    EXPECT_GT(macs, 1000000) << model;
  }
}

}  // namespace
}  // namespace permafrost
