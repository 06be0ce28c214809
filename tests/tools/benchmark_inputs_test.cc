// Tests of the input flags of benchmark_model: valid combinations and errors.
#include "tools/benchmark/benchmark_inputs.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/graph_from_text.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

class BenchmarkInputsTest : public testing::Test {
 protected:
  BenchmarkInputsTest()
      : graph_(GraphFromText("image = Placeholder()\nsize = Placeholder()\nsum = Add(image, size)\n")) {
    graph_->Find("image")->SetAttr("shape", AttrValue::OfShape({kUnknownDim, 3}));
    graph_->Find("size")->SetAttr("shape", AttrValue::OfShape({}));
    graph_->Find("size")->SetAttr("dtype", AttrValue::Type(DType::kInt32));
    EXPECT_TRUE(graph_->DeclareInterface({"image:0", "size"}, {"sum"}).ok());
  }

  std::vector<BenchmarkInput> Make() {
    auto made = MakeBenchmarkInputs(*graph_, flags_, RealFileSystem());
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : std::vector<BenchmarkInput>();
  }
  std::string Error() { return std::string(MakeBenchmarkInputs(*graph_, flags_, RealFileSystem()).status().message()); }
  static std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::unique_ptr<Graph> graph_;
  BenchmarkInputFlags flags_;
};

TEST_F(BenchmarkInputsTest, AreFoundInTheModel) {
  const std::vector<BenchmarkInput> inputs = Make();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].name, "image:0");
  EXPECT_EQ(inputs[0].tensor.shape(), Shape({1, 3}));
  EXPECT_EQ(inputs[1].tensor.dtype(), DType::kInt32);
  EXPECT_EQ(inputs[1].tensor.shape(), Shape());
  EXPECT_EQ(FedShapes(*graph_, inputs).at("image"), Shape({1, 3}));
}

TEST_F(BenchmarkInputsTest, AreAsTheFlagsSay) {
  flags_.shapes = "2,3:";
  flags_.types = "float,int32";
  flags_.values = "0.5,-1:7";
  const std::vector<BenchmarkInput> inputs = Make();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].tensor.shape(), Shape({2, 3}));
  EXPECT_EQ(inputs[0].tensor.elements<float>()[1], -1);
  EXPECT_EQ(inputs[0].tensor.elements<float>()[5], 0);
  EXPECT_EQ(inputs[1].tensor.elements<int32_t>()[0], 7);
}

TEST_F(BenchmarkInputsTest, ReadsFiles) {
  flags_.files = {absl::StrCat("image:0:", Write("raw", std::string(12, '\0'))),
                  absl::StrCat("size=", Write("four", std::string("\5\0\0\0", 4)))};
  const std::vector<BenchmarkInput> inputs = Make();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].tensor.elements<float>()[0], 0);
  EXPECT_EQ(inputs[1].tensor.elements<int32_t>()[0], 5);
}

TEST_F(BenchmarkInputsTest, RefusesLists) {
  flags_.shapes = "1,3";
  EXPECT_EQ(Error(), "--input_layer_shape has 1 item, expected 2, one for each of --input_layer");
  flags_ = {};
  flags_.types = "float,int32,bool";
  EXPECT_EQ(Error(), "--input_layer_type has 3 items, expected 2, one for each of --input_layer");
  flags_ = {};
  flags_.values = "1";
  EXPECT_EQ(Error(), "--input_layer_values has 1 item, expected 2, one for each of --input_layer");
}

TEST_F(BenchmarkInputsTest, RefusesShapes) {
  flags_.shapes = "-1,3:";
  EXPECT_THAT(Error(), HasSubstr("--input_layer_shape: input 'image:0': found -1 in '-1,3', expected a size"));
  flags_.shapes = "1,4:";
  EXPECT_EQ(Error(), "--input_layer_shape: input 'image:0': found [1,4], expected [?,3]");
  flags_.shapes = "1,x:";
  EXPECT_THAT(Error(), HasSubstr("found 'x' in '1,x', expected sizes separated by commas"));
  flags_.shapes = "99999999999,3:";
  EXPECT_FALSE(Error().empty());
}

TEST_F(BenchmarkInputsTest, ChoosesUnknownSizes) {
  graph_ = GraphFromText("image = Placeholder()\nrelu = Relu(image)\n");
  graph_->Find("image")->SetAttr("shape", AttrValue::OfShape({kUnknownDim, kUnknownDim, 3}));
  ASSERT_TRUE(graph_->DeclareInterface({"image"}, {"relu"}).ok());
  const std::vector<BenchmarkInput> inputs = Make();
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_TRUE(inputs[0].has_chosen_sizes);
  EXPECT_EQ(inputs[0].tensor.shape().dim(0), 1);
  EXPECT_GT(inputs[0].tensor.shape().dim(1), 0);
  EXPECT_EQ(inputs[0].tensor.shape().dim(2), 3);
}

TEST_F(BenchmarkInputsTest, RefusesTypesAndValues) {
  flags_.types = "float,float";
  EXPECT_EQ(Error(), "--input_layer_type: input 'size': found float, expected int32");
  flags_.types = "flot,int32";
  EXPECT_THAT(Error(), HasSubstr("did you mean 'float'"));
  flags_ = {};
  flags_.values = "1,2,3,4:";
  EXPECT_THAT(Error(), HasSubstr("input 'image:0': found 4 values, expected at most 3"));
  flags_.values = ":1.5";
  EXPECT_EQ(Error(), "--input_layer_values: input 'size': found '1.5', expected a value of type int32");
  flags_.values = ":3000000000";
  EXPECT_THAT(Error(), HasSubstr("expected a value of type int32"));
}

TEST_F(BenchmarkInputsTest, RefusesFiles) {
  flags_.files = {"imag=x.npy"};
  EXPECT_THAT(Error(), HasSubstr("--input_layer_value_files: found 'imag=x.npy', expected INPUT=FILE; did you mean"));
  flags_.files = {"size=/nowhere/x.npy"};
  EXPECT_THAT(Error(), HasSubstr("cannot open '/nowhere/x.npy'"));
  flags_.files = {absl::StrCat("size=", Write("three", "abc"))};
  EXPECT_THAT(Error(), HasSubstr("--input_layer_value_files: input 'size': "));
}

}  // namespace
}  // namespace permafrost
