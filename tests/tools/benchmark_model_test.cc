// End-to-end tests of benchmark_model on a small model: its output, its files, and Ctrl-C.
#include "tools/benchmark_model.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/json_value.h"
#include "io/formats/npy.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/precision/precision_plan.h"
#include "tools/benchmark/faster_delegate.h"
#include "tools/measuring/benchmark_entries.h"

namespace permafrost {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// exp(x + x), of shape [2].
constexpr char kModel[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "sum" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Exp" input: "sum" attr { key: "T" value { type: DT_FLOAT } } }
)";

// The logarithm of the input: NaN below zero.
constexpr char kLogarithm[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "y" op: "Log" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
)";

std::string TempPath(const std::string& name) { return absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name); }

std::string WriteModel(const std::string& name, const std::string& text) {
  std::ofstream(TempPath(name)) << text;
  return TempPath(name);
}

struct Printed {
  absl::Status status;
  std::string out;
};

Printed RunTool(BenchmarkModelOptions options) {
  options.run.threads = 1;
  std::ostringstream out, err;
  Console console{out, err};
  Printed printed;
  printed.status = BenchmarkModel(options, RealFileSystem(), console);
  printed.out = out.str();
  return printed;
}

BenchmarkModelOptions Options(int runs) {
  BenchmarkModelOptions options;
  options.subject.graph = WriteModel("model.pbtxt", kModel);
  options.max_num_runs = runs;
  return options;
}

TEST(BenchmarkModelTest, FindsAFasterDelegate) {
  const BenchmarkModelOptions options = Options(1);
  std::ostringstream out, err;
  Console console{out, err};
  const auto subject = BenchmarkSubject::Open(options.subject, RealFileSystem(), console);
  ASSERT_TRUE(subject.ok()) << subject.status();
  const RunFlags run = SettledRunFlags(options);
  EXPECT_FALSE(NamesDelegate(options));
  EXPECT_EQ(run.delegate, kReferenceDelegate);
  // An hour per run is slow for any delegate, and nothing takes no time.
  const std::optional<FasterDelegate> faster = FindFasterDelegate(run, **subject, 3600, RealFileSystem());
  ASSERT_TRUE(faster.has_value());
  EXPECT_NE(faster->name, kReferenceDelegate);
  EXPECT_FALSE(FindFasterDelegate(run, **subject, 0, RealFileSystem()).has_value());
}

// Checks every line, in order; scripts that parse the output of TensorFlow's tool rely on them.
TEST(BenchmarkModelTest, PrintsTheOriginalsLines) {
  BenchmarkModelOptions options = Options(10);
  options.show_flops = true;
  const Printed printed = RunTool(options);
  ASSERT_TRUE(printed.status.ok()) << printed.status;
  const std::vector<std::string> lines = absl::StrSplit(printed.out, '\n');
  const std::vector<std::string> expected = {
      "Graph: \\[.*model.pbtxt\\]",
      "Init ops:",
      "Input layers: \\[x\\]",
      "Input shapes: \\[2\\]",
      "Input types: \\[float\\]",
      "Output layers: \\[y\\]",
      "Target layers: \\[\\]",
      "Num runs: \\[10\\]",
      "Inter-inference delay \\(seconds\\): \\[-1.0\\]",
      "Inter-benchmark delay \\(seconds\\): \\[-1.0\\]",
      "Num threads: \\[1\\]",
      "Benchmark name: \\[\\]",
      "Output prefix: \\[\\]",
      "Show sizes: \\[false\\]",
      "Warmup runs: \\[1\\]",
      "Delegate: \\[reference\\] precision: \\[f32\\]",
      "Loaded model in [0-9.]+s",
      "Initialized session in [0-9.]+s",
      "Running benchmark for max 1 iterations, max -1 seconds without detailed stat logging, with -1s sleep between "
      "inferences",
      "count=1 curr=[0-9]+",
      "",
      "Running benchmark for max 10 iterations, max 10 seconds without detailed stat logging, with -1s sleep between "
      "inferences",
      "count=10 .*",
      "",
      "Running benchmark for max 10 iterations, max 10 seconds with detailed stat logging, with -1s sleep between "
      "inferences",
      "count=10 .*",
      "",
      "Average inference timings in us: Warmup: [0-9]+, no stats: [0-9]+, with stats: [0-9]+",
      "Robust timings \\(microseconds\\): median=.*",
      "Cold start \\(microseconds\\): load=[0-9]+ init=[0-9]+ first=[0-9]+",
      "Memory footprint delta from the start of the tool \\(MB\\): init=-?[0-9.]+ overall=-?[0-9.]+",
      "============================== Run Order ==============================",
      "\t +\\[node type\\].*",
      "\t                   AddV2\t.*\tsum",
      "\t                     Exp\t.*\ty",
      "",
      "============================== Top by Computation Time ==============================",
      "\t +\\[node type\\].*",
      "\t.*",
      "\t.*",
      "",
      "============================== Top by Memory Use ==============================",
      "\t +\\[node type\\].*",
      "\t.*",
      "\t.*",
      "",
      "Number of nodes executed: 2",
      "============================== Summary by node type ==============================",
      "\t +\\[Node type\\].*",
      "\t.*",
      "\t.*",
      "",
      "Timings \\(microseconds\\): count=10 .*",
      "Memory \\(bytes\\): count=10 curr=16\\(all same\\)",
      "2 nodes observed",
      "",
      "FLOPs estimate: 0",
      "FLOPs/second: 0",
  };
  ASSERT_GE(lines.size(), expected.size()) << printed.out;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_THAT(lines[i], MatchesRegex(expected[i])) << "line " << i + 1;
  }
  // A noisy machine may add one note.
  EXPECT_LE(lines.size(), expected.size() + 2) << printed.out;
}

TEST(BenchmarkModelTest, LeavesOutWhatIsSwitchedOff) {
  BenchmarkModelOptions options = Options(2);
  options.tables.show_run_order = options.tables.show_time = options.tables.show_memory = false;
  options.tables.show_type = false;
  const Printed printed = RunTool(options);
  EXPECT_THAT(printed.out, testing::Not(HasSubstr("======")));
  EXPECT_THAT(printed.out, HasSubstr("Timings (microseconds): count=2"));
  options.enable_op_profiling = false;
  EXPECT_THAT(RunTool(options).out, testing::Not(HasSubstr("with detailed")));
}

TEST(BenchmarkModelTest, JsonHasWhatTheTextHas) {
  BenchmarkModelOptions options = Options(5);
  options.json = true;
  const Printed printed = RunTool(options);
  ASSERT_TRUE(printed.status.ok()) << printed.status;
  const absl::StatusOr<JsonValue> json = ParseJson(printed.out);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->Find("threads")->number, 1);
  EXPECT_EQ(json->Find("runs")->Find("count")->number, 5);
  EXPECT_GT(json->Find("runs")->Find("median_seconds")->number, 0);
  ASSERT_EQ(json->Find("nodes")->items.size(), 2u);
  EXPECT_EQ(json->Find("nodes")->items[1].Find("type")->text, "Exp");
  EXPECT_FALSE(json->Find("interrupted")->boolean);
}

TEST(BenchmarkModelTest, ReportsNaN) {
  BenchmarkModelOptions options = Options(3);
  options.subject.graph = WriteModel("logarithm.pbtxt", kLogarithm);
  options.subject.inputs.values = "-1,1";
  const Printed printed = RunTool(options);
  ASSERT_TRUE(printed.status.ok()) << printed.status;
  EXPECT_THAT(printed.out, HasSubstr("note: output 'y' has 1 NaN and 0 infinite of 2 elements"));
}

TEST(BenchmarkModelTest, PrintsWhatItHasAfterCtrlC) {
  BenchmarkModelOptions options = Options(0);
  options.max_time = 1000;
  options.inference_delay = 0.001;
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    kill(getpid(), SIGINT);
  });
  const Printed printed = RunTool(options);
  later.join();
  EXPECT_EQ(printed.status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(printed.status.message()), MatchesRegex("interrupted after [0-9]+ measured runs; .*"));
  EXPECT_THAT(printed.out, HasSubstr("\ncount="));
  EXPECT_THAT(printed.out, HasSubstr("Robust timings"));
}

TEST(BenchmarkModelTest, WritesCsvAndEntries) {
  BenchmarkModelOptions options = Options(2);
  options.profiling_output_csv_file = TempPath("profile.csv");
  options.benchmark_name = "a/b";
  options.output_prefix = TempPath("entries_");
  ASSERT_TRUE(RunTool(options).status.ok());
  std::stringstream csv;
  csv << std::ifstream(TempPath("profile.csv")).rdbuf();
  EXPECT_THAT(csv.str(), HasSubstr("\nAddV2,"));
  for (const char* name : {"a__b", "a__b_meta-init", "a__b_meta-first-inference", "a__b_meta-init-plus-first-inference",
                           "a__b_AddV2", "a__b_Exp"}) {
    EXPECT_TRUE(RealFileSystem().Exists(TempPath(absl::StrCat("entries_", name)))) << name;
  }
  EXPECT_EQ(RunTool(options).status.code(), absl::StatusCode::kAlreadyExists);
}

// The bytes are those of TensorFlow's own BenchmarkEntries message.
TEST(BenchmarkEntriesTest, AreProtobuf) {
  const std::string expected =
      std::string("\x0a\x20\x0a\x01n\x10\x04\x19\x00\x00\x00\x00\x00\x00\xd0\xbf", 16) +
      std::string("\x21\x00\x00\x00\x00\x00\x00\xe0\x3f\x29\x00\x00\x00\x00\x00\x00\xf0\xbf", 18);
  EXPECT_EQ(EncodeBenchmarkEntry({"n", 4, 2.0, -1}), expected);
}

TEST(BenchmarkModelTest, RefusesWhatCannotBe) {
  BenchmarkModelOptions options = Options(0);
  options.max_time = 0;
  EXPECT_THAT(std::string(RunTool(options).status.message()), HasSubstr("nothing else ends the measurement"));
  options = Options(1);
  options.profiling_output_csv_file = "/nowhere/profile.csv";
  EXPECT_THAT(std::string(RunTool(options).status.message()), HasSubstr("/nowhere/profile.csv"));
  options = Options(1);
  options.run.cpu_affinity = "4000";
  EXPECT_EQ(RunTool(options).status.code(), absl::StatusCode::kInvalidArgument);
}

// Returns the int8 plan of the digits model, calibrated with one picture of this brightness.
std::string PlanCalibratedWith(float brightness) {
  const std::string inputs = TempPath(absl::StrCat("calibration_", brightness, ".npy"));
  const std::unique_ptr<FileWriter> writer = RealFileSystem().NewWriter(inputs).value();
  std::vector<float> pixels(8 * 8);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = brightness * static_cast<float>(i % 7) / 6;
  EXPECT_TRUE(WriteNpy(Tensor::FromVector<float>({1, 8, 8, 1}, pixels), writer.get()).ok());
  EXPECT_TRUE(writer->Commit().ok());
  BenchmarkModelOptions options = Options(1);
  options.subject.graph = "tests/models/digits/digits.pb";
  options.run.delegate = "onednn";
  options.run.precision = "int8";
  options.run.calibration_inputs = {inputs};
  options.run.precision_plan = TempPath(absl::StrCat("plan_", brightness, ".json"));
  EXPECT_TRUE(RunTool(options).status.ok()) << RunTool(options).status;
  return RealFileSystem().ReadFile(options.run.precision_plan).value();
}

TEST(BenchmarkModelTest, CalibratesWithTheInputsThatAreNamed) {
  auto plan = std::make_shared<PrecisionPlan>();
  plan->precision = Precision::kInt8;
  if (!MakeDelegate("onednn", {"mixed", plan, nullptr}).ok())
    GTEST_SKIP() << "this processor has no eight-bit arithmetic";
  EXPECT_NE(PlanCalibratedWith(1), PlanCalibratedWith(0.25));
}

}  // namespace
}  // namespace permafrost
