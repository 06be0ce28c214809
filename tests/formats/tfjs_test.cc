// Tests of TensorFlow.js graph models: all types and encodings of weights, shards, the signature, and errors.
#include "io/formats/tfjs.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/tfjs_weights.h"
#include "io/model_file.h"
#include "tests/io/test_in_folder.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;

template <typename T>
std::string Raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

class TfjsTest : public TestInFolder {
 protected:
  absl::StatusOr<std::unique_ptr<Graph>> Open(const std::string& json, const OpenOptions& options = {}) const {
    Put("model.json", json);
    return OpenModel(RealFileSystem(), (folder_ / "model.json").string(), options);
  }

  // Returns the error without path and format.
  std::string Refusal(const std::string& json, const OpenOptions& options = {}) const {
    const absl::StatusOr<std::unique_ptr<Graph>> graph = Open(json, options);
    if (graph.ok()) return "was read";
    const std::string shown = absl::StrReplaceAll(graph.status().message(),
                                                  {{(folder_ / "model.json").string(), "M"}, {folder_.string(), "F"}});
    return absl::StrReplaceAll(shown, {{"'M': cannot be read as a tfjs graph model: ", ""}});
  }

  // Returns a model with one constant of type `dtype`, whose manifest entry is `weight` and whose only shard is
  // "w.bin".
  static std::string OneWeight(const std::string& dtype, const std::string& dims, const std::string& weight) {
    return absl::StrCat(R"({"format": "graph-model", "modelTopology": {"node": [{"name": "c", "op": "Const", "attr":
      {"dtype": {"type": ")",
                        dtype, R"("}, "value": {"tensor": {"dtype": ")", dtype, R"(", "tensorShape": {"dim": [)", dims,
                        R"(]}}}}}]},
      "weightsManifest": [{"paths": ["w.bin"], "weights": [)",
                        weight, R"(]}]})");
  }

  Tensor Value(const std::string& json) const {
    const absl::StatusOr<std::unique_ptr<Graph>> graph = Open(json);
    EXPECT_TRUE(graph.ok()) << graph.status();
    if (!graph.ok()) return Tensor();
    const absl::StatusOr<Tensor> value = ConstValue(*(*graph)->Find("c"));
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value : Tensor();
  }
};

TEST_F(TfjsTest, ReadsEveryTypeAsItIs) {
  const struct {
    const char* dtype;
    const char* type;
    DType expected;
    std::string bytes;
  } cases[] = {
      {"float32", "DT_FLOAT", DType::kFloat, Raw<float>({1.5f, -2})},
      {"int32", "DT_INT32", DType::kInt32, Raw<int32_t>({7, -8})},
      {"bool", "DT_BOOL", DType::kBool, std::string("\1\0", 2)},
      {"uint8", "DT_UINT8", DType::kUint8, "ab"},
      {"uint16", "DT_UINT16", DType::kUint16, Raw<uint16_t>({1, 65535})},
      {"float16", "DT_HALF", DType::kHalf, Raw<uint16_t>({0x3c00, 0xc000})},
      {"complex64", "DT_COMPLEX64", DType::kComplex64, Raw<float>({1, 2, 3, 4})},
  };
  for (const auto& c : cases) {
    Put("w.bin", c.bytes);
    const Tensor value = Value(OneWeight(c.type, R"({"size": "2"})",
                                         absl::StrCat(R"({"name": "c", "shape": [2], "dtype": ")", c.dtype, "\"}")));
    EXPECT_EQ(value.dtype(), c.expected);
    EXPECT_EQ(value.shape(), Shape({2}));
    EXPECT_EQ(value.bytes(), c.bytes) << c.dtype;
  }
}

TEST_F(TfjsTest, ReadsStrings) {
  Put("w.bin", std::string("\3\0\0\0abc\0\0\0\0", 11));
  const Tensor value =
      Value(OneWeight("DT_STRING", R"({"size": "2"})", R"({"name": "c", "shape": [2], "dtype": "string"})"));
  EXPECT_EQ(value.strings(), (std::vector<std::string>{"abc", ""}));
}

TEST_F(TfjsTest, DecodesWeights) {
  const auto quantized = [](const std::string& type, const std::string& codes) {
    return absl::StrCat(R"({"name": "c", "shape": [3], "dtype": ")", type, R"(", "quantization": )", codes, "}");
  };
  const std::string dim = R"({"size": 3})";
  Put("w.bin", std::string("\0\1\xff", 3));
  Tensor value =
      Value(OneWeight("DT_FLOAT", dim, quantized("float32", R"({"dtype": "uint8", "scale": 0.1, "min": -1.5})")));
  EXPECT_EQ(value.elements<float>()[0], -1.5f);
  EXPECT_EQ(value.elements<float>()[1], static_cast<float>(0.1 - 1.5));
  EXPECT_EQ(value.elements<float>()[2], static_cast<float>(255 * 0.1 - 1.5));
  value = Value(OneWeight("DT_INT32", dim, quantized("int32", R"({"dtype": "uint8", "scale": 0.5, "min": -3})")));
  EXPECT_EQ(value.elements<int32_t>()[1], -2) << "-2.5 rounds up, as in JavaScript";
  EXPECT_EQ(value.elements<int32_t>()[2], 125);
  Put("w.bin", Raw<uint16_t>({0, 1, 65535}));
  value = Value(OneWeight("DT_FLOAT", dim, quantized("float32", R"({"dtype": "uint16", "scale": 2, "min": 1})")));
  EXPECT_EQ(value.elements<float>()[2], 131071.0f);
  Put("w.bin", Raw<uint16_t>({0x3c00, 0x7c00, 0x0001}));
  value = Value(OneWeight("DT_FLOAT", dim, quantized("float32", R"({"dtype": "float16"})")));
  EXPECT_EQ(value.elements<float>()[0], 1.0f);
  EXPECT_TRUE(std::isinf(value.elements<float>()[1]));
  EXPECT_EQ(value.elements<float>()[2], std::ldexp(1.0f, -24));
}

TEST_F(TfjsTest, ConvertsToTheDeclaredTypeOfTheNode) {
  Put("w.bin", Raw<int32_t>({1, -2}));
  const std::string weight = R"({"name": "c", "shape": [2], "dtype": "int32"})";
  const Tensor value = Value(OneWeight("DT_INT64", R"({"size": 2})", weight));
  EXPECT_EQ(value.dtype(), DType::kInt64);
  EXPECT_EQ(value.elements<int64_t>()[1], -2);
  EXPECT_EQ(Refusal(OneWeight("DT_UINT8", R"({"size": 2})", weight)),
            "node 'c' (Const): weight 'c': element 1 is -2, which the type of the node cannot represent");
  EXPECT_EQ(Refusal(OneWeight("DT_FLOAT", R"({"size": 2})", weight)),
            "node 'c' (Const): weight 'c': the weight is int32, but the node is float");
  EXPECT_EQ(Refusal(OneWeight("DT_INT32", R"({"size": 3})", weight)),
            "node 'c' (Const): has the shape [3], but its weight [2]");
}

TEST_F(TfjsTest, JoinsShardsAndViewsSingleOnes) {
  const std::string bytes = Raw<float>({1, 2, 3, 4, 5});
  Put("1", bytes.substr(0, 6));
  Put("2", "");
  Put("3", bytes.substr(6));
  const std::string json = R"({"modelTopology": {"node": [
    {"name": "a", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}},
    {"name": "b", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}},
    {"name": "e", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}}]},
    "weightsManifest": [{"paths": ["1", "2", "3"], "weights": [
      {"name": "a", "shape": [2], "dtype": "float32"}, {"name": "e", "shape": [0], "dtype": "float32"},
      {"name": "b", "shape": [1, 3], "dtype": "float32"}]}]})";
  const absl::StatusOr<std::unique_ptr<Graph>> graph = Open(json);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto value = [&](const char* name) { return *ConstValue(*(*graph)->Find(name)); };
  EXPECT_EQ(value("a").elements<float>()[1], 2);
  EXPECT_EQ(value("b").elements<float>()[2], 5);
  EXPECT_EQ(value("b").shape(), Shape({1, 3}));
  EXPECT_EQ(value("e").num_elements(), 0);
  // Returns the same mapped bytes each time instead of a copy.
  EXPECT_EQ(value("b").bytes().data(), value("b").bytes().data());
}

TEST_F(TfjsTest, ReadsWhatConvertersWrite) {
  Put("w.bin", Raw<float>({2}));
  const absl::StatusOr<std::unique_ptr<Graph>> graph = Open(R"( {"format": "graph-model", "generatedBy": "2.8.0",
    "userDefinedMetadata": {"signature": {"inputs": {"x:0": {"name": "x:0"}}, "outputs": {"out": {"name": "y:0"}, "c": {}}}},
    "modelTopology": {"node": [
      {"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"},
        "shape": {"shape": {"dim": [{"size": "-1"}, {"size": "3"}]}}}},
      {"name": "c", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"},
        "value": {"tensor": {"dtype": "DT_FLOAT", "tensorShape": {}}}}},
      {"name": "y", "op": "Mul", "input": ["x", "c"], "attr": {"T": {"type": "DT_FLOAT"}, "someday": {"new": 1},
        "s": {"s": "TkhXQw=="}, "l": {"list": {"i": ["1", "-9223372036854775808"]}}, "f": {"f": "NaN"}}}],
      "library": {}, "versions": {"producer": 716}},
    "weightsManifest": [{"paths": ["w.bin"], "weights": [{"name": "c", "shape": [], "dtype": "float32"}]}]})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ((*graph)->inputs().size(), 1u);
  EXPECT_EQ((*graph)->inputs()[0].text, "x");
  ASSERT_EQ((*graph)->outputs().size(), 2u);
  EXPECT_EQ((*graph)->outputs()[0].text, "y");
  EXPECT_EQ((*graph)->outputs()[1].text, "c");
  const Node* y = (*graph)->Find("y");
  EXPECT_EQ(*StringAttr(*y, "s"), "NHWC");
  EXPECT_EQ((*IntListAttr(*y, "l"))[1], std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(std::isnan(*FloatAttr(*y, "f")));
  EXPECT_EQ(*ShapeAttr(*(*graph)->Find("x"), "shape"), Shape({-1, 3}));
}

TEST_F(TfjsTest, RewritesOpsToTensorFlowOps) {
  Put("w.bin", Raw<float>({1, 2, 3}));
  const absl::StatusOr<std::unique_ptr<Graph>> graph = Open(R"({"modelTopology": {"node": [
    {"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"}}},
    {"name": "w", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}},
    {"name": "b", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}},
    {"name": "a", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}},
    {"name": "d", "op": "FusedDepthwiseConv2dNative", "input": ["x", "w", "b"], "attr": {"T": {"type": "DT_FLOAT"},
      "num_args": {"i": "1"}, "explicit_paddings": {"list": {}}, "padding": {"s": "U0FNRQ=="},
      "strides": {"list": {"i": ["1", "1", "1", "1"]}}, "fused_ops": {"list": {"s": ["Qmlhc0FkZA==", "UmVsdTY="]}}}},
    {"name": "f", "op": "_FusedConv2D", "input": ["d", "w", "b", "a", "^x"], "attr": {"T": {"type": "DT_FLOAT"},
      "num_args": {"i": "2"}, "padding": {"s": "U0FNRQ=="}, "strides": {"list": {"i": ["1", "1", "1", "1"]}},
      "fused_ops": {"list": {"s": ["Qmlhc0FkZA==", "UHJlbHU="]}}}},
    {"name": "y", "op": "Prelu", "input": ["f", "a"]}]},
    "weightsManifest": [{"paths": ["w.bin"], "weights": [{"name": "w", "shape": [1, 1, 1, 1], "dtype": "float32"},
      {"name": "b", "shape": [1], "dtype": "float32"}, {"name": "a", "shape": [1], "dtype": "float32"}]}]})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->Find("d")->op(), ops::k_FusedDepthwiseConv2dNative);
  EXPECT_FALSE((*graph)->Find("d")->HasAttr("explicit_paddings"));
  const Node* fused = (*graph)->Find("f/fused");
  ASSERT_NE(fused, nullptr);
  EXPECT_EQ(*StringListAttr(*fused, "fused_ops"), std::vector<std::string>{"BiasAdd"});
  EXPECT_EQ(*IntAttr(*fused, "num_args"), 1);
  EXPECT_EQ(fused->num_data_inputs(), 3);
  EXPECT_EQ(fused->num_inputs(), 4);
  EXPECT_EQ(*TypeListAttr(*fused, "TArgs"), std::vector<DType>{DType::kFloat});
  for (const char* name : {"f", "y"}) {
    const Node* sub = (*graph)->Find(name);
    EXPECT_EQ(sub->op(), ops::kSub);
    EXPECT_EQ(sub->input(0).node->op(), ops::kRelu);
    EXPECT_EQ(sub->input(1).node->op(), ops::kMul);
    EXPECT_EQ(sub->input(1).node->input(0).node->name(), "a");
    EXPECT_EQ(sub->input(1).node->input(1).node->input(0).node->op(), ops::kNeg);
  }
}

TEST_F(TfjsTest, FillsConstantsOfFunctions) {
  Put("w.bin", Raw<float>({1, 2}));
  const absl::StatusOr<std::unique_ptr<Graph>> graph = Open(R"({"modelTopology": {"node": [
    {"name": "x", "op": "NoOp"}], "library": {"function": [{"signature": {"name": "f"}, "nodeDef": [
      {"name": "c", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}, "value": {"tensor": {"dtype": "DT_FLOAT",
        "tensorShape": {"dim": [{"size": "2"}]}}}}}]}]}},
    "weightsManifest": [{"paths": ["w.bin"], "weights": [{"name": "c", "shape": [2], "dtype": "float32"}]}]})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_NE((*graph)->library().find(Raw<float>({1, 2})), absl::string_view::npos);
}

TEST_F(TfjsTest, PathsStayInTheFolder) {
  for (const char* path : {"a.bin", "sub/a.bin", "..a", "a..b", "./a"}) EXPECT_TRUE(StaysInFolder(path)) << path;
  for (const char* path : {"", "/a", "../a", "sub/../../a", "a/..", "~/a", "C:a", "file:a", "a\\b"}) {
    EXPECT_FALSE(StaysInFolder(path)) << path;
  }
  EXPECT_FALSE(StaysInFolder(absl::string_view("a\0b", 3)));
}

TEST_F(TfjsTest, RejectsOtherFiles) {
  EXPECT_EQ(Refusal("{"), "line 1, column 2: expected a key in double quotes");
  EXPECT_EQ(Refusal("{\"a\": 1, \"a\": 2}"), "line 1, column 17: the object has the key 'a' twice");
  EXPECT_EQ(Refusal("{\"format\": \"graph-model\"}"),
            "the JSON has no member 'modelTopology', expected the model.json of a graph model");
  EXPECT_EQ(Refusal(R"({"modelTopology": {"model_config": {}}, "weightsManifest": []})").substr(0, 44),
            "the JSON is a layers model (Keras), expected");
  EXPECT_EQ(Refusal(R"({"modelTopology": 3})"), "member 'modelTopology': expected an object with an array 'node'");
  EXPECT_EQ(Refusal(R"({"modelTopology": {"node": [{"name": "a", "op": 7}]}})").substr(0, 23),
            "member 'modelTopology':");
  EXPECT_EQ(Refusal(absl::StrCat(R"({"modelTopology": {"node": [)", std::string(100000, '['))).substr(0, 13),
            "line 1, colum");
  EXPECT_EQ(Refusal(R"({"modelTopology": {"node": [{"name": "a", "op": "Relu", "input": ["b"]}]}})").substr(0, 65),
            "node 'a' (Relu) at index 0: input 0 is 'b', but there is no such ");
  EXPECT_EQ(Refusal(R"({"modelTopology": {"node": [{"name": "p", "op": "Prelu"}]}})"),
            "node 'p' (Prelu): has 0 inputs, expected 2");
  EXPECT_EQ(ReadModel({OneWeight("DT_FLOAT", "", "{}"), nullptr}).status().message(),
            "cannot be read as a tfjs graph model: the weights are in other files, expected a model with a path");
}

TEST_F(TfjsTest, RejectsManifestsThatDoNotMatchTheShards) {
  const std::string dims = R"({"size": 2})";
  const auto one = [&](const std::string& weight) { return OneWeight("DT_FLOAT", dims, weight); };
  EXPECT_EQ(Refusal(one(R"({"name": "c", "shape": [2], "dtype": "float32"})")),
            "weightsManifest[0]: cannot open 'F/w.bin': No such file or directory");
  Put("w.bin", Raw<float>({1, 2}));
  EXPECT_EQ(
      Refusal(one(R"({"name": "c", "shape": [3], "dtype": "float32"})")),
      "weightsManifest[0]: weight 'c': byte 0 of the shards: the 8 bytes that are left do not hold its 3 elements");
  EXPECT_EQ(Refusal(one(R"({"name": "c", "shape": [1], "dtype": "float32"})")),
            "weightsManifest[0]: the shards have 8 bytes, expected the 4 bytes of the weights");
  EXPECT_EQ(Refusal(one(R"({"name": "c", "shape": [4294967296, 4294967296], "dtype": "float32"})")).substr(0, 31),
            "weightsManifest[0]: weight 'c':");
  EXPECT_EQ(Refusal(one(R"({"name": "c", "shape": [9007199254740992], "dtype": "string"})")),
            "weightsManifest[0]: weight 'c': byte 0 of the shards: the 8 bytes that are left do not hold its "
            "9007199254740992 elements");
  EXPECT_EQ(
      Refusal(one(R"({"name": "c", "shape": [2], "dtype": "string"})")),
      "weightsManifest[0]: weight 'c': byte 0 of the shards: the 8 bytes that are left do not hold its 2 elements");
  EXPECT_EQ(Refusal(one(R"({"name": "c", "shape": [-1], "dtype": "float32"})")),
            "weightsManifest[0]: weight 'c': member 'shape': expected integers of 0 or more");
  EXPECT_EQ(Refusal(one(R"({"name": "c", "shape": [2], "dtype": "float8"})")),
            "weightsManifest[0]: weight 'c': no type 'float8', expected one of float32, int32, bool, string, uint8, "
            "uint16, complex64, float16");
  EXPECT_EQ(
      Refusal(one(R"({"name": "c", "shape": [8], "dtype": "float32", "quantization": {"dtype": "uint8", "min": 0}})")),
      "weightsManifest[0]: weight 'c': quantization: member 'scale': expected a number");
  EXPECT_EQ(Refusal(one(
                R"({"name": "c", "shape": [1], "dtype": "float32"}, {"name": "c", "shape": [1], "dtype": "float32"})")),
            "weightsManifest[0]: weight 'c': is in the manifest twice");
  EXPECT_EQ(Refusal(one(R"({"name": "d", "shape": [2], "dtype": "float32"})")),
            "node 'c' (Const): has neither a weight in the manifest nor a value");
  const std::string outside = absl::StrReplaceAll(one("{}"), {{"w.bin", "../w.bin"}});
  EXPECT_EQ(Refusal(outside),
            "weightsManifest[0]: member 'paths': found '../w.bin', expected a path within the folder of the model");
}

TEST_F(TfjsTest, LimitsTheDecodedSize) {
  Put("w.bin", std::string(1000, 'x'));
  OpenOptions options;
  options.max_model_bytes = 3999;
  const std::string json = OneWeight(
      "DT_FLOAT", R"({"size": 1000})",
      R"({"name": "c", "shape": [1000], "dtype": "float32", "quantization": {"dtype": "uint8", "scale": 1, "min": 0}})");
  EXPECT_EQ(Refusal(json, options),
            "node 'c' (Const): weight 'c': the decoded weights exceed the size limit (max_model_bytes)");
  options.max_model_bytes = 4000;
  EXPECT_EQ(Refusal(json, options), "was read");
}

TEST_F(TfjsTest, ToleratesTruncationAndFlippedBits) {
  Put("w.bin", Raw<float>({1, 2}));
  const std::string json =
      OneWeight("DT_FLOAT", R"({"size": 2})", R"({"name": "c", "shape": [2], "dtype": "float32"})");
  ASSERT_TRUE(Open(json).ok());
  for (size_t size = 0; size < json.size(); ++size) EXPECT_FALSE(Open(json.substr(0, size)).ok()) << size;
  for (size_t i = 0; i < json.size(); ++i) {
    std::string flipped = json;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    const absl::StatusOr<std::unique_ptr<Graph>> graph = Open(flipped);
    if (!graph.ok()) {
      EXPECT_EQ(graph.status().message().find("\n"), absl::string_view::npos) << graph.status();
    }
  }
  for (size_t size = 0; size < 8; ++size) {
    Put("w.bin", std::string(size, '\0'));
    EXPECT_EQ(Open(json).status().code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace permafrost
