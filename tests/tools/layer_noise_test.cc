// Tests that noisy layers are found regardless of noise in earlier layers, and that tensors that only share a name are
// ignored.
#include "tools/validation/layer_noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "io/formats/json_value.h"
#include "tests/tools/graph_from_text.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

// x -> a = x * ca -> b = Relu(a) -> c = b * cc -> y = c + cy, with constants of two elements.
std::unique_ptr<Graph> Chain(float ca, float cc, float cy, const std::string& suffix = "") {
  std::unique_ptr<Graph> graph =
      GraphFromText(absl::StrCat("x = Placeholder()\nca = Const()\na", suffix, " = Mul(x, ca)\nb = Relu(a", suffix,
                                 ")\ncc = Const()\nc = Mul(b, cc)\ncy = Const()\ny = Add(c, cy)\n"));
  graph->Find("x")->SetAttr("shape", AttrValue::OfShape({kUnknownDim, 2}));
  const auto set = [&](const char* name, float value) {
    graph->Find(name)->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector<float>({2}, {value, value})));
  };
  set("ca", ca);
  set("cc", cc);
  set("cy", cy);
  EXPECT_TRUE(graph->DeclareInterface({"x"}, {"y"}).ok());
  return graph;
}

std::unique_ptr<BatchSource> Inputs() {
  std::vector<InputSet> sets;
  for (int i = 0; i < 3; ++i) {
    const auto step = static_cast<float>(i);
    sets.push_back({Tensor::FromVector<float>({2, 2}, {1 + step, 2, 3, 4 - step})});
  }
  return KeptBatches(std::move(sets), std::nullopt);
}

LayerNoiseReport Measure(const Graph& reference, const Graph& candidate, const LayerNoiseSettings& settings = {}) {
  const auto source = Inputs();
  absl::StatusOr<LayerNoiseReport> report = MeasureLayerNoise(reference, candidate, *source, settings);
  EXPECT_TRUE(report.ok()) << report.status();
  return *std::move(report);
}

const LayerNoise* Find(const std::vector<LayerNoise>& layers, const std::string& name) {
  for (const LayerNoise& layer : layers) {
    if (layer.reference == name) return &layer;
  }
  return nullptr;
}

TEST(LayerNoiseTest, BlamesTheLayerAndNotThoseBehindIt) {
  const auto reference = Chain(2, 3, 0), candidate = Chain(2.02F, 3.003F, 0);
  const LayerNoiseReport report = Measure(*reference, *candidate);
  EXPECT_EQ(report.num_runs, 3);
  ASSERT_EQ(report.layers.size(), 4);
  EXPECT_EQ(report.layers[0].reference, "a");  // A difference of 1 % is 40 dB.
  EXPECT_NEAR(*report.layers[0].own_sqnr_db, 40, 0.01);
  EXPECT_EQ(report.layers[1].reference, "c");
  EXPECT_NEAR(*report.layers[1].own_sqnr_db, 60, 0.05);
  EXPECT_NEAR(report.layers[1].sqnr_db, -20 * std::log10(1.01 * 1.001 - 1), 0.05);
  for (const char* exact : {"b", "y"}) {
    EXPECT_TRUE(std::isinf(*Find(report.layers, exact)->own_sqnr_db)) << exact;
    EXPECT_LT(Find(report.layers, exact)->sqnr_db, 41) << exact;
  }
  std::ostringstream out, err;
  PrintLayerNoise(report, {out, err});
  EXPECT_THAT(out.str(), HasSubstr("exact by themselves: 2 layers"));
  EXPECT_THAT(out.str(), testing::ContainsRegex("a +Mul +40\\.0 +40\\.0"));
}

TEST(LayerNoiseTest, AFactorThatMovedIsNoNoise) {
  // The candidate has the factor 3 already in the first layer, as after folding.
  const auto reference = Chain(2, 3, 0), candidate = Chain(6, 1.01F, 0);
  const LayerNoiseReport report = Measure(*reference, *candidate);
  EXPECT_NE(Find(report.set_aside, "a"), nullptr);
  EXPECT_NE(Find(report.set_aside, "b"), nullptr);
  const LayerNoise* c = Find(report.layers, "c");
  ASSERT_NE(c, nullptr);
  EXPECT_NEAR(*c->own_sqnr_db, 40, 0.01);
  EXPECT_TRUE(std::isinf(*Find(report.layers, "y")->own_sqnr_db));
}

TEST(LayerNoiseTest, RenamedTensorsNeedALineage) {
  const auto reference = Chain(2, 3, 0), candidate = Chain(2.02F, 3, 0, "_renamed");
  LayerNoiseReport report = Measure(*reference, *candidate);
  EXPECT_EQ(report.num_unpaired, 1);
  EXPECT_EQ(report.layers[0].reference, "b");  // Includes the layers before it that have no partner.
  EXPECT_NEAR(*report.layers[0].own_sqnr_db, 40, 0.01);
  OriginsByName origins;
  origins["a_renamed"] = {"a", {"a"}, true};
  LayerNoiseSettings settings;
  settings.origins = &origins;
  report = Measure(*reference, *candidate, settings);
  EXPECT_EQ(report.num_unpaired, 0);
  EXPECT_EQ(report.layers[0].reference, "a");
  EXPECT_EQ(report.layers[0].candidate, "a_renamed");
}

TEST(LayerNoiseTest, OneModelTwiceIsExact) {
  const auto model = Chain(2, 3, 1);
  const LayerNoiseReport report = Measure(*model, *model);
  EXPECT_EQ(report.layers.size(), 4);
  EXPECT_TRUE(report.set_aside.empty());
  for (const LayerNoise& layer : report.layers) {
    EXPECT_TRUE(std::isinf(layer.sqnr_db) && std::isinf(*layer.own_sqnr_db)) << layer.reference;
  }
}

TEST(LayerNoiseTest, NanIsCounted) {
  const auto reference = Chain(2, 3, 0), candidate = Chain(2, std::nanf(""), 0);
  const LayerNoiseReport report = Measure(*reference, *candidate);
  EXPECT_EQ(Find(report.layers, "c")->nonfinite_mismatches, 12);
  std::ostringstream out, err;
  PrintLayerNoise(report, {out, err});
  EXPECT_THAT(out.str(), HasSubstr("12 not finite in one of them"));
}

TEST(LayerNoiseTest, AnInterruptionKeepsWhatWasMeasured) {
  const auto reference = Chain(2, 3, 0), candidate = Chain(2.02F, 3, 0);
  LayerNoiseSettings settings;
  size_t done = 0;
  settings.progress = [&](size_t steps, size_t) { done = steps; };
  settings.is_interrupted = [&] { return done > 0; };
  const LayerNoiseReport report = Measure(*reference, *candidate, settings);
  EXPECT_TRUE(report.was_interrupted);
  ASSERT_EQ(report.layers.size(), 4);
  EXPECT_FALSE(report.layers[0].own_sqnr_db.has_value());
  EXPECT_NEAR(Find(report.layers, "a")->sqnr_db, 40, 0.01);
}

TEST(LayerNoiseTest, JsonHoldsEverything) {
  const auto reference = Chain(2, 3, 0), candidate = Chain(2.02F, 3, 0);
  std::ostringstream text;
  JsonWriter json(text);
  WriteLayerNoise(Measure(*reference, *candidate), &json);
  ASSERT_TRUE(ParseJson(text.str()).ok());
  EXPECT_THAT(text.str(), HasSubstr("\"own_is_exact\": true"));
  EXPECT_THAT(text.str(), HasSubstr("\"reference\": \"a\""));
}

}  // namespace
}  // namespace permafrost
