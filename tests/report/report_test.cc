// Tests of the counts of a report, of the positions in its drawing, and of the escaping of hostile names.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/json_value.h"
#include "tests/tools/graph_from_text.h"
#include "tools/report/graph_layout.h"
#include "tools/report/model_facts.h"
#include "tools/report/report_formats.h"
#include "tools/report/report_page.h"
#include "tools/report/weight_histogram.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

using Edges = std::vector<std::pair<int32_t, int32_t>>;

// No two nodes overlap, and all are inside the drawing.
void ExpectNoOverlap(const GraphLayout& layout) {
  std::map<float, std::vector<float>> rows;
  for (const Point& node : layout.nodes) {
    rows[node.y].push_back(node.x);
    EXPECT_GE(node.x, kDrawnNodeWidth / 2 - 1);
    EXPECT_LE(node.x, layout.width - kDrawnNodeWidth / 2 + 1);
    EXPECT_GE(node.y, kDrawnNodeHeight / 2);
    EXPECT_LE(node.y, layout.height - kDrawnNodeHeight / 2);
  }
  for (auto& [y, row] : rows) {
    std::sort(row.begin(), row.end());
    for (size_t i = 1; i < row.size(); ++i) EXPECT_GE(row[i] - row[i - 1], kDrawnNodeWidth) << "at " << y;
  }
}

TEST(GraphLayoutTest, PutsReadersBelow) {
  // A diamond with a long edge beside it.
  const Edges edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {0, 4}};
  const GraphLayout layout = LayOut(5, edges);
  ExpectNoOverlap(layout);
  for (const auto& [from, to] : edges) {
    EXPECT_LT(layout.nodes[static_cast<size_t>(from)].y, layout.nodes[static_cast<size_t>(to)].y);
  }
  EXPECT_EQ(layout.nodes[1].y, layout.nodes[2].y);
  // The long edge crosses two layers, each below the previous one, and passes around the nodes there.
  ASSERT_EQ(layout.bends[5].size(), 2u);
  EXPECT_LT(layout.bends[5][0].y, layout.bends[5][1].y);
  EXPECT_GT(std::abs(layout.bends[5][1].x - layout.nodes[3].x), kDrawnNodeWidth / 2);
}

TEST(GraphLayoutTest, PutsAChainInALine) {
  Edges edges;
  for (int32_t i = 1; i < 300; ++i) edges.emplace_back(i - 1, i);
  const GraphLayout layout = LayOut(300, edges);
  ExpectNoOverlap(layout);
  for (const Point& node : layout.nodes) EXPECT_FLOAT_EQ(node.x, layout.nodes[0].x);
}

TEST(GraphLayoutTest, TakesCyclesLoopsAndNothing) {
  EXPECT_TRUE(LayOut(0, {}).nodes.empty());
  ExpectNoOverlap(LayOut(3, {}));
  ExpectNoOverlap(LayOut(4, {{0, 1}, {1, 2}, {2, 1}, {2, 3}, {3, 3}}));
  ExpectNoOverlap(LayOut(2, {{0, 1}, {1, 0}}));
}

TEST(GraphLayoutTest, TakesAGraphThatIsWideAndDeepAtOnce) {
  Edges edges;
  constexpr int32_t kNodes = 3000;
  for (int32_t i = 1; i < kNodes; ++i) {
    edges.emplace_back(i / 2, i);
    if (i > 100) edges.emplace_back(i - 97, i);
  }
  // All nodes lead into one at the end.
  for (int32_t i = 0; i < kNodes - 1; i += 3) edges.emplace_back(i, kNodes - 1);
  ExpectNoOverlap(LayOut(kNodes, edges));
}

TEST(WeightHistogramTest, CountsWhatIsFiniteAndWhatIsNot) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor tensor = Tensor::FromVector<float>({8}, {-1, 0, 0, 1, NAN, infinity, -infinity, 0.5f});
  const std::optional<WeightHistogram> histogram = MakeWeightHistogram(tensor);
  ASSERT_TRUE(histogram.has_value());
  EXPECT_EQ(histogram->low, -1);
  EXPECT_EQ(histogram->high, 1);
  EXPECT_EQ(histogram->num_zeros, 2);
  EXPECT_EQ(histogram->num_nan, 1);
  EXPECT_EQ(histogram->num_infinite, 2);
  EXPECT_DOUBLE_EQ(histogram->mean, 0.1);
  EXPECT_NEAR(histogram->deviation, std::sqrt((1.21 + 0.01 + 0.01 + 0.81 + 0.16) / 5), 1e-6);
  EXPECT_EQ(histogram->counts.front(), 1);
  EXPECT_EQ(histogram->counts.back(), 1);
  EXPECT_EQ(histogram->counts[kHistogramBins / 2], 2);
}

TEST(WeightHistogramTest, TakesExtremes) {
  const double most = std::numeric_limits<double>::max();
  const std::optional<WeightHistogram> wide = MakeWeightHistogram(Tensor::FromVector<double>({2}, {-most, most}));
  EXPECT_EQ(wide->counts.front() + wide->counts.back(), 2);
  const std::optional<WeightHistogram> same = MakeWeightHistogram(Tensor::FromVector<float>({3}, {7, 7, 7}));
  EXPECT_EQ(same->counts[0], 3);
  EXPECT_EQ(same->deviation, 0);
  const std::optional<WeightHistogram> none = MakeWeightHistogram(Tensor::FromVector<float>({1}, {NAN}));
  EXPECT_EQ(none->num_nan, 1);
  EXPECT_FALSE(MakeWeightHistogram(Tensor::FromVector<float>({0}, {})).has_value());
  EXPECT_FALSE(MakeWeightHistogram(Tensor::FromStrings({1}, {"a"})).has_value());
}

TEST(GraphFactsTest, GivesConstantsToThoseWhoReadThem) {
  std::unique_ptr<Graph> graph = GraphFromText(
      "x = Placeholder()\n"
      "w = Const()\n"
      "read = Identity(w)\n"
      "packed = Const()\n"
      "unpacked = Neg(packed)\n"
      "a = Mul(x, read)\n"
      "b = Add(a, unpacked)\n");
  ASSERT_TRUE(graph->DeclareInterface({"x"}, {"b"}).ok());
  const GraphFacts facts = CollectGraphFacts(*graph, {});
  std::map<std::string, uint64_t> weights;
  for (const NodeFacts& node : facts.nodes) weights[std::string(node.node->name())] = node.weight_bytes;
  EXPECT_EQ(weights, (std::map<std::string, uint64_t>{{"x", 0}, {"unpacked", 0}, {"a", 8}, {"b", 8}}));
  EXPECT_EQ(facts.weight_bytes, 16u);
  EXPECT_EQ(facts.num_parameters, 4);
  ASSERT_THAT(facts.inputs, SizeIs(1));
  EXPECT_EQ(facts.inputs[0].name, "x");
  EXPECT_EQ(facts.inputs[0].type->ToString(), "float [2]");
  EXPECT_EQ(facts.inputs[0].type->shape, Shape({2}));
  ASSERT_THAT(facts.outputs, SizeIs(1));
  EXPECT_EQ(facts.outputs[0].name, "b");
  EXPECT_EQ(facts.outputs[0].type->ToString(), "float [2]");
  EXPECT_EQ(facts.edges.size(), 3u);
  EXPECT_TRUE(facts.layout.has_value());
}

// A report on a model with hostile names.
constexpr char kHostile[] = "</script><script>document.title='taken'</script>&\"'`|,\n=x\xff";

struct HostileReport {
  std::unique_ptr<Graph> graph;
  Report report;
};

HostileReport MakeHostileReport() {
  HostileReport made;
  made.graph = GraphFromText("x = Placeholder()\ny = Softmax(x)\n");
  EXPECT_TRUE(made.graph->Rename(made.graph->Find("y"), kHostile).ok());
  made.report.title = kHostile;
  ModelFacts& model = made.report.models.emplace_back();
  model.name = model.path = kHostile;
  model.graph = CollectGraphFacts(*made.graph, {});
  model.graph.nodes[1].seconds = std::numeric_limits<double>::quiet_NaN();
  model.graph.nodes[1].sqnr_db = std::numeric_limits<double>::infinity();
  model.quality.emplace().sqnr_db = -std::numeric_limits<double>::infinity();
  return made;
}

TEST(ReportPageTest, KeepsNamesFromBecomingMarkup) {
  const HostileReport made = MakeHostileReport();
  const std::string page = ReportPage(made.report);
  EXPECT_THAT(page, Not(HasSubstr("<script>document")));
  // The template contains each placeholder exactly once.
  size_t scripts = 0;
  for (size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1)) ++scripts;
  EXPECT_EQ(scripts, 2u);
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;"));
  EXPECT_THAT(page, HasSubstr("\\u003c/script\\u003e"));
  // A placeholder of the template inside a name is not filled in.
  Report report;
  report.title = "{{FACTS}}";
  EXPECT_THAT(ReportPage(report), HasSubstr("<title>{{FACTS}}</title>"));
}

TEST(ReportPageTest, EmbedsJsonThatReadsBackTheSame) {
  const std::string text = "{\n  \"a\": \"x  <b> & \\\" \\\\\",\n  \"c\": [\n    1,\n    null\n  ]\n}\n";
  const std::string embedded = EmbeddableJson(text);
  EXPECT_EQ(embedded, "{\"a\":\"x  \\u003cb\\u003e \\u0026 \\\" \\\\\",\"c\":[1,null]}");
  EXPECT_EQ(ParseJson(embedded)->Find("a")->text, "x  <b> & \" \\");
}

TEST(ReportFormatsTest, WritesJsonThatIsJson) {
  const HostileReport made = MakeHostileReport();
  std::ostringstream text;
  JsonWriter json(text);
  WriteReportJson(made.report, &json);
  const std::string written = text.str();
  const absl::StatusOr<JsonValue> read = ParseJson(written);
  ASSERT_TRUE(read.ok()) << read.status();
  const JsonValue& model = read->Find("models")->items.at(0);
  const JsonValue& node = model.Find("graph")->Find("nodes")->items.at(1);
  EXPECT_THAT(node.Find("name")->text, HasSubstr("</script>"));
  EXPECT_EQ(node.Find("seconds")->kind, JsonValue::Kind::kNull);
  EXPECT_EQ(node.Find("sqnr_db")->text, "identical");
  EXPECT_EQ(model.Find("quality")->Find("sqnr_db")->text, "not finite");
}

// A model of this size with these latencies in milliseconds.
ModelFacts Measured(const std::string& name, uint64_t bytes, const std::vector<double>& milliseconds) {
  ModelFacts model;
  model.name = name;
  model.file_bytes = bytes;
  std::vector<double> seconds;
  for (const double each : milliseconds) seconds.push_back(each * 1e-3);
  model.run.emplace().seconds = Sample(seconds);
  return model;
}

TEST(ReportFormatsTest, ConcludesWhichModelWins) {
  Report report;
  report.models = {Measured("a", 4'000'000, {10, 10, 10, 10, 10}), Measured("b", 1'000'000, {5, 5, 5, 5, 5})};
  EXPECT_EQ(Conclusion(report),
            "b is the fastest (5.0 ms per run, 2.00 times as fast as a); b is the smallest (1.00 MB, "
            "4.00 times smaller than a).");
  report.models[1].quality.emplace().sqnr_db = 31.25;
  EXPECT_THAT(Conclusion(report), HasSubstr("; the SQNR of b is 31.2 dB."));
  report.models[0].quality.emplace().accuracy = 0.9;
  report.models[1].quality->accuracy = 0.85;
  EXPECT_THAT(Conclusion(report), HasSubstr("; the accuracy of b is 85.00 %, that of a 90.00 %."));
}

TEST(ReportFormatsTest, DoesNotConcludeFromNoise) {
  Report report;
  report.models = {Measured("a", 1000, {10, 11, 9, 10, 12, 8}), Measured("b", 1000, {9.9, 11, 9, 10, 12, 8})};
  EXPECT_THAT(Conclusion(report), HasSubstr("are equally fast within the noise"));
  EXPECT_THAT(Conclusion(report), Not(HasSubstr("smallest")));
  report.models.resize(1);
  EXPECT_EQ(Conclusion(report), "a takes 10.0 ms per run; has 1.00 kB.");
  report.models.clear();
  EXPECT_EQ(Conclusion(report), "");
}

TEST(ReportFormatsTest, QuotesInCsv) {
  const HostileReport made = MakeHostileReport();
  const std::string csv = ReportCsv(made.report);
  EXPECT_THAT(csv, HasSubstr("model,node,op,output,flops"));
  EXPECT_THAT(csv, HasSubstr("&\"\"'`|,\n=x"));
  // NaN is omitted.
  EXPECT_THAT(csv, HasSubstr("Softmax,float [2],0,0,8,,inf\n"));
}

TEST(ReportFormatsTest, EscapesInMarkdown) {
  const HostileReport made = MakeHostileReport();
  const std::string text = ReportMarkdown(made.report);
  EXPECT_THAT(text, Not(HasSubstr("<script>")));
  EXPECT_THAT(text, HasSubstr("&lt;/script&gt;"));
  EXPECT_THAT(text, HasSubstr("\\`\\|,\\\\x0a=x"));
}

}  // namespace
}  // namespace permafrost
