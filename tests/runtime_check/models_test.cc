// The session against recorded outputs: the bundled model, and the models that a checkout may have beside it.
#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/status.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/npy.h"
#include "io/model_file.h"
#include "runtime_check/compare.h"
#include "runtime_check/session.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

// What the project promises for every model: max |a - e| <= 1e-4 * max(1, max |e|).
constexpr double kTolerance = 1e-4;

// Some outputs are so steep a function of their logits that the order of a float sum shows: TensorFlow's own
// configurations differ from each other, and from the same graph in float64, by up to 5.6e-4 in a few of 65536
// elements. One element in kMostSteep may be off by as much as kSteepTolerance; an output of fewer elements has none to
// spare.
constexpr int64_t kMostSteep = 1000;
constexpr double kSteepTolerance = 1e-3;

bool IsClose(const Tensor& expected, const Tensor& actual, const OutputDifference& difference) {
  if (difference.IsWithin(kTolerance)) return true;
  if (!difference.IsWithin(kSteepTolerance) || expected.dtype() != DType::kFloat) return false;
  const double bound = kTolerance * std::max(1.0, difference.max_abs_expected);
  int64_t beyond = 0;
  for (size_t i = 0; i < expected.elements<float>().size(); ++i) {
    if (std::abs(expected.elements<float>()[i] - actual.elements<float>()[i]) > bound) ++beyond;
  }
  return beyond * kMostSteep <= difference.num_elements;
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path) {
  PF_ASSIGN_OR_RETURN(const FileView file, RealFileSystem().MapFile(path));
  return ParseNpy(file.bytes, file.owner);
}

// The strings of the list, or the string, that follows each `"key":` in a JSON text without escapes.
std::vector<std::string> StringsOf(const std::string& json, const std::string& key) {
  std::vector<std::string> strings;
  const std::string mark = absl::StrCat("\"", key, "\":");
  for (size_t at = json.find(mark); at != std::string::npos; at = json.find(mark, at + 1)) {
    size_t next = json.find_first_not_of(" \n", at + mark.size());
    const size_t end = json[next] == '[' ? json.find(']', next) : json.find('"', next + 1) + 1;
    while ((next = json.find('"', next)) < end) {
      const size_t close = json.find('"', next + 1);
      strings.push_back(json.substr(next + 1, close - next - 1));
      next = close + 1;
    }
  }
  return strings;
}

TEST(ModelsTest, BundledModel) {
  const auto graph = OpenModel(RealFileSystem(), DataFile("tests/models/digits/digits.pb"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto images = ReadNpy(DataFile("tests/models/digits/eval_images.npy"));
  const auto expected = ReadNpy(DataFile("tests/models/digits/expected_probabilities.npy"));
  ASSERT_TRUE(images.ok() && expected.ok()) << images.status() << expected.status();
  for (const int num_threads : {1, 3}) {
    SessionOptions options;
    options.num_threads = num_threads;
    const auto session = Session::Create(**graph, {"image"}, {"probabilities"}, options);
    ASSERT_TRUE(session.ok()) << session.status();
    const auto outputs = (*session)->Run({*images});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    const OutputDifference difference = CompareTensors(*expected, (*outputs)[0]);
    EXPECT_TRUE(difference.IsWithin(kTolerance)) << difference.ToString();
    EXPECT_EQ(difference.top1_agreement.value_or(0), 1);
    const auto again = (*session)->Run({*images});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE((*again)[0] == (*outputs)[0]) << "a second run differs";
  }
}

}  // namespace

void PrintTo(const SharedModel& model, std::ostream* out) { *out << model.name; }

namespace {

class SharedModelTest : public testing::TestWithParam<SharedModel> {};

TEST_P(SharedModelTest, GivesTheRecordedOutputs) {
  const std::string& folder = GetParam().folder;
  const auto spec = RealFileSystem().ReadFile(folder + "/spec.json");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto graph = OpenModel(RealFileSystem(), GetParam().path);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto session = Session::Create(**graph, StringsOf(*spec, "name"), StringsOf(*spec, "outputs"));
  ASSERT_TRUE(session.ok()) << session.status();
  int runs = 0;
  for (;; ++runs) {
    const std::string input_path = absl::StrCat(folder, "/input_", runs, ".npy");
    if (!RealFileSystem().Exists(input_path)) break;
    const auto input = ReadNpy(input_path);
    ASSERT_TRUE(input.ok()) << input.status();
    const auto outputs = (*session)->Run({*input});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    for (size_t i = 0; i < outputs->size(); ++i) {
      const auto expected = ReadNpy(absl::StrCat(folder, "/output_", runs, "_", i, ".npy"));
      ASSERT_TRUE(expected.ok()) << expected.status();
      const OutputDifference difference = CompareTensors(*expected, (*outputs)[i]);
      EXPECT_TRUE(IsClose(*expected, (*outputs)[i], difference))
          << "input " << runs << ", output " << i << ": " << difference.ToString();
    }
  }
  EXPECT_GT(runs, 0);
}

INSTANTIATE_TEST_SUITE_P(, SharedModelTest, testing::ValuesIn(SharedModels()),
                         [](const auto& info) { return info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SharedModelTest);

// Says in the results that the models were not tested.
TEST(ModelsTest, SharedModelsAreThere) {
  if (SharedModels().empty()) GTEST_SKIP() << "no folder of models beside the workspace";
}

}  // namespace
}  // namespace permafrost
