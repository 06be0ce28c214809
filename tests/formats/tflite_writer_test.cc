// Tests of writing TensorFlow Lite models: what is written is read back, and every operator of the table keeps its
// outputs.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/graph_source.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/graphdef_text.h"
#include "io/formats/npy.h"
#include "io/formats/tflite/container.h"
#include "io/formats/tflite/operator_import.h"
#include "io/formats/tflite/subgraph_export.h"
#include "io/model_file.h"
#include "runtime_check/session.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Graph> Parsed(absl::string_view text, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs) {
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDefText(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE((*graph)->DeclareInterface(inputs, outputs).ok());
  return *std::move(graph);
}

absl::StatusOr<std::string> Encoded(const Graph& graph, const TfliteLimits& limits = {}) {
  StringSink sink;
  PF_RETURN_IF_ERROR(ExportTflite(graph, limits, &sink));
  return sink.Release();
}

absl::StatusOr<TfliteContainer> Opened(const std::string& bytes) {
  auto owner = std::make_shared<const std::string>(bytes);
  return TfliteContainer::Open(FileView{*owner, owner}, uint64_t{1} << 30);
}

std::vector<std::string> OperatorsOf(const TfliteContainer& container) {
  std::vector<std::string> names;
  for (const tflite::Operator* op : *container.subgraph(0).operators()) names.push_back(container.OperatorName(*op));
  return names;
}

int VersionOf(const TfliteContainer& container, int op) {
  const auto* operators = container.subgraph(0).operators();
  const uint32_t code = operators->Get(static_cast<uint32_t>(op))->opcode_index();
  return container.model().operator_codes()->Get(code)->version();
}

constexpr char kConvolution[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 4 } dim { size: 4 } dim { size: 2 } } } } }
node { name: "w" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 1 } dim { size: 2 } dim { size: 2 } dim { size: 3 } }
    float_val: 1 float_val: 2 float_val: 3 float_val: 4 float_val: 5 float_val: 6
    float_val: 7 float_val: 8 float_val: 9 float_val: 10 float_val: 11 float_val: 12 } } } }
node { name: "b" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } }
    float_val: -1 float_val: 0 float_val: 1 } } } }
node { name: "conv" op: "Conv2D" input: "x" input: "w"
  attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "strides" value { list { i: 1 i: 2 i: 1 i: 1 } } }
  attr { key: "padding" value { s: "SAME" } } }
node { name: "sum" op: "BiasAdd" input: "conv" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Relu6" input: "sum" attr { key: "T" value { type: DT_FLOAT } } }
)";

TEST(TfliteWriterTest, FusesBiasAndActivation) {
  const std::unique_ptr<Graph> graph = Parsed(kConvolution, {"x"}, {"y"});
  const absl::StatusOr<std::string> bytes = Encoded(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<TfliteContainer> container = Opened(*bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(OperatorsOf(*container), std::vector<std::string>{"CONV_2D"});
  const tflite::Operator& op = *container->subgraph(0).operators()->Get(0);
  const auto* options = op.builtin_options_as<tflite::Conv2DOptions>();
  ASSERT_NE(options, nullptr);
  EXPECT_EQ(options->stride_h(), 2);
  EXPECT_EQ(options->stride_w(), 1);
  EXPECT_EQ(options->padding(), tflite::Padding::SAME);
  EXPECT_EQ(options->fused_activation_function(), tflite::ActivationFunctionType::RELU6);
  // OHWI: the numbers of output channel 0 come first.
  const absl::StatusOr<Tensor> filter = container->Value(container->tensor(0, op.inputs()->Get(1)));
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_EQ(filter->shape(), Shape({3, 1, 2, 2}));
  const float expected[] = {1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12};
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(filter->elements<float>()[i], expected[i]) << i;
}

TEST(TfliteWriterTest, WritesNamesSignatureBatchAndRuntime) {
  const std::unique_ptr<Graph> graph = Parsed(kConvolution, {"x"}, {"y", "sum"});
  const absl::StatusOr<std::string> bytes = Encoded(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<TfliteContainer> container = Opened(*bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  // An output is not fused away.
  EXPECT_EQ(OperatorsOf(*container), (std::vector<std::string>{"CONV_2D", "RELU6"}));
  const tflite::SubGraph& subgraph = container->subgraph(0);
  const tflite::Tensor& input = container->tensor(0, subgraph.inputs()->Get(0));
  EXPECT_EQ(input.name()->str(), "x");
  EXPECT_EQ(input.shape()->Get(0), 1);
  ASSERT_NE(input.shape_signature(), nullptr);
  EXPECT_EQ(input.shape_signature()->Get(0), -1);
  EXPECT_EQ(container->tensor(0, subgraph.outputs()->Get(0)).name()->str(), "y");
  EXPECT_EQ(container->tensor(0, subgraph.outputs()->Get(1)).name()->str(), "sum");
  const auto* signatures = container->model().signature_defs();
  ASSERT_NE(signatures, nullptr);
  ASSERT_EQ(signatures->size(), 1u);
  EXPECT_EQ(signatures->Get(0)->signature_key()->str(), "serving_default");
  EXPECT_EQ(signatures->Get(0)->outputs()->Get(1)->name()->str(), "sum");
  EXPECT_EQ(signatures->Get(0)->outputs()->Get(1)->tensor_index(), static_cast<uint32_t>(subgraph.outputs()->Get(1)));
  const auto* metadata = container->model().metadata();
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ(metadata->Get(0)->name()->str(), "min_runtime_version");
  const auto* buffer = container->model().buffers()->Get(metadata->Get(0)->buffer())->data();
  ASSERT_NE(buffer, nullptr);
  ASSERT_EQ(buffer->size(), 16u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(buffer->data())), "1.5.0");
}

TEST(TfliteWriterTest, AlignsBuffersAndSharesEqualOnes) {
  std::string text = kConvolution;
  absl::StrAppend(&text, R"(
node { name: "b2" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } }
    float_val: -1 float_val: 0 float_val: 1 } } } }
node { name: "z" op: "Mul" input: "y" input: "b2" attr { key: "T" value { type: DT_FLOAT } } })");
  const std::unique_ptr<Graph> graph = Parsed(text, {"x"}, {"z"});
  const absl::StatusOr<std::string> bytes = Encoded(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<TfliteContainer> container = Opened(*bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  const auto* operators = container->subgraph(0).operators();
  const auto buffer_of = [&](uint32_t op, uint32_t operand) {
    return container->tensor(0, operators->Get(op)->inputs()->Get(operand)).buffer();
  };
  EXPECT_EQ(buffer_of(0, 2), buffer_of(1, 1));
  // Places are those in the file, wherever it is mapped.
  const auto* base = reinterpret_cast<const uint8_t*>(bytes->data());
  int num_buffers = 0;
  for (const tflite::Buffer* buffer : *tflite::GetModel(base)->buffers()) {
    if (buffer->data() == nullptr) continue;
    ++num_buffers;
    EXPECT_EQ((buffer->data()->data() - base) % 16, 0);
  }
  EXPECT_EQ(num_buffers, 3);  // Filter, bias and the runtime's version.
}

// Constants beyond the reach of 32-bit offsets stand behind the FlatBuffer.
TEST(TfliteWriterTest, KeepsConstantsOfLargeModelsBehindTheFlatBuffer) {
  const std::unique_ptr<Graph> graph = Parsed(kConvolution, {"x"}, {"y"});
  const absl::StatusOr<std::string> small = Encoded(*graph);
  ASSERT_TRUE(small.ok()) << small.status();
  TfliteLimits limits;
  limits.max_flatbuffer_bytes = 8192;  // Far above the size, so that the first file equals the small one.
  // Enough for the tables and not for the constants: found by the writer's own bound.
  absl::StatusOr<std::string> large;
  for (; limits.max_flatbuffer_bytes > 0; limits.max_flatbuffer_bytes -= 16) {
    large = Encoded(*graph, limits);
    if (!large.ok() || *large != *small) break;
  }
  ASSERT_TRUE(large.ok()) << large.status();
  absl::StatusOr<TfliteContainer> container = Opened(*large);
  ASSERT_TRUE(container.ok()) << container.status();
  int num_outside = 0;
  for (const tflite::Buffer* buffer : *container->model().buffers()) {
    if (buffer->offset() <= 1) continue;
    ++num_outside;
    EXPECT_EQ(buffer->offset() % 16, 0u);
  }
  EXPECT_GE(num_outside, 2);
  const tflite::Operator& op = *container->subgraph(0).operators()->Get(0);
  const absl::StatusOr<Tensor> bias = container->Value(container->tensor(0, op.inputs()->Get(2)));
  ASSERT_TRUE(bias.ok()) << bias.status();
  EXPECT_EQ(bias->elements<float>()[0], -1);
  limits.max_flatbuffer_bytes = 64;
  EXPECT_TRUE(absl::IsInvalidArgument(Encoded(*graph, limits).status()));
}

TEST(TfliteWriterTest, ListsAllNodesWithoutAForm) {
  const std::unique_ptr<Graph> graph = Parsed(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_DOUBLE } }
  attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "a" op: "Exp" input: "x" attr { key: "T" value { type: DT_DOUBLE } } }
node { name: "b" op: "NoSuchOp" input: "a" }
node { name: "y" op: "Relu" input: "b" attr { key: "T" value { type: DT_DOUBLE } } }
)",
                                              {"x"}, {"y"});
  const absl::Status status = Encoded(*graph).status();
  ASSERT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "3 nodes have no form in TensorFlow Lite")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "node 'y' (Relu) as RELU: reads node 'b' (NoSuchOp) of unknown type"))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "node 'b' (NoSuchOp)")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "node 'a' (Exp) as EXP: computes with double, expected one of float"))
      << status;
}

TEST(TfliteWriterTest, ATruncatedQuotientOfFloatsHasNoForm) {
  const std::unique_ptr<Graph> graph = Parsed(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "y" op: "TruncateDiv" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
)",
                                              {"x"}, {"y"});
  const absl::Status status = Encoded(*graph).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "truncates a quotient of floats, expected integers")) << status;
}

TEST(TfliteWriterTest, RejectsGraphsThatCannotBeModels) {
  const char kCycle[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "a" op: "Add" input: "x" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "Relu" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
)";
  const absl::Status cycle = Encoded(*Parsed(kCycle, {"x"}, {"b"})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(cycle)) << cycle;
  EXPECT_TRUE(absl::StrContains(cycle.message(), "cycle")) << cycle;
  const std::unique_ptr<Graph> graph = Parsed(kConvolution, {"x"}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(Encoded(*graph).status()));
  const std::unique_ptr<Graph> missing = Parsed(kConvolution, {"nowhere"}, {"y"});
  const absl::Status status = Encoded(*missing).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "'nowhere'")) << status;
  const char kLarge[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 4294967296 } } } } }
node { name: "y" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
)";
  const absl::Status large = Encoded(*Parsed(kLarge, {"x"}, {"y"})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(large)) << large;
  EXPECT_TRUE(absl::StrContains(large.message(), "31 bits")) << large;
}

// Inputs that the schema of an op demands are missing, also inside of composed functions.
TEST(TfliteWriterTest, RejectsInvalidGraphs) {
  const char kMissing[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "e" op: "Erfc" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "m" op: "Mul" input: "x" input: "e" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "h" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.5 } } } }
node { name: "y" op: "Mul" input: "m" input: "h" attr { key: "T" value { type: DT_FLOAT } } }
)";
  const absl::Status missing = Encoded(*Parsed(kMissing, {"x"}, {"y"})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  EXPECT_TRUE(absl::StrContains(missing.message(), "node 'e' (Erfc)")) << missing;
  const char kAxis[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
  attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: 9223372036854775807 } } } }
node { name: "y" op: "ConcatV2" input: "x" input: "x" input: "a" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "Tidx" value { type: DT_INT64 } } attr { key: "N" value { i: 2 } } }
)";
  const absl::Status axis = Encoded(*Parsed(kAxis, {"x"}, {"y"})).status();
  EXPECT_FALSE(axis.ok());
  // A placeholder that is not declared is named.
  const absl::Status undeclared = Encoded(*Parsed(kConvolution, {}, {"y"})).status();
  EXPECT_TRUE(absl::IsUnimplemented(undeclared)) << undeclared;
  EXPECT_TRUE(absl::StrContains(undeclared.message(), "node 'x' (Placeholder); declare it as an input")) << undeclared;
}

// A graph of unknown shapes, ranks included, is written; sizes are those of the inputs when it runs.
TEST(TfliteWriterTest, WritesUnknownShapes) {
  const std::unique_ptr<Graph> graph = Parsed(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Tanh" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
)",
                                              {"x"}, {"y"});
  const absl::StatusOr<std::string> bytes = Encoded(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<TfliteContainer> container = Opened(*bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_FALSE(container->tensor(0, 0).has_rank());
}

// A filter of half stands behind a DEQUANTIZE in the layout of the operator; other constants of half are DEQUANTIZE
// nodes.
TEST(TfliteWriterTest, WritesWeightsOfHalf) {
  const std::unique_ptr<Graph> graph = Parsed(R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } dim { size: 2 } } } } }
node { name: "w/half" op: "Const"
  attr { key: "dtype" value { type: DT_HALF } }
  attr { key: "value" value { tensor { dtype: DT_HALF tensor_shape { dim { size: 2 } dim { size: 2 } }
    half_val: 15360 half_val: 16384 half_val: 16896 half_val: 17408 } } } }
node { name: "w" op: "Cast" input: "w/half"
  attr { key: "SrcT" value { type: DT_HALF } } attr { key: "DstT" value { type: DT_FLOAT } } }
node { name: "product" op: "MatMul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Mul" input: "product" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
)",
                                              {"x"}, {"y"});
  const absl::StatusOr<std::string> bytes = Encoded(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<TfliteContainer> container = Opened(*bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  std::vector<std::string> found = OperatorsOf(*container);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(std::count(found.begin(), found.end(), "DEQUANTIZE"), 2);
  EXPECT_EQ(found.back(), "MUL");
  for (int i = 0; i < 4; ++i) {
    const tflite::Operator& op = *container->subgraph(0).operators()->Get(static_cast<uint32_t>(i));
    EXPECT_EQ(VersionOf(*container, i), found[static_cast<size_t>(i)] == "DEQUANTIZE" ? 3 : 1);
    if (found[static_cast<size_t>(i)] != "FULLY_CONNECTED") continue;
    // The weights are the result of a DEQUANTIZE, whose operand is transposed: 1, 3, 2, 4.
    for (int k = 0; k < i; ++k) {
      const tflite::Operator& before = *container->subgraph(0).operators()->Get(static_cast<uint32_t>(k));
      if (before.outputs()->Get(0) != op.inputs()->Get(1)) continue;
      const absl::StatusOr<Tensor> half = container->Value(container->tensor(0, before.inputs()->Get(0)));
      ASSERT_TRUE(half.ok()) << half.status();
      const uint16_t bits[] = {15360, 16896, 16384, 17408};
      for (size_t e = 0; e < 4; ++e) EXPECT_EQ(half->elements<Half>()[e].bits, bits[e]) << e;
    }
  }
}

// FULLY_CONNECTED flattens its operand, but only to rows of the width of the weights.
TEST(TfliteWriterTest, OmitsTheReshapeBeforeADenseLayer) {
  const auto operators = [](absl::string_view outputs) {
    const std::unique_ptr<Graph> graph =
        Parsed(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 3 } dim { size: 1 } dim { size: 2 } } } } }
node { name: "s" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: -1 int_val: 2 } } } }
node { name: "rows" op: "Reshape" input: "x" input: "s"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tshape" value { type: DT_INT32 } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 1 } }
    float_val: 1 float_val: 2 } } } }
node { name: "y" op: "MatMul" input: "rows" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
)",
               {"x"}, outputs.empty() ? std::vector<std::string>{"y"} : std::vector<std::string>{"y", "rows"});
    const absl::StatusOr<std::string> bytes = Encoded(*graph);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    const absl::StatusOr<TfliteContainer> container = Opened(*bytes);
    EXPECT_TRUE(container.ok()) << container.status();
    return OperatorsOf(*container);
  };
  EXPECT_EQ(operators(""), std::vector<std::string>{"FULLY_CONNECTED"});
  EXPECT_EQ(operators("rows"), (std::vector<std::string>{"RESHAPE", "FULLY_CONNECTED"}));
}

TEST(TfliteWriterTest, VersionsFollowTypesAndAttributes) {
  const auto version = [](absl::string_view dtype, absl::string_view shape) {
    const std::string text = absl::StrCat(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: )",
                                          dtype, R"( } }
  attr { key: "shape" value { shape { )",
                                          shape, R"( } } } }
node { name: "y" op: "Sub" input: "x" input: "x" attr { key: "T" value { type: )",
                                          dtype, " } } }\n");
    const absl::StatusOr<std::string> bytes = Encoded(*Parsed(text, {"x"}, {"y"}));
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    const absl::StatusOr<TfliteContainer> container = Opened(*bytes);
    EXPECT_TRUE(container.ok()) << container.status();
    return VersionOf(*container, 0);
  };
  EXPECT_EQ(version("DT_FLOAT", "dim { size: 2 }"), 1);
  EXPECT_EQ(version("DT_INT64", "dim { size: 2 }"), 4);
  EXPECT_EQ(version("DT_FLOAT", "dim { size: 1 } dim { size: 1 } dim { size: 1 } dim { size: 1 } dim { size: 2 }"), 3);
}

// Every row that is written has a runtime for each version that its types need.
TEST(TfliteWriterTest, TheTableIsConsistent) {
  int num_written = 0;
  for (const absl::Span<const OperatorRow> family : {ArrayOperators(), ArithmeticOperators(), NeuralOperators(),
                                                     ControlOperators(), ResourceOperators(), VolumeOperators()}) {
    for (const OperatorRow& row : family) {
      if (row.form.write == nullptr) continue;
      ++num_written;
      SCOPED_TRACE(tflite::EnumNameBuiltinOperator(row.op));
      EXPECT_NE(row.form.ops[0], ops::kNumKnownOps);
      for (const DType dtype : {DType::kFloat, DType::kHalf, DType::kDouble, DType::kInt8, DType::kInt16, DType::kInt32,
                                DType::kInt64, DType::kUint8, DType::kUint16, DType::kUint32, DType::kBool,
                                DType::kString, DType::kComplex64, DType::kComplex128}) {
        const absl::StatusOr<int> version = VersionFor(row.form, dtype);
        if (version.ok() && row.op != tflite::BuiltinOperator::BROADCAST_TO) {
          EXPECT_TRUE(RuntimeOf(row.form, *version).ok()) << DTypeName(dtype);
        }
        const absl::StatusOr<int> of_codes = VersionForCodes(row.form, dtype);
        if (of_codes.ok()) {
          EXPECT_TRUE(RuntimeOf(row.form, *of_codes).ok()) << "codes of " << DTypeName(dtype);
        }
      }
    }
  }
  EXPECT_GE(num_written, 100);
}

std::vector<Tensor> OutputsOf(const Graph& graph, const std::vector<Tensor>& inputs, absl::Status* status) {
  std::vector<std::string> feeds, fetches;
  for (const Endpoint& input : graph.inputs()) feeds.push_back(input.text);
  for (const Endpoint& output : graph.outputs()) fetches.push_back(output.text);
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(graph, feeds, fetches);
  *status = session.status();
  if (!session.ok()) return {};
  absl::StatusOr<std::vector<Tensor>> outputs = (*session)->Run(inputs);
  *status = outputs.status();
  return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>();
}

std::unique_ptr<Graph> ReadBack(const std::string& bytes) {
  auto owner = std::make_shared<const std::string>(bytes);
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadModel(FileView{*owner, owner});
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

// A branch whose taken function has a loop, and in the loop a branch: y = x if p is false, otherwise what three
// iterations make of it, each adding x or doubling.
constexpr char kControlFlow[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape { } } } }
node { name: "choice" op: "StatelessIf" input: "p" input: "x"
  attr { key: "Tcond" value { type: DT_BOOL } } attr { key: "Tin" value { list { type: DT_FLOAT } } }
  attr { key: "Tout" value { list { type: DT_FLOAT type: DT_FLOAT } } }
  attr { key: "then_branch" value { func { name: "iterate" } } } attr { key: "else_branch" value { func { name: "same" } } } }
node { name: "y" op: "AddV2" input: "choice" input: "choice:1" attr { key: "T" value { type: DT_FLOAT } } }
library {
function { signature { name: "same" input_arg { name: "x" type: DT_FLOAT }
  output_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT } } ret { key: "a" value: "x" } ret { key: "b" value: "x" } }
function { signature { name: "iterate" input_arg { name: "x" type: DT_FLOAT }
  output_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT } }
  node_def { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
    attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
  node_def { name: "loop" op: "StatelessWhile" input: "zero:output:0" input: "x" input: "x"
    attr { key: "T" value { list { type: DT_INT32 type: DT_FLOAT type: DT_FLOAT } } }
    attr { key: "cond" value { func { name: "less" } } } attr { key: "body" value { func { name: "step" } } } }
  ret { key: "a" value: "loop:output:1" } ret { key: "b" value: "loop:output:2" } }
function { signature { name: "less" input_arg { name: "i" type: DT_INT32 } input_arg { name: "v" type: DT_FLOAT }
  input_arg { name: "x" type: DT_FLOAT } output_arg { name: "go" type: DT_BOOL } }
  node_def { name: "limit" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
    attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 3 } } } }
  node_def { name: "l" op: "Less" input: "i" input: "limit:output:0" attr { key: "T" value { type: DT_INT32 } } }
  ret { key: "go" value: "l:z:0" } }
function { signature { name: "step" input_arg { name: "i" type: DT_INT32 } input_arg { name: "v" type: DT_FLOAT }
  input_arg { name: "x" type: DT_FLOAT } output_arg { name: "j" type: DT_INT32 } output_arg { name: "w" type: DT_FLOAT }
  output_arg { name: "u" type: DT_FLOAT } }
  node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
    attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
  node_def { name: "n" op: "AddV2" input: "i" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
  node_def { name: "first" op: "Less" input: "i" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
  node_def { name: "either" op: "StatelessIf" input: "first:z:0" input: "v" input: "x"
    attr { key: "Tcond" value { type: DT_BOOL } } attr { key: "Tin" value { list { type: DT_FLOAT type: DT_FLOAT } } }
    attr { key: "Tout" value { list { type: DT_FLOAT } } }
    attr { key: "then_branch" value { func { name: "sum" } } } attr { key: "else_branch" value { func { name: "twice" } } } }
  ret { key: "j" value: "n:z:0" } ret { key: "w" value: "either:output:0" } ret { key: "u" value: "x" } }
function { signature { name: "sum" input_arg { name: "v" type: DT_FLOAT } input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
  node_def { name: "a" op: "AddV2" input: "v" input: "x" attr { key: "T" value { type: DT_FLOAT } } } ret { key: "y" value: "a:z:0" } }
function { signature { name: "twice" input_arg { name: "v" type: DT_FLOAT } input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
  node_def { name: "a" op: "AddV2" input: "v" input: "v" attr { key: "T" value { type: DT_FLOAT } } } ret { key: "y" value: "a:z:0" } }
}
)";

TEST(TfliteWriterTest, WritesNestedBranchesAndLoopsAsSubgraphs) {
  const std::unique_ptr<Graph> graph = Parsed(kControlFlow, {"x", "p"}, {"y"});
  const absl::StatusOr<std::string> bytes = Encoded(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<TfliteContainer> container = Opened(*bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(OperatorsOf(*container), (std::vector<std::string>{"IF", "ADD"}));
  EXPECT_EQ(container->model().subgraphs()->size(), 7u);
  const std::unique_ptr<Graph> again = ReadBack(*bytes);
  for (const bool p : {false, true}) {
    const std::vector<Tensor> inputs = {Tensor::FromVector(Shape({2}), std::vector<float>{1, -2}), [&] {
                                          char* data = nullptr;
                                          Tensor tensor = *Tensor::Allocate(DType::kBool, Shape(), &data);
                                          *data = p ? 1 : 0;
                                          return tensor;
                                        }()};
    absl::Status status;
    const std::vector<Tensor> outputs = OutputsOf(*again, inputs, &status);
    ASSERT_TRUE(status.ok()) << status;
    // x + x, or ((x + x) * 2 * 2) + x.
    EXPECT_EQ(outputs[0].elements<float>()[0], p ? 9 : 2);
    EXPECT_EQ(outputs[0].elements<float>()[1], p ? -18 : -4);
  }
}

TEST(TfliteWriterTest, RejectsFunctionsThatSubgraphsCannotBe) {
  const auto message = [](absl::string_view from, absl::string_view to) {
    std::string text = kControlFlow;
    EXPECT_TRUE(absl::StrContains(text, from)) << from;
    text.replace(text.find(std::string(from)), from.size(), std::string(to));
    const absl::Status status = Encoded(*Parsed(text, {"x", "p"}, {"y"})).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_PRED2([](auto a, auto b) { return absl::StrContains(a, b); },
               message("func { name: \"less\" }", "func { name: \"nowhere\" }"), "nowhere");
  EXPECT_PRED2([](auto a, auto b) { return absl::StrContains(a, b); },
               message("func { name: \"step\" }", "func { name: \"iterate\" }"), "calls itself");
  EXPECT_PRED2([](auto a, auto b) { return absl::StrContains(a, b); },
               message("func { name: \"twice\" }", "func { name: \"same\" }"), "'same' with 2 arguments, expected 1");
}

// The variable starts at 1, and each run adds x; the table is filled by an initialiser.
TEST(TfliteWriterTest, WritesVariablesAndTablesWithTheirInitialisers) {
  const std::unique_ptr<Graph> graph = Parsed(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "start" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 float_val: 1 } } } }
node { name: "v/Assign" op: "AssignVariableOp" input: "v" input: "start" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "before" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "sum" op: "AddV2" input: "before" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "assign" op: "AssignVariableOp" input: "v" input: "sum" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "after" op: "ReadVariableOp" input: "v" input: "^assign" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Mul" input: "after" input: "before" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "word" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "table" op: "HashTableV2" attr { key: "key_dtype" value { type: DT_STRING } } attr { key: "value_dtype" value { type: DT_INT64 } } }
node { name: "keys" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: "a" string_val: "b" } } } }
node { name: "values" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
  attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: 7 int64_val: 8 } } } }
node { name: "fill" op: "LookupTableImportV2" input: "table" input: "keys" input: "values"
  attr { key: "Tin" value { type: DT_STRING } } attr { key: "Tout" value { type: DT_INT64 } } }
node { name: "missing" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
  attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: -1 } } } }
node { name: "found" op: "LookupTableFindV2" input: "table" input: "word" input: "missing"
  attr { key: "Tin" value { type: DT_STRING } } attr { key: "Tout" value { type: DT_INT64 } } }
node { name: "count" op: "LookupTableSizeV2" input: "table" }
)",
                                              {"x", "word"}, {"y", "found", "count"});
  const absl::StatusOr<std::string> bytes = Encoded(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<TfliteContainer> container = Opened(*bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(OperatorsOf(*container)[0], "CALL_ONCE");
  EXPECT_EQ(container->model().subgraphs()->size(), 2u);
  const std::unique_ptr<Graph> again = ReadBack(*bytes);
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(*again, {"x", "word"}, {"y", "found", "count"});
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<Tensor> inputs = {Tensor::FromVector(Shape({2}), std::vector<float>{1, 3}),
                                      Tensor::FromStrings(Shape({2}), {"b", "c"})};
  const float expected[][2] = {{1 * 2, 1 * 4}, {2 * 3, 4 * 7}};
  for (const auto& numbers : expected) {
    const absl::StatusOr<std::vector<Tensor>> outputs = (*session)->Run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*outputs)[0].elements<float>()[0], numbers[0]);
    EXPECT_EQ((*outputs)[0].elements<float>()[1], numbers[1]);
    EXPECT_EQ((*outputs)[1].elements<int64_t>()[0], 8);
    EXPECT_EQ((*outputs)[1].elements<int64_t>()[1], -1);
    EXPECT_EQ((*outputs)[2].elements<int64_t>()[0], 2);
    EXPECT_EQ((*outputs)[2].shape(), Shape());
  }
}

// The variable holds codes, as in streaming models.
TEST(TfliteWriterTest, WritesVariablesOfCodes) {
  const std::string parameters = R"( attr { key: "quantization_axis" value { i: -1 } }
  attr { key: "quantization_min_val" value { i: -128 } } attr { key: "quantization_max_val" value { i: 127 } } })";
  const std::string int8 = R"(attr { key: "dtype" value { type: DT_INT8 } })";
  const std::unique_ptr<Graph> graph = Parsed(absl::StrCat(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "scale" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.5 } } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 3 } } } }
node { name: "codes" op: "UniformQuantize" input: "x" input: "scale" input: "zero"
  attr { key: "Tin" value { type: DT_FLOAT } } attr { key: "Tout" value { type: DT_INT8 } })",
                                                           parameters, R"(
node { name: "v" op: "VarHandleOp" attr { key: "shape" value { shape { dim { size: 2 } } } } )",
                                                           int8, R"( }
node { name: "assign" op: "AssignVariableOp" input: "v" input: "codes" )",
                                                           int8, R"( }
node { name: "after" op: "ReadVariableOp" input: "v" input: "^assign" )",
                                                           int8, R"( }
node { name: "y" op: "UniformDequantize" input: "after" input: "scale" input: "zero"
  attr { key: "Tin" value { type: DT_INT8 } } attr { key: "Tout" value { type: DT_FLOAT } })",
                                                           parameters, "\n"),
                                              {"x"}, {"y"});
  const absl::StatusOr<std::string> bytes = Encoded(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const std::unique_ptr<Graph> again = ReadBack(*bytes);
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(*again, {"x"}, {"y"});
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<std::vector<Tensor>> outputs =
      (*session)->Run({Tensor::FromVector(Shape({2}), std::vector<float>{1.6f, -3})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].elements<float>()[0], 1.5f);
  EXPECT_EQ((*outputs)[0].elements<float>()[1], -3);
}

// A node without a form becomes a Flex operator if that is allowed, and is read as the same node.
TEST(TfliteWriterTest, WritesFlexOperatorsOnRequest) {
  const std::unique_ptr<Graph> graph = Parsed(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "first" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "clipped" op: "Expm1" input: "x" input: "^first" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "parts" op: "DynamicPartition" input: "clipped" input: "which"
  attr { key: "num_partitions" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } } }
node { name: "which" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 1 int_val: 0 } } } }
node { name: "y" op: "Sub" input: "parts" input: "parts:1" attr { key: "T" value { type: DT_FLOAT } } }
)",
                                              {"x"}, {"y"});
  const absl::Status refused = Encoded(*graph).status();
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "2 nodes have no form")) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "--allow_flex")) << refused;
  TfliteLimits limits;
  limits.allow_flex = true;
  const absl::StatusOr<std::string> bytes = Encoded(*graph, limits);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<TfliteContainer> container = Opened(*bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(OperatorsOf(*container),
            (std::vector<std::string>{"CUSTOM 'FlexExpm1'", "CUSTOM 'FlexDynamicPartition'", "SUB"}));
  const std::unique_ptr<Graph> again = ReadBack(*bytes);
  const Node* partition = nullptr;
  for (const Node* node = again->first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kDynamicPartition) partition = node;
  }
  ASSERT_NE(partition, nullptr);
  EXPECT_EQ(IntAttr(*partition, "num_partitions").value_or(0), 2);
  EXPECT_EQ(partition->num_data_inputs(), 2);
  absl::Status status;
  const std::vector<Tensor> inputs = {Tensor::FromVector(Shape({2}), std::vector<float>{3, 1})};
  const std::vector<Tensor> before = OutputsOf(*graph, inputs, &status), after = OutputsOf(*again, inputs, &status);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(before[0] == after[0]);
  // Every changed byte of the options gives an error or a model; inputs never become Flex operators.
  const size_t at = bytes->find("FlexDynamicPartition");
  ASSERT_NE(at, std::string::npos);
  for (size_t i = 0; i < bytes->size(); ++i) {
    auto changed = std::make_shared<std::string>(*bytes);
    (*changed)[i] = static_cast<char>((*changed)[i] ^ 0x11);
    (void)ReadModel(FileView{*changed, changed});
  }
  const std::unique_ptr<Graph> open = Parsed(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Expm1" input: "x" attr { key: "T" value { type: DT_FLOAT } } })",
                                             {}, {"y"});
  const absl::Status undeclared = Encoded(*open, limits).status();
  EXPECT_TRUE(absl::StrContains(undeclared.message(), "declare it as an input")) << undeclared;
}

TEST(TfliteWriterTest, WritesTransposedConvolutionsOfVolumes) {
  const std::unique_ptr<Graph> graph = Parsed(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } dim { size: 1 } dim { size: 2 } dim { size: 1 } dim { size: 1 } } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 1 } dim { size: 2 } dim { size: 1 } dim { size: 2 } dim { size: 1 } }
    float_val: 1 float_val: 2 float_val: 3 float_val: 4 } } } }
node { name: "shape" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 5 } }
    int_val: 1 int_val: 1 int_val: 4 int_val: 1 int_val: 2 } } } }
node { name: "y" op: "Conv3DBackpropInputV2" input: "shape" input: "w" input: "x"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tshape" value { type: DT_INT32 } }
  attr { key: "strides" value { list { i: 1 i: 1 i: 2 i: 1 i: 1 } } } attr { key: "padding" value { s: "VALID" } } }
)",
                                              {"x"}, {"y"});
  const absl::StatusOr<std::string> bytes = Encoded(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const absl::StatusOr<TfliteContainer> container = Opened(*bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(OperatorsOf(*container), std::vector<std::string>{"CONV_3D_TRANSPOSE"});
  absl::Status status;
  const std::vector<Tensor> inputs = {Tensor::FromVector(Shape({1, 1, 2, 1, 1}), std::vector<float>{1, 10})};
  const std::vector<Tensor> outputs = OutputsOf(*ReadBack(*bytes), inputs, &status);
  ASSERT_TRUE(status.ok()) << status;
  const float expected[] = {1, 2, 3, 4, 10, 20, 30, 40};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(outputs[0].elements<float>()[i], expected[i]) << i;
}

// Returns a model of one operator without options on two vectors of two floats.
std::string BinaryModel(tflite::BuiltinOperator op) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<int32_t> shape = {2}, inputs = {0, 1}, outputs = {2};
  std::vector<flatbuffers::Offset<tflite::Tensor>> tensors;
  for (const char* name : {"a", "b", "y"}) {
    tensors.push_back(tflite::CreateTensorDirect(builder, &shape, tflite::TensorType::FLOAT32, 0, name));
  }
  const std::vector<flatbuffers::Offset<tflite::Operator>> operators = {
      tflite::CreateOperatorDirect(builder, 0, &inputs, &outputs)};
  const std::vector<flatbuffers::Offset<tflite::SubGraph>> subgraphs = {
      tflite::CreateSubGraphDirect(builder, &tensors, &inputs, &outputs, &operators)};
  const std::vector<flatbuffers::Offset<tflite::OperatorCode>> codes = {
      tflite::CreateOperatorCodeDirect(builder, 127, nullptr, 1, op)};
  const std::vector<flatbuffers::Offset<tflite::Buffer>> buffers = {tflite::CreateBuffer(builder)};
  tflite::FinishModelBuffer(builder, tflite::CreateModelDirect(builder, 3, &codes, &subgraphs, "test", &buffers));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

TEST(TfliteWriterTest, ReadsStablehloOperatorsOfElements) {
  const std::pair<tflite::BuiltinOperator, float> expected[] = {{tflite::BuiltinOperator::STABLEHLO_ADD, 5},
                                                                {tflite::BuiltinOperator::STABLEHLO_MULTIPLY, 6},
                                                                {tflite::BuiltinOperator::STABLEHLO_MAXIMUM, 3},
                                                                {tflite::BuiltinOperator::STABLEHLO_MINIMUM, 2}};
  for (const auto& [op, number] : expected) {
    const std::unique_ptr<Graph> graph = ReadBack(BinaryModel(op));
    absl::Status status;
    const std::vector<Tensor> inputs = {Tensor::FromVector(Shape({2}), std::vector<float>{2, 3}),
                                        Tensor::FromVector(Shape({2}), std::vector<float>{3, 2})};
    const std::vector<Tensor> outputs = OutputsOf(*graph, inputs, &status);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(outputs[0].elements<float>()[0], number) << tflite::EnumNameBuiltinOperator(op);
  }
}

// docs/formats/tflite.md lists exactly the operators that have no row in the table.
TEST(TfliteWriterTest, ThePageListsTheOperatorsThatAreNotRead) {
  std::set<std::string> without_row, listed;
  for (const tflite::BuiltinOperator op : tflite::EnumValuesBuiltinOperator()) {
    const bool has_row = op == tflite::BuiltinOperator::CUSTOM || FindBuiltinOperator(op) != nullptr;
    if (!has_row) without_row.insert(tflite::EnumNameBuiltinOperator(op));
  }
  const auto page = RealFileSystem().MapFile(DataFile("docs/formats/tflite.md"));
  ASSERT_TRUE(page.ok()) << page.status();
  const absl::string_view text = page->bytes;
  const size_t begin = text.find("<!-- operators without a row -->");
  ASSERT_NE(begin, absl::string_view::npos);
  const absl::string_view list = text.substr(begin, text.find("<!-- end -->", begin) - begin);
  for (const absl::string_view word : absl::StrSplit(list, absl::ByAnyChar(" ,.\n"), absl::SkipEmpty())) {
    if (std::all_of(word.begin(), word.end(),
                    [](char c) { return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '_'; }) &&
        word.size() > 2) {
      listed.emplace(word);
    }
  }
  EXPECT_EQ(listed, without_row);
}

// Models that were recorded for the reader: written and read again, they give the same outputs bit for bit, since the
// graph is the same but for names. Quantised ones are run by integer kernels.
TEST(TfliteWriterTest, RecordedModelsSurviveARoundTrip) {
  int num_written = 0, num_quantized = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(DataFile("tests/formats/tflite"))) {
    if (entry.path().filename() != "model.tflite") continue;
    SCOPED_TRACE(entry.path().string());
    absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), entry.path().string());
    if (!graph.ok()) continue;
    AttachSource(graph->get(), nullptr);  // Otherwise the file would be written as it is.
    const absl::StatusOr<std::string> bytes = Encoded(**graph);
    if (absl::IsUnimplemented(bytes.status())) continue;
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    auto owner = std::make_shared<const std::string>(*bytes);
    const absl::StatusOr<std::unique_ptr<Graph>> again = ReadModel(FileView{*owner, owner});
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ((*again)->inputs().size(), (*graph)->inputs().size());
    ASSERT_EQ((*again)->outputs().size(), (*graph)->outputs().size());
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < (*graph)->inputs().size(); ++i) {
      const auto file =
          RealFileSystem().MapFile((entry.path().parent_path() / absl::StrCat("input_0_", i, ".npy")).string());
      if (!file.ok()) break;
      const absl::StatusOr<Tensor> input = ParseNpy(file->bytes, file->owner);
      if (!input.ok()) break;  // Strings of variable length.
      inputs.push_back(*input);
    }
    if (inputs.size() != (*graph)->inputs().size()) continue;
    absl::Status status;
    const std::vector<Tensor> before = OutputsOf(**graph, inputs, &status);
    if (!status.ok()) continue;
    const std::vector<Tensor> after = OutputsOf(**again, inputs, &status);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(after[i] == before[i]) << "output " << i;
    ++num_written;
    bool is_quantized = false;
    for (const Node* node = (*graph)->first(); node != nullptr; node = node->next()) {
      is_quantized |= node->HasAttr(kRoundingAttr);
    }
    num_quantized += is_quantized ? 1 : 0;
  }
  EXPECT_GE(num_written, 8);
  EXPECT_GE(num_quantized, 22);
}

}  // namespace
}  // namespace permafrost
