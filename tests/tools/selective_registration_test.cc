// Tests of selective registration for TensorFlow: the choice of kernels, devices, lists and the header.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/graph.h"
#include "tools/selective/kernel_classes.h"
#include "tools/selective/model_nodes.h"
#include "tools/selective/tensorflow_header.h"

namespace permafrost {
namespace {

using Attrs = std::vector<Attr>;

Attr Type(absl::string_view key, DType type) { return {key, AttrValue::Type(type)}; }

std::string Answer(KernelClasses* classes, absl::string_view op, const Attrs& attrs, absl::string_view device = "") {
  const absl::StatusOr<std::string> found = classes->Find(op, device, attrs);
  return found.ok() ? *found : std::string(found.status().message());
}

TEST(KernelClassesTest, ChoosesAsTensorFlowDoes) {
  KernelClasses classes = KernelClasses::OfTensorFlow().value();
  EXPECT_EQ(Answer(&classes, "Reshape", {Type("T", DType::kFloat)}), "ReshapeOp");
  EXPECT_EQ(Answer(&classes, "MatMul", {Type("T", DType::kFloat)}),
            "BatchMatMulOp<CPUDevice, float, float, float, true>");
  EXPECT_EQ(Answer(&classes, "MatMul", {Type("T", DType::kDouble)}),
            "BatchMatMulOp<CPUDevice, double, double, double, true>");
  EXPECT_EQ(Answer(&classes, "BiasAdd", {Type("T", DType::kFloat)}), "BiasOp<CPUDevice, float>");
}

TEST(KernelClassesTest, TakesDefaultsForMissingAttributes) {
  KernelClasses classes = KernelClasses::OfTensorFlow().value();
  EXPECT_EQ(Answer(&classes, "Shape", {Type("T", DType::kFloat)}), "ShapeOp<int32>");
  EXPECT_EQ(Answer(&classes, "Shape", {Type("T", DType::kFloat), Type("out_type", DType::kInt64)}), "ShapeOp<int64_t>");
}

TEST(KernelClassesTest, SaysWhatIsMissing) {
  KernelClasses classes = KernelClasses::OfTensorFlow().value();
  EXPECT_EQ(Answer(&classes, "FrobnicateV7", {}), "TensorFlow has no kernel of op 'FrobnicateV7'");
  EXPECT_EQ(Answer(&classes, "BiasAdd", {}).substr(0, 51), "no kernel of op 'BiasAdd' for T = not known (there ");
  EXPECT_EQ(Answer(&classes, "Softmax", {Type("T", DType::kInt32)}),
            "no kernel of op 'Softmax' for T = int32 (there are bfloat16, double, float, half)");
  EXPECT_EQ(Answer(&classes, "Softmax", {Type("T", DType::kFloat)}, "cpu"), "device 'cpu' is no name of a device");
  EXPECT_EQ(Answer(&classes, "Softmax", {Type("T", DType::kFloat)}, "/device:TPU:0"),
            "no kernel of op 'Softmax' on device type 'TPU' for T = float");
}

TEST(KernelClassesTest, HonoursDeviceAndLabel) {
  KernelClasses classes = KernelClasses::OfTensorFlow().value();
  const Attrs is_float = {Type("T", DType::kFloat)};
  EXPECT_EQ(Answer(&classes, "BiasAdd", is_float, "/gpu:0"), "BiasOp<GPUDevice, float>");
  EXPECT_EQ(Answer(&classes, "Relu", is_float, "/job:a/replica:0/task:1/device:CPU:0"), "ReluOp<CPUDevice, float>");
  // Kernels for any device are used if there is none for this device.
  EXPECT_EQ(Answer(&classes, "NoOp", {}, "/device:TPU:0"), "NoOp");
  EXPECT_EQ(Answer(&classes, "Relu", {is_float[0], {"_kernel", AttrValue::String("other")}}).substr(0, 25),
            "no kernel of op 'Relu' fo");
}

TEST(KernelClassesTest, RefusesABadTable) {
  for (const auto& [table, message] : std::vector<std::pair<std::string, std::string>>{
           {" @=cpu: A\n", "table of kernels: line ' @=cpu: A' belongs to no op"},
           {"type 1 float a b\n",
            "table of kernels: line 'type 1 float a b' is not a number, a name and four spellings"},
           {"type 1 float . b c d\n", "table of kernels: line 'type 1 float . b c d' has no first spelling"},
           {"set S0\n", "table of kernels: line 'set S0' is not a name and values"}}) {
    EXPECT_EQ(KernelClasses::Parse(table).status().message(), message);
  }
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {" @=cpu", "table of kernels: line '@=cpu' has no class"},
           {" T=float: A", "table of kernels: line 'T=float: A' names no device"},
           {" !x @=cpu: A", "table of kernels: line '!x @=cpu: A' has no number after '!'"},
           {" cpu: A", "table of kernels: line 'cpu: A' has a word without '='"}}) {
    const std::string table = absl::StrCat("A\n", line, "\n");
    KernelClasses classes = KernelClasses::Parse(table).value();
    EXPECT_EQ(Answer(&classes, "A", {}), message);
  }
}

TEST(KernelClassesTest, ReadsPrioritiesListsAndStyles) {
  const std::string table =
      "type 1 float float . . .\n"
      "type 3 int32 ::int32_t int32 int32_t int32\n"
      "set S0 float,int32\n"
      "A T=int32\n"
      " @=cpu T=S0: Low<{T}, {T:1}, {T:2}, {@}>\n"
      " !2 @=cpu T=float: High\n"
      "B\n"
      " @=cpu Ts*=S0: List\n"
      "C\n"
      " @=any: One\n"
      " @=any: Other\n";
  KernelClasses classes = KernelClasses::Parse(table).value();
  EXPECT_EQ(Answer(&classes, "A", {}), "Low<::int32_t, int32, int32_t, CPUDevice>");
  EXPECT_EQ(Answer(&classes, "A", {Type("T", DType::kFloat)}), "High");
  EXPECT_EQ(Answer(&classes, "B", {{"Ts", AttrValue::TypeList({DType::kFloat, DType::kInt32})}}), "List");
  EXPECT_EQ(Answer(&classes, "B", {{"Ts", AttrValue::TypeList({DType::kFloat, DType::kInt64})}}),
            "no kernel of op 'B' for Ts = float,int64 (there are float, int32)");
  EXPECT_EQ(Answer(&classes, "C", {}), "op 'C' has several kernels for this node");
}

TEST(KernelClassesTest, GivesUpWhereAConditionAsksForAnAttributeThatIsNotThere) {
  const std::string table =
      "A\n"
      " @=cpu T=float U=float: Both\n"
      " @=cpu T=float,int32: One\n";
  KernelClasses classes = KernelClasses::Parse(table).value();
  EXPECT_EQ(Answer(&classes, "A", {Type("T", DType::kFloat), Type("U", DType::kFloat)}),
            "op 'A' has several kernels for this node");
  EXPECT_EQ(Answer(&classes, "A", {Type("T", DType::kFloat), Type("U", DType::kInt32)}), "One");
  EXPECT_EQ(Answer(&classes, "A", {Type("T", DType::kFloat)}),
            "no kernel of op 'A' for T = float, U = not known (there are float)");
  // The condition on U is not evaluated, since the one on T before it does not hold.
  EXPECT_EQ(Answer(&classes, "A", {Type("T", DType::kInt32)}), "One");
}

TEST(KernelClassesTest, KnowsFusedConvolutionsOfOneDnn) {
  // The attributes are those that oneDNN's rewriting of a quantised graph sets.
  KernelClasses classes = KernelClasses::OfTensorFlow().value();
  const Attrs attrs = {Type("Tinput", DType::kQUint8), Type("Tfilter", DType::kQInt8), Type("Tbias", DType::kFloat),
                       Type("out_type", DType::kQInt32)};
  for (const char* const op : {"_FusedQuantizedConv2D", "_FusedQuantizedDepthwiseConv2D"}) {
    // The kernels for other output types have a condition on Tsummand, which has no default.
    EXPECT_EQ(Answer(&classes, op, attrs),
              absl::StrCat("no kernel of op '", op,
                           "' for Tinput = quint8, Tfilter = qint8, Tbias = float, Tsummand = not known (there are "
                           "qint8, quint8), out_type = qint32"));
    Attrs complete = attrs;
    complete.push_back(Type("Tsummand", DType::kQInt32));
    EXPECT_EQ(Answer(&classes, op, complete),
              absl::StrCat("MklQuantizedConvOp <CPUDevice, quint8, float, qint32, qint32, ",
                           op[15] == 'D' ? "true" : "false", ", quantized_fusions::none, -1>"));
  }
}

TEST(DeviceTypeTest, ReadsNames) {
  for (const auto& [name, type] : std::vector<std::pair<std::string, std::string>>{{"/cpu:0", "CPU"},
                                                                                   {"/gpu:*", "GPU"},
                                                                                   {"/device:XLA_CPU:0", "XLA_CPU"},
                                                                                   {"/device:cpu:0", "cpu"},
                                                                                   {"/job:worker/task:3", ""},
                                                                                   {"/", ""}}) {
    ASSERT_TRUE(DeviceTypeOf(name).ok()) << name;
    EXPECT_EQ(*DeviceTypeOf(name), type) << name;
  }
  for (const char* const name : {"cpu:0", "/cpu", "/cpu:x", "/job:", "/device:", "/device:CPU:x", "//", "/task:a"}) {
    EXPECT_FALSE(DeviceTypeOf(name).ok()) << name;
  }
}

TEST(DefaultOpsTest, SplitsAtCommasOutsideOfBrackets) {
  const OpsAndKernels pairs = ParseDefaultOps("NoOp:NoOp,Add:BinaryOp<CPUDevice, functor::add<float>>").value();
  ASSERT_EQ(pairs.size(), 2);
  EXPECT_EQ(*pairs.begin()->kernel, "BinaryOp<CPUDevice, functor::add<float>>");
  EXPECT_TRUE(ParseDefaultOps("")->empty());
  EXPECT_EQ(ParseDefaultOps("NoOp").status().message(), "found 'NoOp', expected op:kernel");
  EXPECT_EQ(ParseDefaultOps("NoOp:NoOp,").status().message(), "found '', expected op:kernel");
  EXPECT_EQ(ParseDefaultOps(":NoOp").status().message(), "found ':NoOp', expected op:kernel");
}

TEST(OpsListTest, ReadsWhatItWrites) {
  const OpsAndKernels pairs = {{"A", std::nullopt}, {"A", "K<\"x\">"}, {"B", "K"}};
  const std::string text = OpsList(pairs);
  EXPECT_EQ(text, "[\n  [\"A\", null],\n  [\"A\", \"K<\\\"x\\\">\"],\n  [\"B\", \"K\"]\n]\n");
  EXPECT_EQ(OpsList(ParseOpsList(text).value()), text);
  EXPECT_EQ(OpsList(ParseOpsList("[[\"A\", \"\"]]").value()), "[\n  [\"A\", null]\n]\n");
  for (const char* const bad : {"{}", "[1]", "[[\"A\"]]", "[[1, \"K\"]]", "[[\"A\", 1]]", "["}) {
    EXPECT_FALSE(ParseOpsList(bad).ok()) << bad;
  }
}

TEST(HeaderTest, ListsEachOpAndKernelOnce) {
  const std::string header = TensorFlowHeader({{"A", "K<x, y>"}, {"A", "L"}, {"B", "L"}});
  EXPECT_NE(header.find("kNumOps = 2;\nconstexpr const char* kOps[] = {\n    \"A\",\n    \"B\",\n};"), header.npos);
  EXPECT_NE(header.find("kNumKernels = 2;"), header.npos);
  EXPECT_NE(header.find("SHOULD_REGISTER_OP_GRADIENT false"), header.npos);
  EXPECT_NE(TensorFlowHeader({{"SymbolicGradient", "K"}}).find("OP_GRADIENT true"), header.npos);
  // An array must have an element, and the contents of a list cannot leave its literal.
  EXPECT_NE(TensorFlowHeader({{"A", std::nullopt}})
                .find("kNumKernels = 0;\nconstexpr const char* kKernels[] = {\n    nullptr,"),
            header.npos);
  EXPECT_NE(TensorFlowHeader({{"A\"\n", "K"}}).find("\"A\\\"\\n\""), header.npos);
}

TEST(VisitNodesTest, VisitsManyNodesOnce) {
  constexpr int kNodes = 100000;
  Graph graph;
  for (int i = 0; i < kNodes; ++i) {
    Node* node = graph.AddNode(absl::StrCat("n", i), ops::kRelu).value();
    node->SetAttr("T", AttrValue::Type(DType::kFloat));
  }
  KernelClasses classes = KernelClasses::OfTensorFlow().value();
  OpsAndKernels pairs;
  int visited = 0;
  ASSERT_TRUE(VisitNodes(graph, [&](const ModelNode& node) {
                ++visited;
                pairs.insert({std::string(node.op), classes.Find(node.op, node.device, node.attrs).value()});
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(visited, kNodes);
  EXPECT_EQ(pairs.size(), 1);
}

}  // namespace
}  // namespace permafrost
