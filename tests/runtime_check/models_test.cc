// Compares sessions with recorded outputs, for every delegate in every precision: the bundled model, and the models
// beside the checkout, if any.
#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/npy.h"
#include "io/model_file.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/precision/precision_choice.h"
#include "runtime_check/session.h"
#include "tests/model_spec.h"
#include "tests/shared_models.h"

namespace permafrost {

// Delegate, precision and threads of a session.
struct Setup {
  std::string delegate, precision;
  int num_threads;
};

void PrintTo(const SharedModel& model, std::ostream* out) { *out << model.name; }
void PrintTo(const Setup& setup, std::ostream* out) {
  *out << setup.delegate << " " << setup.precision << ", threads: " << setup.num_threads;
}

namespace {

// The guarantee for every model in f32: max |a - e| <= 1e-4 * max(1, max |e|).
constexpr double kTolerance = 1e-4;

// Some outputs are such steep functions of their logits that the order of a float sum matters: TensorFlow's own
// configurations differ from each other, and from the same graph in float64, by up to 5.6e-4 in a few of 65536
// elements. One element in kMostSteep may differ by up to kSteepTolerance; smaller outputs have no such allowance.
constexpr int64_t kMostSteep = 1000;
constexpr double kSteepTolerance = 1e-3;
// The summation order of delegates differs from TensorFlow's more than TensorFlow's configurations differ from each
// other, and depends on the processor. Measured in two masks of 65536 sigmoids: up to 1.2e-3, and 133 elements beyond
// the tolerance (oneDNN with AVX2). The allowance is twice the difference in four times as many elements.
constexpr double kSteepFactorOfDelegates = 2;
constexpr int64_t kMostSteepFactorOfDelegates = 4;

// The accuracy required of a lower precision, by output and over all inputs: the root mean square (RMS) of the
// differences relative to the RMS of the output, or the RMS of the differences.
constexpr double kBudgetRelative = 0.03;
constexpr double kBudgetAbsolute = 1e-4;

// A precision outside the budget still has to compute roughly the same outputs.
constexpr double kWorstRelative = 0.5;

bool IsClose(const Tensor& expected, const Tensor& actual, const OutputDifference& difference, bool is_delegated) {
  if (difference.IsWithin(kTolerance)) return true;
  const double steep_tolerance = kSteepTolerance * (is_delegated ? kSteepFactorOfDelegates : 1);
  if (!difference.IsWithin(steep_tolerance) || expected.dtype() != DType::kFloat) return false;
  const double bound = kTolerance * std::max(1.0, difference.max_abs_expected);
  int64_t beyond = 0;
  for (size_t i = 0; i < expected.elements<float>().size(); ++i) {
    if (std::abs(expected.elements<float>()[i] - actual.elements<float>()[i]) > bound) ++beyond;
  }
  return beyond * kMostSteep <= difference.num_elements * (is_delegated ? kMostSteepFactorOfDelegates : 1);
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path) {
  PF_ASSIGN_OR_RETURN(const FileView file, RealFileSystem().MapFile(path));
  return ParseNpy(file.bytes, file.owner);
}

using Samples = std::vector<std::vector<Tensor>>;

// A model with inputs and the outputs of TensorFlow.
struct Recording {
  std::unique_ptr<Graph> graph;
  std::vector<std::string> feeds, fetches;
  Samples inputs, outputs;
};

constexpr char kBundled[] = "digits";

absl::StatusOr<Recording> ReadBundled() {
  Recording recording;
  PF_ASSIGN_OR_RETURN(recording.graph, OpenModel(RealFileSystem(), DataFile("tests/models/digits/digits.pb")));
  recording.feeds = {"image"};
  recording.fetches = {"probabilities"};
  PF_ASSIGN_OR_RETURN(const Tensor images, ReadNpy(DataFile("tests/models/digits/eval_images.npy")));
  PF_ASSIGN_OR_RETURN(const Tensor expected, ReadNpy(DataFile("tests/models/digits/expected_probabilities.npy")));
  recording.inputs = {{images}};
  recording.outputs = {{expected}};
  return recording;
}

absl::StatusOr<Recording> Read(const SharedModel& model) {
  if (model.name == kBundled) return ReadBundled();
  Recording recording;
  PF_ASSIGN_OR_RETURN(const ModelSpec spec, ReadModelSpec(model.folder));
  recording.feeds = spec.inputs;
  recording.fetches = spec.outputs;
  PF_ASSIGN_OR_RETURN(recording.graph, OpenModel(RealFileSystem(), model.path));
  while (true) {
    const size_t number = recording.inputs.size();
    const std::string path = absl::StrCat(model.folder, "/input_", number, ".npy");
    if (!RealFileSystem().Exists(path)) return recording;
    PF_ASSIGN_OR_RETURN(Tensor input, ReadNpy(path));
    recording.inputs.push_back({std::move(input)});
    std::vector<Tensor>& outputs = recording.outputs.emplace_back();
    for (size_t i = 0; i < recording.fetches.size(); ++i) {
      PF_ASSIGN_OR_RETURN(outputs.emplace_back(),
                          ReadNpy(absl::StrCat(model.folder, "/output_", number, "_", i, ".npy")));
    }
  }
}

absl::StatusOr<SessionOptions> OptionsFor(const Setup& setup) {
  SessionOptions options;
  options.num_threads = setup.num_threads;
  DelegateOptions delegate_options;
  delegate_options.precision = setup.precision;
  PF_ASSIGN_OR_RETURN(options.delegate, MakeDelegate(setup.delegate, delegate_options));
  return options;
}

// Runs all samples, and checks conditions that hold in every precision.
void RunAll(const Recording& recording, const SessionOptions& options, Samples* outputs) {
  const auto session = Session::Create(*recording.graph, recording.feeds, recording.fetches, options);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_FALSE(recording.inputs.empty());
  for (const std::vector<Tensor>& input : recording.inputs) {
    auto output = (*session)->Run(input);
    ASSERT_TRUE(output.ok()) << output.status();
    outputs->push_back(*std::move(output));
  }
  const DelegationReport& delegation = (*session)->report().delegation;
  EXPECT_EQ(delegation.failure, "");
  EXPECT_EQ(delegation.partitions.empty(), options.delegate == nullptr) << "nothing of the delegate was tested";
  const auto again = (*session)->Run(recording.inputs[0]);
  ASSERT_TRUE(again.ok()) << again.status();
  for (size_t i = 0; i < again->size(); ++i) {
    EXPECT_TRUE((*again)[i] == (*outputs)[0][i]) << "a second run differs in output " << i;
  }
}

// The difference between the samples of one output and the recorded ones.
struct Distance {
  double relative = 0;  // RMS of the differences relative to the RMS of the output.
  bool is_within_budget = true;
};

// Returns true for rows of numbers that add up to 1.
bool HoldsProbabilities(const Tensor& tensor) {
  if (tensor.shape().rank() != 2 || tensor.shape().dim(1) < 2) return false;
  const auto values = tensor.elements<float>();
  const auto classes = static_cast<size_t>(tensor.shape().dim(1));
  for (size_t row = 0; row < values.size(); row += classes) {
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) sum += values[row + c];
    if (std::abs(sum - 1) > 1e-3) return false;
  }
  return true;
}

Distance DistanceOf(const Recording& recording, const Samples& actual, size_t output) {
  double difference = 0, expected = 0, count = 0;
  Distance distance;
  for (size_t s = 0; s < actual.size(); ++s) {
    const Tensor& e = recording.outputs[s][output];
    const Tensor& a = actual[s][output];
    const OutputDifference compared = CompareTensors(e, a);
    EXPECT_EQ(compared.mismatch, "");
    EXPECT_EQ(compared.num_nonfinite_mismatches, 0);
    if (compared.kind != OutputDifference::Kind::kComparable) return {};
    for (size_t i = 0; i < e.elements<float>().size(); ++i) {
      const double apart = static_cast<double>(a.elements<float>()[i]) - e.elements<float>()[i];
      difference += apart * apart;
      expected += static_cast<double>(e.elements<float>()[i]) * e.elements<float>()[i];
    }
    count += static_cast<double>(compared.num_elements);
    if (HoldsProbabilities(e) && compared.top1_agreement.value_or(1) != 1) distance.is_within_budget = false;
  }
  distance.relative = difference == 0 ? 0 : std::sqrt(difference / expected);
  if (distance.relative > kBudgetRelative && std::sqrt(difference / count) > kBudgetAbsolute) {
    distance.is_within_budget = false;
  }
  return distance;
}

std::vector<SharedModel> AllModels() {
  std::vector<SharedModel> models = SharedModels();
  models.insert(models.begin(), {kBundled, "", ""});
  return models;
}

std::vector<Setup> AllSetups() {
  std::vector<Setup> setups;
  for (const DelegateInfo& delegate : KnownDelegates()) {
    for (const std::string& precision : delegate.precisions) {
      for (const int num_threads : {1, 2}) setups.push_back({delegate.name, precision, num_threads});
    }
  }
  return setups;
}

class ModelRunTest : public testing::TestWithParam<std::tuple<SharedModel, Setup>> {};

TEST_P(ModelRunTest, GivesTheRecordedOutputs) {
  const auto& [model, setup] = GetParam();
  const auto options = OptionsFor(setup);
  if (absl::IsUnimplemented(options.status()) || absl::IsUnavailable(options.status()))
    GTEST_SKIP() << options.status();
  ASSERT_TRUE(options.ok()) << options.status();
  const auto recording = Read(model);
  ASSERT_TRUE(recording.ok()) << recording.status();
  Samples actual;
  ASSERT_NO_FATAL_FAILURE(RunAll(*recording, *options, &actual));
  for (size_t i = 0; i < recording->fetches.size(); ++i) {
    const Distance distance = DistanceOf(*recording, actual, i);
    if (setup.precision != "f32") {
      // ChoosePrecision decides whether this is sufficient.
      EXPECT_LE(distance.relative, kWorstRelative) << recording->fetches[i];
      continue;
    }
    EXPECT_TRUE(distance.is_within_budget) << recording->fetches[i];
    for (size_t s = 0; s < actual.size(); ++s) {
      const Tensor& expected = recording->outputs[s][i];
      OutputDifference difference = CompareTensors(expected, actual[s][i]);
      difference.scale_floor = 1;  // As in the guarantee.
      EXPECT_TRUE(IsClose(expected, actual[s][i], difference, options->delegate != nullptr))
          << "input " << s << ", output '" << recording->fetches[i] << "': " << difference.ToString();
    }
  }
}

std::string NameOf(const testing::TestParamInfo<std::tuple<SharedModel, Setup>>& info) {
  const auto& [model, setup] = info.param;
  return absl::StrCat(model.name, "_", setup.delegate, "_", setup.precision, "_", setup.num_threads);
}

INSTANTIATE_TEST_SUITE_P(, ModelRunTest,
                         testing::Combine(testing::ValuesIn(AllModels()), testing::ValuesIn(AllSetups())), NameOf);

class PrecisionTest : public testing::TestWithParam<std::tuple<SharedModel, int>> {};

// Precisions outside the budget are detected, and the chosen one is inside, also relative to TensorFlow's outputs.
TEST_P(PrecisionTest, TheChosenOneKeepsTheBudget) {
  const auto& [model, num_threads] = GetParam();
  const auto recording = Read(model);
  ASSERT_TRUE(recording.ok()) << recording.status();
  SessionOptions plain;
  plain.num_threads = num_threads;
  ChoiceOptions short_search;  // Sufficient, because every plan has to keep the guarantee, not only the best.
  short_search.search_seconds = 5;
  for (const DelegateInfo& delegate : KnownDelegates()) {
    if (delegate.precisions.size() < 2) continue;
    const auto choice = ChoosePrecision(*recording->graph, recording->feeds, recording->fetches, recording->inputs,
                                        delegate.name, plain, short_search);
    ASSERT_TRUE(choice.ok()) << choice.status();
    ASSERT_EQ(choice->trials.size(), delegate.precisions.size() + delegate.planned_precisions.size());
    for (const PrecisionTrial& trial : choice->trials) {
      SCOPED_TRACE(absl::StrCat(delegate.name, " in ", trial.precision, ": ", trial.reason));
      const bool is_chosen = trial.precision == choice->precision;
      if (trial.milliseconds == 0) {
        // Not supported by this processor, or no plan is within the budget.
        EXPECT_FALSE(trial.is_within_budget || is_chosen);
        EXPECT_NE(trial.reason, "");
        continue;
      }
      auto options = OptionsFor({delegate.name, "f32", num_threads});
      ASSERT_TRUE(options.ok()) << options.status();
      const auto made = MakeDelegate(delegate.name, {trial.precision, trial.plan});
      ASSERT_TRUE(made.ok()) << made.status();
      options->delegate = *made;
      Samples actual;
      ASSERT_NO_FATAL_FAILURE(RunAll(*recording, *options, &actual));
      bool is_within_budget = true;
      double worst = 0;
      for (size_t i = 0; i < recording->fetches.size(); ++i) {
        const Distance distance = DistanceOf(*recording, actual, i);
        is_within_budget = is_within_budget && distance.is_within_budget;
        worst = std::max(worst, distance.relative);
      }
      EXPECT_EQ(is_within_budget, trial.is_within_budget);
      EXPECT_NEAR(worst, trial.worst_relative_rms, 1e-3 + 0.01 * worst);
      EXPECT_TRUE(is_within_budget || !is_chosen);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, PrecisionTest, testing::Combine(testing::ValuesIn(AllModels()), testing::Values(1, 2)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name, "_", std::get<1>(info.param));
                         });

// Reports in the results that the models were not tested.
TEST(ModelsTest, SharedModelsAreThere) {
  if (SharedModels().empty()) GTEST_SKIP() << "no folder of models beside the workspace";
}

}  // namespace
}  // namespace permafrost
