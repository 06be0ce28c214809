// Runs whole graphs with branches, loops, calls and state, and compares the results with TensorFlow's. make_graphs.py
// describes the files.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

// TensorFlow sums in another order.
constexpr double kTolerance = 2e-6;
// Delegates sum in yet another order, and approximate transcendental functions.
constexpr double kDelegateTolerance = 2e-5;

struct RecordedTensor {
  std::string name;
  Tensor value;
};

struct RecordedRun {
  std::map<int, RecordedTensor> in, out;
};

struct RecordedGraph {
  std::string bytes;
  std::unique_ptr<Graph> graph;
  std::map<int, RecordedRun> runs;
};

void Load(const std::string& name, RecordedGraph* recorded) {
  std::ifstream file(absl::StrCat("tests/runtime_check/graphs/", name, ".pb"), std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  recorded->bytes = bytes.str();
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(recorded->bytes, nullptr);
  ASSERT_TRUE(graph.ok()) << graph.status();
  recorded->graph = *std::move(graph);
  for (const Node* node : recorded->graph->Nodes()) {
    const std::vector<std::string> parts = absl::StrSplit(node->name(), '/');
    if (parts.front() != "recorded") continue;
    int run, index;
    ASSERT_TRUE(absl::SimpleAtoi(parts[1], &run) && absl::SimpleAtoi(parts[3], &index));
    const absl::StatusOr<Tensor> value = ConstValue(*node);
    ASSERT_TRUE(value.ok()) << value.status();
    auto& side = parts[2] == "in" ? recorded->runs[run].in : recorded->runs[run].out;
    side[index] = {*StringAttr(*node, "_tensor"), *value};
  }
  ASSERT_FALSE(recorded->runs.empty());
}

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/runtime_check/graphs")) {
    if (entry.path().extension() == ".pb") files.push_back(entry.path().stem());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> Names(const std::map<int, RecordedTensor>& tensors) {
  std::vector<std::string> names;
  for (const auto& [index, tensor] : tensors) names.push_back(tensor.name);
  return names;
}

// Returns whether the results of a run depend on the runs before it.
bool KeepsState(const RecordedGraph& recorded) {
  const std::vector<Node*> nodes = recorded.graph->Nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->op() == ops::kVarHandleOp; });
}

// Runs all recorded runs with these fetches, `times` times, and compares the results: after each run, and after all,
// since a later run must not change the results of an earlier one.
void RunAll(const RecordedGraph& recorded, const std::vector<int>& fetched, int num_threads, int times = 2,
            const std::string& delegate_name = kReferenceDelegate) {
  const RecordedRun& first = recorded.runs.begin()->second;
  std::vector<std::string> fetches;
  for (const int i : fetched) fetches.push_back(first.out.at(i).name);
  SessionOptions options;
  options.num_threads = num_threads;
  auto delegate = MakeDelegate(delegate_name, {});
  ASSERT_TRUE(delegate.ok()) << delegate.status();
  options.delegate = *std::move(delegate);
  auto session = Session::Create(*recorded.graph, Names(first.in), fetches, options);
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<std::pair<int, std::vector<Tensor>>> kept;  // Numbers of runs, and their results.
  const auto compare = [&](int number, const std::vector<Tensor>& outputs) {
    for (size_t i = 0; i < fetched.size(); ++i) {
      OutputDifference difference = CompareTensors(recorded.runs.at(number).out.at(fetched[i]).value, outputs[i]);
      difference.scale_floor = 1;  // Results below one may differ by the tolerance itself.
      EXPECT_TRUE(difference.IsWithin(delegate_name == kReferenceDelegate ? kTolerance : kDelegateTolerance))
          << "run " << number << ", " << fetches[i] << ": " << difference.ToString();
    }
  };
  for (int time = 0; time < times; ++time) {
    for (const auto& [number, run] : recorded.runs) {
      std::vector<Tensor> feeds;
      for (const auto& [index, tensor] : run.in) feeds.push_back(tensor.value);
      absl::StatusOr<std::vector<Tensor>> outputs = (*session)->Run(feeds);
      ASSERT_TRUE(outputs.ok()) << "run " << number << ": " << outputs.status();
      compare(number, *outputs);
      kept.emplace_back(number, *std::move(outputs));
    }
  }
  for (const auto& [number, outputs] : kept) compare(number, outputs);
}

class GraphsTest : public testing::TestWithParam<std::string> {};

TEST_P(GraphsTest, ComputesWhatTensorFlowComputes) {
  RecordedGraph recorded;
  ASSERT_NO_FATAL_FAILURE(Load(GetParam(), &recorded));
  std::vector<int> all;
  for (const auto& [index, tensor] : recorded.runs.begin()->second.out) all.push_back(index);
  if (KeepsState(recorded)) {
    // Each session starts from the initial values, and every run makes all recorded assignments.
    for (const int num_threads : {1, 2}) RunAll(recorded, all, num_threads, /*times=*/1);
    return;
  }
  for (const int num_threads : {1, 2}) RunAll(recorded, all, num_threads);
  for (const int one : all) RunAll(recorded, {one}, 1);
}

// The nodes behind branches and in loops run in partitions of the delegate, too.
TEST_P(GraphsTest, DelegatesComputeTheSame) {
  RecordedGraph recorded;
  ASSERT_NO_FATAL_FAILURE(Load(GetParam(), &recorded));
  std::vector<int> all;
  for (const auto& [index, tensor] : recorded.runs.begin()->second.out) all.push_back(index);
  for (const DelegateInfo& info : KnownDelegates()) {
    if (info.is_reference) continue;
    SCOPED_TRACE(info.name);
    if (const absl::Status status = MakeDelegate(info.name, {}).status(); absl::IsUnavailable(status)) {
      std::cout << info.name << " is skipped: " << status << std::endl;
      continue;
    }
    RunAll(recorded, all, /*num_threads=*/1, /*times=*/KeepsState(recorded) ? 1 : 2, info.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, GraphsTest, testing::ValuesIn(Files()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace permafrost
