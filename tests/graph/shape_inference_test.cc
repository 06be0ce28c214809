// Tests of inferred shapes, of the propagated values they depend on, and of hostile graphs.
#include "graph/shapes/shape_inference.h"

#include <random>

#include "absl/strings/match.h"
#include "graph/ops/op_schema.h"
#include "tests/graph/test_graph.h"

namespace permafrost {
namespace {

using Attrs = std::vector<std::pair<std::string, AttrValue>>;

AttrValue Ints(std::vector<int64_t> values) { return AttrValue::IntList(values); }
AttrValue Text(absl::string_view text) { return AttrValue::String(text); }

class ShapeInferenceTest : public testing::Test {
 protected:
  std::string Shape(const std::string& output, const ShapeInferenceOptions& options = {}) {
    const absl::StatusOr<ShapeMap> map = InferShapes(g.graph(), options);
    return map.ok() ? map->Of(g.Ref(output)).ToString() : std::string(map.status().message());
  }
  // Returns the shape of a node "y" of this op whose inputs "x0", "x1" ... have the given shapes.
  std::string Of(Op op, const std::vector<std::string>& shapes, const Attrs& attrs) {
    TestGraph fresh;
    std::vector<std::string> inputs;
    for (const std::string& shape : shapes) {
      inputs.push_back(absl::StrCat("x", inputs.size()));
      fresh.Float(inputs.back(), *ParseShape(shape));
    }
    fresh.Add("y", op, inputs, attrs);
    const absl::StatusOr<ShapeMap> map = InferShapes(fresh.graph());
    return map.ok() ? map->Of(fresh.Ref("y")).ToString() : std::string(map.status().message());
  }
  std::string Conv(const std::string& input, const std::string& filter, const Attrs& more) {
    Attrs attrs = {FloatT(), {"strides", Ints({1, 1, 1, 1})}, {"padding", Text("SAME")}};
    attrs.insert(attrs.end(), more.begin(), more.end());
    return Of(ops::kConv2D, {input, filter}, attrs);
  }

  TestGraph g;
};

TEST_F(ShapeInferenceTest, Convolution) {
  EXPECT_EQ(Conv("[1,7,8,3]", "[3,3,3,16]", {}), "[1,7,8,16]");
  EXPECT_EQ(Conv("[?,7,8,3]", "[3,3,3,16]", {{"padding", Text("VALID")}}), "[?,5,6,16]");
  EXPECT_EQ(Conv("[1,7,8,3]", "[3,3,3,16]", {{"strides", Ints({1, 2, 3, 1})}}), "[1,4,3,16]");
  EXPECT_EQ(Conv("[1,7,8,3]", "[3,3,3,16]", {{"padding", Text("VALID")}, {"dilations", Ints({1, 2, 3, 1})}}),
            "[1,3,2,16]");
  EXPECT_EQ(Conv("[1,3,7,8]", "[3,3,3,16]", {{"data_format", Text("NCHW")}}), "[1,16,7,8]");
  EXPECT_EQ(Conv("[1,7,8,3]", "[3,3,3,16]",
                 {{"padding", Text("EXPLICIT")}, {"explicit_paddings", Ints({0, 0, 1, 2, 0, 0, 0, 0})}}),
            "[1,8,6,16]");
  EXPECT_EQ(Conv("<unknown>", "[3,3,3,16]", {}), "[?,?,?,16]");
  EXPECT_EQ(Conv("[1,7,8,6]", "[3,3,3,16]", {}), "[1,7,8,16]");  // Two groups.
}

TEST_F(ShapeInferenceTest, ConvolutionErrorsNameTheNode) {
  EXPECT_EQ(Conv("[1,7,8,4]", "[3,3,3,16]", {}),
            "node 'y' (Conv2D): the input has 4 channels, but the filter expects 3");
  EXPECT_EQ(Conv("[1,7,8,3]", "[3,3,3,16]", {{"strides", Ints({1, 1})}}),
            "node 'y' (Conv2D): attr 'strides' has 2 values, expected 4");
  EXPECT_EQ(Conv("[1,7,8,3]", "[3,3,3,16]", {{"strides", Ints({1, 0, 1, 1})}}),
            "node 'y' (Conv2D): attr 'strides' has the value 0, expected 1 or more");
  EXPECT_EQ(Conv("[1,7,8]", "[3,3,3,16]", {}), "node 'y' (Conv2D): input 0 has the shape [1,7,8], expected rank 4");
  EXPECT_EQ(Conv("[1,1,1,3]", "[9,9,3,16]", {{"padding", Text("VALID")}}),
            "node 'y' (Conv2D): dimension 1 of the input has the size 1, which is smaller than the window of 9");
  EXPECT_EQ(Conv("[1,7,8,3]", "[3,3,3,16]", {{"padding", AttrValue::Int(3)}}),
            "node 'y' (Conv2D): attr 'padding': has a value of kind int, expected string");
}

TEST_F(ShapeInferenceTest, RelativesOfConvolution) {
  const Attrs window = {
      FloatT(), {"ksize", Ints({1, 3, 3, 1})}, {"strides", Ints({1, 2, 2, 1})}, {"padding", Text("VALID")}};
  EXPECT_EQ(Of(ops::kMaxPool, {"[1,7,8,3]"}, window), "[1,3,3,3]");
  EXPECT_EQ(Of(ops::kDepthwiseConv2dNative, {"[1,7,8,3]", "[3,3,3,2]"},
               {FloatT(), {"strides", Ints({1, 1, 1, 1})}, {"padding", Text("SAME")}}),
            "[1,7,8,6]");
  EXPECT_EQ(Of(ops::kFusedBatchNormV3, {"[?,7,8,?]", "[5]", "[5]", "[5]", "[5]"},
               {FloatT(), {"is_training", AttrValue::Bool(false)}}),
            "[?,7,8,5]");
  EXPECT_EQ(Of(ops::kBiasAdd, {"[1,7,8,3]", "[4]"}, {FloatT()}),
            "node 'y' (BiasAdd): channels of value and bias: found 3 and 4, expected the same");
  g.Ints("sizes", {1, 14, 16, 3});
  g.Float("filter", {3, 3, 3, 8});
  g.Float("gradient", {1, 7, 8, 8});
  g.Add("y", ops::kConv2DBackpropInput, {"sizes", "filter", "gradient"},
        {FloatT(), {"strides", Ints({1, 2, 2, 1})}, {"padding", Text("SAME")}});
  EXPECT_EQ(Shape("y"), "[1,14,16,3]");
}

TEST_F(ShapeInferenceTest, FourierTransforms) {
  g.Float("x", {kUnknownDim, 5, 16});
  g.Ints("size", {4, 9});
  g.Ints("length", {8});
  g.Add("plane", ops::kRFFT2D, {"x", "size"});
  g.Add("back", ops::kIRFFT2D, {"plane", "size"});
  g.Add("line", ops::kRFFT, {"x", "length"});
  EXPECT_EQ(Shape("plane"), "[?,4,5]");
  EXPECT_EQ(Shape("back"), "[?,4,9]");
  EXPECT_EQ(Shape("line"), "[?,5,5]");
}

TEST_F(ShapeInferenceTest, ElementwiseAndMatrices) {
  EXPECT_EQ(Of(ops::kAddV2, {"[1,4,1]", "[3,1,?]"}, {FloatT()}), "[3,4,?]");
  EXPECT_EQ(Of(ops::kAddV2, {"[2]", "[3]"}, {FloatT()}),
            "node 'y' (AddV2): shapes [2] and [3] cannot be broadcast to one");
  EXPECT_EQ(Of(ops::kMatMul, {"[2,3]", "[4,3]"}, {FloatT(), {"transpose_b", AttrValue::Bool(true)}}), "[2,4]");
  EXPECT_EQ(Of(ops::kMatMul, {"[2,3]", "[4,3]"}, {FloatT()}),
            "node 'y' (MatMul): inner dimensions: found 3 and 4, expected the same");
  EXPECT_EQ(Of(ops::kBatchMatMulV2, {"[5,1,2,3]", "[7,3,4]"}, {FloatT()}), "[5,7,2,4]");
  EXPECT_EQ(Of(ops::kEinsum, {"[2,3]", "[3,4]"}, {FloatT(), {"equation", Text("ab,bc->ca")}, {"N", AttrValue::Int(2)}}),
            "[4,2]");
}

TEST_F(ShapeInferenceTest, ReshapeInfersOneDimension) {
  g.Float("x", {2, 6, 4});
  g.Ints("to", {-1, 8});
  g.Add("y", ops::kReshape, {"x", "to"}, {FloatT()});
  EXPECT_EQ(Shape("y"), "[6,8]");
  g.Ints("bad", {-1, 5});
  g.Add("z", ops::kReshape, {"x", "bad"}, {FloatT()});
  EXPECT_EQ(Shape("z"),
            "node 'z' (Reshape): the input has 48 elements, which is not a multiple of the known dimensions of [?,5]");
}

// The graph that Keras writes for a flattening layer: the batch size is unknown, the other dimensions are known.
TEST_F(ShapeInferenceTest, ValuesAreKnownElementByElement) {
  g.Float("x", {kUnknownDim, 7, 8, 3});
  g.Add("shape", ops::kShape, {"x"}, {FloatT()});
  g.Ints("0", {0});
  g.Ints("1", {1});
  g.Ints("3", {3});
  const std::pair<std::string, AttrValue> shrink = {"shrink_axis_mask", AttrValue::Int(1)};
  g.Add("batch", ops::kStridedSlice, {"shape", "0", "1", "1"}, {IntT(), shrink});
  g.Int("rest", 168);
  g.Add("to", ops::kPack, {"batch", "rest"}, {IntT(), {"N", AttrValue::Int(2)}});
  g.Add("y", ops::kReshape, {"x", "to"}, {FloatT()});
  EXPECT_EQ(Shape("y"), "[?,168]");
  ShapeInferenceOptions options;
  options.fed["x"] = permafrost::Shape({5, 7, 8, 3});
  EXPECT_EQ(Shape("y", options), "[5,168]");

  // The index applies even if the begin mask has its bit: TensorFlow returns element 1.
  g.Add("height", ops::kStridedSlice, {"shape", "1", "1", "1"}, {IntT(), shrink, {"begin_mask", AttrValue::Int(1)}});
  g.Add("dims", ops::kPack, {"height"}, {IntT(), {"N", AttrValue::Int(1)}});
  g.Add("filled", ops::kFill, {"dims", "rest"}, {IntT()});
  EXPECT_EQ(Shape("filled"), "[7]");

  // The graph of an upsampling layer: twice the size of the image.
  g.Add("size", ops::kStridedSlice, {"shape", "1", "3", "1"}, {IntT()});
  g.Ints("scale", {2, 2});
  g.Add("doubled", ops::kMul, {"size", "scale"}, {IntT()});
  g.Add("z", ops::kResizeBilinear, {"x", "doubled"}, {FloatT()});
  EXPECT_EQ(Shape("z"), "[?,14,16,3]");
}

TEST_F(ShapeInferenceTest, StridedSliceMasks) {
  g.Float("x", {5, 6, 7, 8});
  g.Ints("begin", {1, 0, 0, 2});
  g.Ints("end", {-1, 0, 0, 3});
  g.Ints("strides", {1, 1, 1, 1});
  const auto mask = [](const std::string& name, int value) { return std::make_pair(name, AttrValue::Int(value)); };
  // x[1:-1, newaxis, ..., 2]
  g.Add("y", ops::kStridedSlice, {"x", "begin", "end", "strides"},
        {FloatT(), mask("new_axis_mask", 2), mask("ellipsis_mask", 4), mask("shrink_axis_mask", 8)});
  EXPECT_EQ(Shape("y"), "[3,1,6,7]");
  // x[::-1, 0:0, :0, 2:3]
  g.Ints("backwards", {-1, 1, 1, 1});
  g.Add("z", ops::kStridedSlice, {"x", "begin", "end", "backwards"},
        {FloatT(), mask("begin_mask", 5), mask("end_mask", 1)});
  EXPECT_EQ(Shape("z"), "[5,0,0,1]");
  g.Ints("far", {9});
  g.Ints("one", {1});
  g.Add("out", ops::kStridedSlice, {"x", "far", "far", "one"}, {FloatT(), mask("shrink_axis_mask", 1)});
  EXPECT_EQ(Shape("out"), "node 'out' (StridedSlice): index 9 is out of bounds for a dimension of size 5");
}

TEST_F(ShapeInferenceTest, CuttingAndJoining) {
  g.Float("x", {4, 6});
  g.Float("w", {4, kUnknownDim});
  g.Int("axis", 1);
  g.Add("concat", ops::kConcatV2, {"x", "x", "axis"}, {FloatT(), {"N", AttrValue::Int(2)}});
  EXPECT_EQ(Shape("concat"), "[4,12]");
  g.Add("concat_unknown", ops::kConcatV2, {"x", "w", "axis"}, {FloatT(), {"N", AttrValue::Int(2)}});
  EXPECT_EQ(Shape("concat_unknown"), "[4,?]");
  g.Add("split", ops::kSplit, {"axis", "x"}, {FloatT(), {"num_split", AttrValue::Int(3)}});
  EXPECT_EQ(Shape("split:2"), "[4,2]");
  EXPECT_EQ(Shape("split:3"), "<unknown>");
  g.Ints("sizes", {1, -1});
  g.Add("splitv", ops::kSplitV, {"x", "sizes", "axis"}, {FloatT(), {"num_split", AttrValue::Int(2)}});
  EXPECT_EQ(Shape("splitv:1"), "[4,5]");
  g.Add("unpack", ops::kUnpack, {"x"}, {FloatT(), {"num", AttrValue::Int(4)}});
  EXPECT_EQ(Shape("unpack:3"), "[6]");
  g.Ints("begin", {1, 2});
  g.Ints("size", {2, -1});
  g.Add("slice", ops::kSlice, {"x", "begin", "size"}, {FloatT()});
  EXPECT_EQ(Shape("slice"), "[2,4]");
  g.Ints("permutation", {1, 0});
  g.Add("transpose", ops::kTranspose, {"x", "permutation"}, {FloatT()});
  EXPECT_EQ(Shape("transpose"), "[6,4]");
  g.Ints("minus_one", {-1});
  g.Add("mean", ops::kMean, {"x", "minus_one"}, {FloatT(), {"keep_dims", AttrValue::Bool(true)}});
  EXPECT_EQ(Shape("mean"), "[4,1]");
}

TEST_F(ShapeInferenceTest, BlocksOfSpace) {
  EXPECT_EQ(Of(ops::kSpaceToDepth, {"[1,4,6,3]"}, {FloatT(), {"block_size", AttrValue::Int(2)}}), "[1,2,3,12]");
  EXPECT_EQ(Of(ops::kDepthToSpace, {"[1,2,3,12]"}, {FloatT(), {"block_size", AttrValue::Int(2)}}), "[1,4,6,3]");
  g.Float("x", {1, 7, 9, 3});
  g.Ints("block", {2, 2});
  ASSERT_TRUE(g->AddConst("edges", Tensor::FromVector<int32_t>({2, 2}, {1, 0, 1, 2})).ok());
  g.Add("y", ops::kSpaceToBatchND, {"x", "block", "edges"}, {FloatT()});
  EXPECT_EQ(Shape("y"), "[4,4,6,3]");
  g.Add("z", ops::kBatchToSpaceND, {"y", "block", "edges"}, {FloatT()});
  EXPECT_EQ(Shape("z"), "[1,7,9,3]");
}

TEST_F(ShapeInferenceTest, OldFilesMeanUnknownByAScalarPlaceholder) {
  g.Float("x", {});
  EXPECT_EQ(Shape("x"), "<unknown>");
  g->set_versions("\x22\x02\x08\x16");  // versions { producer: 22 }
  EXPECT_EQ(Shape("x"), "[]");
}

TEST_F(ShapeInferenceTest, OutputShapesAttributeIsUsedOnRequest) {
  Node* x = g.Float("x", permafrost::Shape::UnknownRank());
  x->SetAttr("_output_shapes", AttrValue::ShapeList({permafrost::Shape({1, 2})}));
  EXPECT_EQ(Shape("x"), "<unknown>");
  ShapeInferenceOptions options;
  options.use_output_shapes_attr = true;
  EXPECT_EQ(Shape("x", options), "[1,2]");
}

TEST_F(ShapeInferenceTest, UnknownOpsAndCyclesHaveUnknownShapes) {
  g.Float("x", {2});
  g.Add("foreign", Op::Named("NobodyKnowsThisOp"), {"x"});
  g.Add("behind", ops::kRelu, {"foreign"}, {FloatT()});
  Node* a = g.Add("a", ops::kRelu, {}, {FloatT()});
  g.Add("b", ops::kRelu, {"a"}, {FloatT()});
  g->AddInput(a, g.Ref("b"));
  EXPECT_EQ(Shape("behind"), "<unknown>");
  EXPECT_EQ(Shape("a"), "<unknown>");
  EXPECT_EQ(Shape("x"), "[2]");
}

TEST_F(ShapeInferenceTest, LoopsOfControlFlowAreVisited) {
  g.Float("x", {2, 3});
  g.Add("enter", ops::kEnter, {"x"}, {FloatT(), {"frame_name", Text("f")}});
  Node* merge = g.Add("merge", ops::kMerge, {"enter"}, {FloatT(), {"N", AttrValue::Int(2)}});
  g.Add("body", ops::kRelu, {"merge"}, {FloatT()});
  g.Add("next", ops::kNextIteration, {"body"}, {FloatT()});
  g->AddInput(merge, g.Ref("next"));
  EXPECT_EQ(Shape("merge:1"), "[]");
  EXPECT_EQ(Shape("body"), "<unknown>");  // The loop's result is unknown when Merge is visited.
  const ShapeMap map = *InferShapes(g.graph());
  EXPECT_EQ(map.OutputsOf(*g->Find("next")).size(), 1u);
}

TEST_F(ShapeInferenceTest, HostileSizesAreErrors) {
  const int64_t huge = int64_t{1} << 62;
  EXPECT_TRUE(absl::StrContains(Conv(absl::StrCat("[1,7,8,", huge, "]"), "[3,3,3,16]", {}), "channels"));
  EXPECT_TRUE(absl::StrContains(
      Of(ops::kSpaceToDepth, {absl::StrCat("[1,4,4,", huge, "]")}, {FloatT(), {"block_size", AttrValue::Int(4)}}),
      "exceeds 2^63 - 1"));
  EXPECT_TRUE(absl::StrContains(
      Conv("[1,7,8,3]", "[3,3,3,16]",
           {{"padding", Text("EXPLICIT")}, {"explicit_paddings", Ints({0, 0, INT64_MAX, INT64_MAX, 0, 0, 0, 0})}}),
      "exceeds 2^63 - 1"));
  EXPECT_TRUE(
      absl::StrContains(Of(ops::kDepthToSpace, {"[1,4,4,4]"}, {FloatT(), {"block_size", AttrValue::Int(INT64_MIN)}}),
                        "expected 1 to 2^31 - 1"));
}

TEST_F(ShapeInferenceTest, RankIsBounded) {
  g.Float("x0", {});
  g->set_versions("\x22\x02\x08\x16");
  g.Int("axis", 0);
  for (int i = 0; i < 300; ++i) {
    g.Add(absl::StrCat("x", i + 1), ops::kExpandDims, {absl::StrCat("x", i), "axis"}, {FloatT()});
  }
  EXPECT_EQ(Shape("x1"), "node 'x255' (ExpandDims): an output has the rank 255, expected at most 254");
}

TEST_F(ShapeInferenceTest, ALongChainNeedsNoStack) {
  std::string last = "x";
  g.Float("x", {3});
  for (int i = 0; i < 200000; ++i) {
    Node* node = *g->AddNode(absl::StrCat("n", i), ops::kRelu);
    g->AddInput(node, g.Ref(last));
    last = std::string(node->name());
  }
  EXPECT_EQ(Shape(last), "[3]");
}

// Calls every shape function with inputs and attributes that are random, missing or too many. It must return a shape or
// an error and must not crash (sanitizers run this test too).
TEST_F(ShapeInferenceTest, NoShapeFunctionTrustsItsNode) {
  std::mt19937_64 random(7);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const int64_t numbers[] = {-3, -1, 0, 1, 2, 3, 4, 255, INT32_MAX, INT64_MAX, INT64_MIN, int64_t{1} << 40};
  const char* texts[] = {"",      "SAME",        "VALID",     "EXPLICIT", "NHWC", "NCHW",
                         "NDHWC", "NCHW_VECT_C", "ab,bc->ac", "->",       ","};
  const auto number = [&] { return pick(3) == 0 ? numbers[pick(std::size(numbers))] : static_cast<int64_t>(pick(5)); };
  const auto list = [&] {
    std::vector<int64_t> values(pick(9));
    for (int64_t& value : values) value = number();
    return values;
  };
  const auto attr = [&](const AttrSpec& spec) {
    if (spec.is_list && pick(8) != 0) return AttrValue::IntList(list());
    switch (spec.kind) {
      case AttrValue::Kind::kInt:
        return AttrValue::Int(number());
      case AttrValue::Kind::kBool:
        return AttrValue::Bool(pick(2) == 0);
      case AttrValue::Kind::kType:
        return AttrValue::Type(pick(2) == 0 ? DType::kInt32 : DType::kFloat);
      case AttrValue::Kind::kString:
        return AttrValue::String(texts[pick(std::size(texts))]);
      case AttrValue::Kind::kShape:
        return AttrValue::OfShape(permafrost::Shape({2, 3}));
      default:
        return AttrValue::Float(1);
    }
  };
  size_t inferred = 0;
  for (uint32_t id = 0; id < ops::kNumKnownOps; ++id) {
    const Op op = static_cast<ops::OpId>(id);
    const OpSchema& schema = *FindSchema(op);
    for (int round = 0; round < 60; ++round) {
      TestGraph graph;
      Node* node = graph.Add("y", op);
      const size_t arity = schema.inputs.size() + (pick(6) == 0 ? pick(4) : 0);
      for (size_t i = 0; i < arity; ++i) {
        const std::string name = absl::StrCat("x", i);
        if (pick(2) == 0) {
          permafrost::Shape shape;
          for (size_t rank = pick(6); rank > 0; --rank) shape.AddDim(std::max<int64_t>(number(), kUnknownDim));
          graph.Float(name, pick(10) == 0 ? permafrost::Shape::UnknownRank() : shape);
        } else {
          std::vector<int64_t> values = list();
          const int64_t count = static_cast<int64_t>(values.size());
          const bool pairs = count % 2 == 0 && pick(2) == 0;
          const permafrost::Shape shape = count == 1 && pick(2) == 0 ? permafrost::Shape()
                                          : pairs                    ? permafrost::Shape({count / 2, 2})
                                                                     : permafrost::Shape({count});
          ASSERT_TRUE(graph->AddConst(name, Tensor::FromVector<int64_t>(shape, std::move(values))).ok());
        }
        graph->AddInput(node, graph.Ref(name));
      }
      for (const AttrSpec& spec : schema.attrs) {
        if (pick(8) != 0) node->SetAttr(spec.name, attr(spec));
      }
      const absl::StatusOr<ShapeMap> map = InferShapes(graph.graph());
      if (!map.ok()) {
        ASSERT_TRUE(absl::StrContains(map.status().message(), "node '")) << map.status();
        continue;
      }
      ++inferred;
      for (const permafrost::Shape& shape : map->OutputsOf(*node)) {
        for (int i = 0; shape.has_rank() && i < shape.rank(); ++i) ASSERT_GE(shape.dim(i), kUnknownDim) << op.name();
      }
    }
  }
  EXPECT_GT(inferred, 1000u);
}

}  // namespace
}  // namespace permafrost
