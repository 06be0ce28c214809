// Tests of reducing models: what is cut, what stays, and how commands and runs are judged.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "io/file_system.h"
#include "tests/tools/graph_from_text.h"
#include "tools/reduction/failure_test.h"
#include "tools/reduction/reducer.h"

namespace permafrost {
namespace {

ReducibleModel ModelOf(const std::string& text, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs) {
  ReducibleModel model;
  model.graph = GraphFromText(text);
  EXPECT_TRUE(model.graph->DeclareInterface(inputs, outputs).ok());
  for (size_t i = 0; i < inputs.size(); ++i) model.inputs.push_back(Tensor::FromVector<float>({2}, {-1, 2}));
  return model;
}

// A chain of 300 nodes with Tanh at `tanh` and Exp at `exp`.
ReducibleModel Chain(int tanh, int exp) {
  std::string text = "x = Placeholder()\n";
  for (int i = 0; i < 300; ++i) {
    const char* op = i == tanh ? "Tanh" : i == exp ? "Exp" : "Relu";
    absl::StrAppend(&text, "a", i, " = ", op, "(", i == 0 ? "x" : absl::StrCat("a", i - 1), ")\n");
  }
  return ModelOf(text, {"x"}, {"a299"});
}

std::multiset<std::string> OpsOf(const ReducibleModel& model) {
  std::multiset<std::string> ops;
  for (const Node* node = model.graph->first(); node != nullptr; node = node->next()) ops.emplace(node->op().name());
  return ops;
}

ReductionSettings SettingsFor(std::function<bool(const ReducibleModel&)> shows_failure) {
  ReductionSettings settings;
  settings.shows_failure = std::move(shows_failure);
  settings.must_stop = [] { return false; };
  settings.keep = [](const ReducibleModel&) { return absl::OkStatus(); };
  settings.progress = [](const std::string&) {};
  return settings;
}

TEST(Reduction, LeavesTheNodeThatFails) {
  ReducibleModel model = Chain(211, -1);
  const auto report = Reduce(SettingsFor([](const auto& m) { return OpsOf(m).count("Tanh") > 0; }), &model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(OpsOf(model), (std::multiset<std::string>{"Placeholder", "Tanh"}));
  EXPECT_LT(report->trials, 60);
}

TEST(Reduction, LeavesTwoNodesThatAreFarApart) {
  ReducibleModel model = Chain(3, 290);
  const auto shows = [](const auto& m) { return OpsOf(m).count("Tanh") > 0 && OpsOf(m).count("Exp") > 0; };
  ASSERT_TRUE(Reduce(SettingsFor(shows), &model).ok());
  EXPECT_EQ(OpsOf(model), (std::multiset<std::string>{"Exp", "Placeholder", "Placeholder", "Tanh"}));
  EXPECT_EQ(model.graph->outputs().size(), 2u);
}

TEST(Reduction, CutTensorsHaveTheValuesOfTheModel) {
  ReducibleModel model = Chain(211, -1);
  ReductionSettings settings = SettingsFor([](const auto& m) {
    return OpsOf(m).count("Tanh") > 0 && m.inputs.size() == 1 && m.inputs[0].dtype() == DType::kFloat;
  });
  FailureSettings failure;
  auto test = FailureTest::Create(failure, RealFileSystem());
  ASSERT_TRUE(test.ok()) << test.status();
  settings.compute = [&](const ReducibleModel& whole, const std::vector<std::string>& fetches) {
    return (*test)->Compute(whole, fetches);
  };
  settings.keep_weights = true;
  ASSERT_TRUE(Reduce(settings, &model).ok());
  ASSERT_EQ(model.inputs.size(), 1u);
  EXPECT_EQ(model.inputs[0].elements<float>()[0], 0);  // Relu of -1.
}

TEST(Reduction, ValuesBecomeNoiseUnlessTheFailureNeedsThem) {
  const std::string text = "x = Placeholder()\nw = Const()\nv = Const()\ny = AddN(x, w, v)";
  ReducibleModel model = ModelOf(text, {"x"}, {"y"});
  model.graph->Find("y")->SetAttr("N", AttrValue::Int(3));
  const auto value = [](const ReducibleModel& m, int input) {
    const Node* add = m.graph->outputs()[0].node;
    return ConstValue(*add->input(input).node)->elements<float>()[0];
  };
  const auto shows = [&](const ReducibleModel& m) { return OpsOf(m).count("AddN") == 1 && value(m, 1) == 1; };
  const auto report = Reduce(SettingsFor(shows), &model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->real_constants, std::vector<std::string>{"w"});
  EXPECT_EQ(value(model, 1), 1);
  EXPECT_NE(value(model, 2), 1);
}

TEST(Reduction, NamesAreReplacedUnlessTheFailureNeedsThem) {
  ReducibleModel model = Chain(100, -1);
  const auto report = Reduce(SettingsFor([](const auto& m) { return m.graph->Find("a100") != nullptr; }), &model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->real_names, std::vector<std::string>{"a100"});
  EXPECT_EQ(model.graph->num_nodes(), 2u);
  EXPECT_EQ(model.graph->inputs()[0].text, "n0");
}

TEST(Reduction, DimensionsShrinkTogether) {
  ReducibleModel model = ModelOf("x = Placeholder()\nw = Const()\ny = Add(x, w)", {"x"}, {"y"});
  const auto shows = [](const ReducibleModel& m) {
    const Node* add = m.graph->outputs()[0].node;
    return add->op() == ops::kAdd && add->input(1).node->op() == ops::kConst &&
           ConstValue(*add->input(1).node)->shape() == m.inputs[0].shape();
  };
  ASSERT_TRUE(Reduce(SettingsFor(shows), &model).ok());
  EXPECT_EQ(model.inputs[0].shape(), Shape({1}));
}

TEST(Reduction, StopsWithTheBestSoFar) {
  ReducibleModel model = Chain(211, -1);
  size_t kept = 0;
  int asked = 0;
  ReductionSettings settings = SettingsFor([](const auto& m) { return OpsOf(m).count("Tanh") > 0; });
  settings.must_stop = [&] { return ++asked > 6; };
  settings.keep = [&](const ReducibleModel& m) {
    kept = m.graph->num_nodes();
    return absl::OkStatus();
  };
  const auto report = Reduce(settings, &model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->was_stopped);
  EXPECT_LT(kept, 301u);
  EXPECT_EQ(kept, model.graph->num_nodes());
}

TEST(Reduction, AnErrorOfKeepingEndsIt) {
  ReducibleModel model = Chain(211, -1);
  ReductionSettings settings = SettingsFor([](const auto& m) { return OpsOf(m).count("Tanh") > 0; });
  settings.keep = [](const ReducibleModel&) { return absl::ResourceExhaustedError("the disk is full"); };
  EXPECT_EQ(Reduce(settings, &model).status().code(), absl::StatusCode::kResourceExhausted);
}

std::string Established(const std::string& command, const std::string& text, double seconds = 20) {
  FailureSettings settings;
  settings.command = command;
  settings.text = text;
  settings.trial_seconds = seconds;
  auto test = FailureTest::Create(settings, RealFileSystem());
  if (!test.ok()) return std::string(test.status().message());
  const absl::StatusOr<std::string> failure = (*test)->Establish(Chain(1, 2));
  return failure.ok() ? *failure : std::string(failure.status().message());
}

TEST(Commands, EndInManyWays) {
  EXPECT_EQ(Established("exit 3;", ""), "the command ends with exit status 3");
  EXPECT_EQ(Established("kill -SEGV $$;", ""), "the command ends with signal 11");
  EXPECT_EQ(Established("sleep 60;", "", 0.2), "the command ends with no end within the time limit");
  // Processes that the command leaves behind are no reason to wait.
  EXPECT_EQ(Established("sleep 60 & exit 4;", "", 20), "the command ends with exit status 4");
  EXPECT_EQ(Established("echo to stderr >&2; true {}", "stderr"), "the command prints 'stderr'");
  EXPECT_EQ(Established("grep -c Tanh", "1"), "the command prints '1'");  // The path is at the end.
  EXPECT_NE(Established("true", "").find("does not show a failure"), std::string::npos);
  EXPECT_NE(Established("true", "words").find("does not print 'words'"), std::string::npos);
  // More output than a pipe holds.
  EXPECT_EQ(Established("head -c 3000000 /dev/zero; exit 5;", ""), "the command ends with exit status 5");
}

}  // namespace
}  // namespace permafrost
