// Tests of the parts of a search: budgets, isolated runs, journals, results as JSON, and pipelines for storages.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <map>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/file_system.h"
#include "io/formats/age/crypto.h"
#include "tests/io/test_in_folder.h"
#include "tests/tools/graph_from_text.h"
#include "tools/certificate/certificate.h"
#include "tools/certificate/embedded_certificate.h"
#include "tools/optimizing/budget.h"
#include "tools/optimizing/isolated_runs.h"
#include "tools/optimizing/journal.h"
#include "tools/optimizing/search_report.h"
#include "tools/optimizing/trial.h"
#include "tools/optimizing/weight_groups.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

TEST(BudgetTest, ParsesUnits) {
  EXPECT_DOUBLE_EQ(ParseFraction("0.5%").value(), 0.005);
  EXPECT_DOUBLE_EQ(ParseFraction("0.03").value(), 0.03);
  EXPECT_EQ(ParseByteCount("6MB").value(), 6'000'000u);
  EXPECT_EQ(ParseByteCount("1.5kB").value(), 1'500u);
  EXPECT_EQ(ParseByteCount("4MiB").value(), 4u << 20);
  EXPECT_EQ(ParseByteCount("12345").value(), 12345u);
  EXPECT_DOUBLE_EQ(ParseDuration("10ms").value(), 0.01);
  EXPECT_DOUBLE_EQ(ParseDuration("10m").value(), 600);
  EXPECT_DOUBLE_EQ(ParseDuration("2").value(), 2);
  EXPECT_DOUBLE_EQ(ParseLatencyLimit("0.7x")->ratio, 0.7);
  EXPECT_DOUBLE_EQ(ParseLatencyLimit("500us")->seconds, 0.0005);
}

TEST(BudgetTest, RefusesWhatIsNoBudget) {
  for (const char* text : {"", "%", "101%", "-0.1", "nan", "x", "inf"}) EXPECT_FALSE(ParseFraction(text).ok()) << text;
  for (const char* text : {"", "0", "-1MB", "6 apples", "MB", "1e30", "nan"}) {
    EXPECT_FALSE(ParseByteCount(text).ok()) << text;
  }
  for (const char* text : {"", "0s", "-1ms", "5 parsecs", "inf", "1e9h"})
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  for (const char* text : {"0x", "-1x", "x", "nanx", "fast"}) EXPECT_FALSE(ParseLatencyLimit(text).ok()) << text;
  EXPECT_EQ(ParseByteCount("6 apples").status().message(),
            "found '6 apples', expected a number of bytes such as 6MB, 600kB, 4MiB or 12345");
}

AccuracyMeasure Measured(double relative_rms, int64_t class_rows, int64_t other_classes) {
  AccuracyMeasure measure;
  measure.outputs.push_back({"y", relative_rms, relative_rms, class_rows, other_classes});
  return measure;
}

TEST(BudgetTest, JudgesErrorsByDefault) {
  const OptimizationBudget budget;
  EXPECT_LE(AccuracyShare(budget, Measured(0.03, 0, 0)), 1);
  EXPECT_GT(AccuracyShare(budget, Measured(0.031, 0, 0)), 1);
  // The same class in many rows suffices; in few rows it does not.
  EXPECT_LE(AccuracyShare(budget, Measured(0.5, 100, 0)), 1);
  EXPECT_GT(AccuracyShare(budget, Measured(0.5, 99, 0)), 1);
  // Another class in few rows is beyond the budget, in many rows the small error suffices.
  EXPECT_GT(AccuracyShare(budget, Measured(0.001, 2, 1)), 1);
  EXPECT_LE(AccuracyShare(budget, Measured(0.001, 200, 1)), 1);
  EXPECT_GT(AccuracyShare(budget, Measured(std::numeric_limits<double>::infinity(), 100, 0)), 1);
}

TEST(BudgetTest, JudgesLostAnswers) {
  OptimizationBudget budget;
  budget.max_accuracy_drop = 0.01;
  AccuracyMeasure measure = Measured(0.5, 1000, 5);
  EXPECT_LE(AccuracyShare(budget, measure), 1);  // Without labels, rows with another class count.
  measure.labels = {1000, 980, 991};
  EXPECT_GT(AccuracyShare(budget, measure), 1);
  measure.labels = {1000, 995, 991};
  EXPECT_EQ(AccuracyShare(budget, measure), 0);
  budget.max_error = 0.1;  // Both limits count.
  EXPECT_GT(AccuracyShare(budget, measure), 1);
  budget = {};
  budget.max_accuracy_drop = 0;
  measure.labels = {1000, 990, 991};
  EXPECT_GT(AccuracyShare(budget, measure), 1);
}

TEST(IsolatedRunsTest, SurvivesCrashesAndHangs) {
  const std::vector<IsolatedFunction> functions = {
      [] { return absl::StatusOr<std::string>(std::string(1 << 20, 'x')); },  // More than a pipe holds.
      []() -> absl::StatusOr<std::string> {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
        return std::string();
      },
      []() -> absl::StatusOr<std::string> {
        while (true) pause();
      },
      []() -> absl::StatusOr<std::string> { return absl::NotFoundError("no such layer"); },
      []() -> absl::StatusOr<std::string> { _exit(0); },
  };
  for (const int jobs : {1, 3}) {
    std::map<size_t, absl::StatusOr<std::string>> results;
    RunIsolated(functions, {jobs, 0.5}, nullptr,
                [&](size_t index, absl::StatusOr<std::string> result) { results.emplace(index, std::move(result)); });
    ASSERT_EQ(results.size(), functions.size());
    EXPECT_EQ(results.at(0).value_or("").size(), size_t{1} << 20);
    EXPECT_TRUE(absl::IsInternal(results.at(1).status())) << results.at(1).status();
    EXPECT_TRUE(absl::StrContains(results.at(1).status().message(), "crashed")) << results.at(1).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(results.at(2).status())) << results.at(2).status();
    EXPECT_EQ(results.at(3).status(), absl::NotFoundError("no such layer"));
    EXPECT_TRUE(absl::IsInternal(results.at(4).status())) << results.at(4).status();
  }
}

TEST(IsolatedRunsTest, StopsOnRequest) {
  const std::vector<IsolatedFunction> functions(3, []() -> absl::StatusOr<std::string> {
    while (true) pause();
  });
  size_t count = 0;
  RunIsolated(
      functions, {2, 300}, [] { return true; },
      [&](size_t, absl::StatusOr<std::string> result) {
        EXPECT_TRUE(absl::IsCancelled(result.status()));
        ++count;
      });
  EXPECT_EQ(count, functions.size());
}

class JournalTest : public TestInFolder {};

TEST_F(JournalTest, KeepsRecords) {
  FileSystem& files = RealFileSystem();
  const std::string path = Path("journal");
  const JournalHeader header = {"model", "in\"puts\n", "machine"};
  {
    absl::StatusOr<Journal> journal = Journal::Open(files, path, header);
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_TRUE(journal->Add("a | \"b\"", "{\n  \"x\": \"1 <2\"\n}\n").ok());
    ASSERT_TRUE(journal->Add("c", "[1]").ok());
  }
  absl::StatusOr<Journal> again = Journal::Open(files, path, header);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->size(), 2u);
  ASSERT_NE(again->Find("a | \"b\""), nullptr);
  EXPECT_EQ(*again->Find("a | \"b\""), "{\"x\":\"1 \\u003c2\"}");
  EXPECT_EQ(again->Find("d"), nullptr);
  const absl::Status other = Journal::Open(files, path, {"model", "others", "machine"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  // A last line without its end was cut off; a line that is broken otherwise is an error.
  const std::string text = files.ReadFile(path).value();
  const auto write = [&](const std::string& content) {
    auto writer = files.NewWriter(path).value();
    ASSERT_TRUE(writer->Append(content).ok());
    ASSERT_TRUE(writer->Commit().ok());
  };
  for (size_t size = 0; size < text.size(); size += 5) {
    write(text.substr(0, size));
    const absl::StatusOr<Journal> cut = Journal::Open(files, path, header);
    EXPECT_EQ(cut.ok(), size > text.find('\n')) << size << cut.status();
  }
  write(absl::StrCat(text, "{\"key\": 5}\n"));
  EXPECT_TRUE(absl::IsInvalidArgument(Journal::Open(files, path, header).status()));
}

TEST(TrialTest, ResultsAreReadAsWritten) {
  TrialResult result;
  result.bytes = 123456789012;
  result.compressed_bytes = 5;
  result.memory_bytes = 7;
  result.nodes = 3;
  result.accuracy = Measured(0.1 + 0.2, 4, 1);
  result.accuracy.outputs.push_back({"z \"\\", std::numeric_limits<double>::infinity(), 0, 0, 0});
  result.accuracy.labels = {10, 9, 8};
  std::ostringstream text;
  JsonWriter json(text);
  WriteTrialResult(result, &json);
  const absl::StatusOr<TrialResult> read = ParseTrialResult(text.str());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->bytes, result.bytes);
  EXPECT_EQ(read->accuracy.outputs[0].relative_rms, 0.1 + 0.2);
  EXPECT_EQ(read->accuracy.outputs[1].name, "z \"\\");
  EXPECT_EQ(read->accuracy.outputs[1].relative_rms, std::numeric_limits<double>::infinity());
  EXPECT_EQ(read->accuracy.labels.right, 9);
  for (const char* bad : {"", "[]", "{}", R"({"failure":1})", R"({"failure":"","bytes":-1})"}) {
    EXPECT_FALSE(ParseTrialResult(bad).ok()) << bad;
  }
}

WeightGroup Group(std::vector<std::string> constants, int64_t elements) {
  WeightGroup group;
  group.constants = std::move(constants);
  group.elements = elements;
  return group;
}

TEST(WeightGroupsTest, WritesTheShortestPipeline) {
  const std::vector<WeightGroup> groups = {Group({"a"}, 5000), Group({"b"}, 4000), Group({"c", "d"}, 600)};
  const auto transforms = [&](std::vector<Coding> codings, bool half) {
    return TransformsOf("base", groups, {std::move(codings), half, false});
  };
  EXPECT_EQ(transforms({Coding::kFloat, Coding::kFloat, Coding::kFloat}, false), "base");
  EXPECT_EQ(transforms({Coding::kEightBits, Coding::kEightBits, Coding::kEightBits}, false),
            R"(base quantize_weights(bits="8", per_channel="true", minimum_size="256"))");
  EXPECT_EQ(transforms({Coding::kFourBits, Coding::kEightBits, Coding::kEightBits}, false),
            R"(base quantize_weights(bits="4", per_channel="true", minimum_size="256", only_node="a"))"
            R"( quantize_weights(bits="8", per_channel="true", minimum_size="256"))");
  EXPECT_EQ(transforms({Coding::kEightBits, Coding::kFloat, Coding::kEightBits}, true),
            R"(base quantize_weights(bits="8", per_channel="true", minimum_size="256", exclude_node="b"))"
            R"( convert_float16_weights(minimum_size="32", exclude_node="b"))");
  EXPECT_EQ(
      TransformsOf("base", groups, {{Coding::kFourBitBlocks, Coding::kSixteenBits, Coding::kSixteenBits}, false, true}),
      R"(base quantize_weights(bits="4", per_channel="true", minimum_size="256", block="32", )"
      R"(calibration="optimize_model.calibration", only_node="a"))"
      R"( quantize_weights(bits="16", per_channel="true", minimum_size="256"))");
  // Every pipeline parses.
  const Coding all[] = {Coding::kFourBits, Coding::kFourBitBlocks, Coding::kEightBits, Coding::kSixteenBits,
                        Coding::kFloat};
  for (const Coding a : all) {
    for (const Coding b : all) {
      for (const bool is_calibrated : {false, true}) {
        const std::string text = TransformsOf("optimize_for_inference", groups, {{a, b, a}, true, is_calibrated});
        EXPECT_TRUE(ParseTransforms(text).ok()) << text;
      }
    }
  }
  // Fewer bits, fewer bytes.
  for (size_t i = 0; i + 1 < std::size(all); ++i) {
    EXPECT_LT(EstimatedBytes(groups[0], all[i]), EstimatedBytes(groups[0], all[i + 1]));
  }
}

TEST(WeightGroupsTest, BundlesSmallConstants) {
  Graph graph;
  for (int i = 0; i < 20; ++i) {
    const auto size = static_cast<int64_t>(i < 2 ? 100 : 300 + i);
    ASSERT_TRUE(
        graph
            .AddConst(absl::StrCat("w", i),
                      Tensor::FromVector<float>(Shape({size}), std::vector<float>(static_cast<size_t>(size), 1)))
            .ok());
  }
  const std::vector<WeightGroup> all = FindWeightGroups(graph, 100);
  ASSERT_EQ(all.size(), 18u);  // Two are too small.
  EXPECT_EQ(all[0].constants[0], "w19");
  const std::vector<WeightGroup> bundled = FindWeightGroups(graph, 8);
  ASSERT_LE(bundled.size(), 8u);
  size_t count = 0;
  for (const WeightGroup& group : bundled) count += group.constants.size();
  EXPECT_EQ(count, 18u);
}

TEST(CertificateTest, HashesAreThoseOfTheStandard) {
  EXPECT_EQ(absl::BytesToHexString(age::Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

Certificate SomeCertificate() {
  Certificate certificate;
  certificate.tool = "optimize_model <1>";
  certificate.model = {"ab", 5};
  certificate.measures.push_back({"held back", 0.01, 10, 9, 8, 0.6, 0.98});
  certificate.inputs = {"x"};
  certificate.outputs = {"y", "z"};
  certificate.seed = 0xfedcba9876543210u;
  certificate.proof = {{"y", "12", 2, {1, -1.5}}, {"z", "34", 0, {}}};
  return certificate;
}

TEST(CertificateTest, IsReadAsWrittenAndFoundAltered) {
  const std::string text = CertificateText(SomeCertificate());
  const absl::StatusOr<Certificate> read = ParseCertificate(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(CertificateText(*read), text);
  EXPECT_EQ(read->seed, 0xfedcba9876543210u);
  // Every changed character is found, except blanks between parts.
  for (size_t i = 0; i < text.size(); ++i) {
    std::string altered = text;
    altered[i] = altered[i] == '7' ? '8' : '7';
    if (text[i] == '\n') continue;
    EXPECT_FALSE(ParseCertificate(altered).ok()) << i << altered;
  }
}

TEST(CertificateTest, IsFoundAtTheEndOfAModel) {
  const std::string model(
      "\x0a\x02"
      "ab",
      4),
      text = "{ \"a\": 1 }";
  const std::string file = model + EmbeddedCertificate(text);
  EXPECT_EQ(SplitCertificate(file).model, model);
  EXPECT_EQ(SplitCertificate(file).certificate, text);
  EXPECT_EQ(SplitCertificate(EmbeddedCertificate("")).model, "");
  // Whatever is cut off or altered in the frame, nothing is found and nothing is read beyond the bytes.
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_EQ(SplitCertificate(absl::string_view(file).substr(0, size)).certificate, "") << size;
  }
  for (size_t i = file.size() - 16; i < file.size(); ++i) {
    std::string altered = file;
    altered[i] = static_cast<char>(altered[i] ^ 0x81);
    EXPECT_EQ(SplitCertificate(altered).model.size(), altered.size()) << i;
  }
}

TEST(CertificateTest, ComparesOutputs) {
  const std::vector<ProvenOutput> certified = SomeCertificate().proof;
  std::vector<ProvenOutput> found = certified;
  EXPECT_TRUE(CompareProofs(certified, found)->at(0).is_identical);
  found[0].sha256 = "56";
  found[0].sketch = {1.02, -1.48};
  EXPECT_NEAR(CompareProofs(certified, found)->at(0).relative_rms, 0.01, 1e-9);
  found[1].sha256 = "78";
  EXPECT_TRUE(std::isinf(CompareProofs(certified, found)->at(1).relative_rms));
  found[1].name = "other";
  EXPECT_FALSE(CompareProofs(certified, found).ok());
  found.pop_back();
  EXPECT_FALSE(CompareProofs(certified, found).ok());
}

TEST(SearchReportTest, QuotesCommands) {
  EXPECT_EQ(TransformCommand("it's.pb", "out.pb", "x", "y", R"(a(b="c"))"),
            R"(transform_graph --in_graph='it'\''s.pb' --out_graph='out.pb' --inputs='x' --outputs='y' )"
            R"(--transforms='a(b="c")')");
}

}  // namespace
}  // namespace permafrost
