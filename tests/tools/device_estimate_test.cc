// Tests of estimates for known work on devices of known speed, the division into groups, and descriptions of devices.
#include "tools/measuring/device_estimate.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/json_value.h"
#include "tests/tools/graph_from_text.h"
#include "tools/measuring/device.h"
#include "tools/measuring/node_work.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Heads(const ModelWork& work) {
  std::vector<std::string> names;
  for (const NodeWork& group : work.groups) names.emplace_back(group.node->name());
  return names;
}

TEST(NodeWorkTest, FusesStepsThatNobodyElseNeeds) {
  const std::unique_ptr<Graph> graph = GraphFromText(
      "x = Placeholder()\n"
      "w = Const()\n"
      "known = Neg(w)\n"
      "pool = Softmax(x)\n"
      "scaled = Mul(pool, known)\n"
      "bent = Relu(scaled)\n"
      "same = Identity(bent)\n"
      "again = Softmax(same)\n");
  const ModelWork fused = DivideWork(*graph, {}, true).value();
  EXPECT_THAT(Heads(fused), ElementsAre("pool", "again"));
  EXPECT_EQ(fused.groups[0].members.size(), 3u);
  EXPECT_EQ(fused.groups[0].step_elements, 4);      // Two elements by Mul and by Relu.
  EXPECT_EQ(fused.groups[0].weight_bytes, 8);       // `known`: an earlier group computes its input.
  EXPECT_EQ(fused.groups[0].activation_bytes, 16);  // x and the output of the group.
  EXPECT_EQ(fused.group_of[graph->Find("same")->id()], 0);
  EXPECT_EQ(fused.group_of[graph->Find("known")->id()], -1);
  const ModelWork apart = DivideWork(*graph, {}, false).value();
  EXPECT_THAT(Heads(apart), ElementsAre("pool", "scaled", "bent", "again"));
}

TEST(NodeWorkTest, DoesNotFuseWhatIsReadTwiceOrFetched) {
  std::unique_ptr<Graph> graph = GraphFromText(
      "x = Placeholder()\n"
      "a = Softmax(x)\n"
      "b = Relu(a)\n"
      "c = Softmax(a)\n"
      "d = Softmax(c)\n"
      "e = Relu(d)\n"
      "unused = Softmax(e)\n");
  ASSERT_TRUE(graph->DeclareInterface({"x"}, {"b", "d", "e"}).ok());
  EXPECT_THAT(Heads(DivideWork(*graph, {}, true).value()), ElementsAre("a", "b", "c", "d", "e"));
}

TEST(NodeWorkTest, RefusesWhatIsNotKnownBeforeARun) {
  std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()\ny = Softmax(x)\n");
  graph->Find("x")->SetAttr("shape", AttrValue::OfShape(Shape::UnknownRank()));
  const absl::StatusOr<ModelWork> work = DivideWork(*graph, {}, true);
  EXPECT_EQ(work.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(work.status().message()), HasSubstr("'y' (Softmax)"));
  // With fed shapes the division succeeds.
  EXPECT_TRUE(DivideWork(*graph, {{"x", Shape({3})}}, true).ok());
}

Device Simple() {
  Device device;
  device.cores = 2;
  device.flops_per_second = 1e9;
  device.bytes_per_second = 1e6;
  device.cache_bytes_per_second = 1e8;
  device.cache_bytes = 1000;
  device.node_seconds = 1;
  return device;
}

TEST(DeviceEstimateTest, GrowsWithEachPartOfTheWork) {
  const std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()\n");
  ModelWork work;
  work.groups.emplace_back().node = graph->Find("x");
  const auto seconds = [&](int threads) { return EstimateOn(Simple(), work, "onednn", threads).seconds; };
  const double start = seconds(1);
  EXPECT_GT(start, 0);
  work.groups[0].flops = 1e9;
  const double computing = seconds(1) - start;
  EXPECT_GT(computing, 0.5);
  EXPECT_NEAR(seconds(2) - start, computing / 2, 1e-9);
  EXPECT_DOUBLE_EQ(seconds(8), seconds(2));  // There are two cores.
  work.groups[0].flops = 0;
  work.groups[0].activation_bytes = 1000;  // All in the cache.
  const double near = seconds(1) - start;
  work.groups[0].activation_bytes = 2000;  // The other half comes from memory, which is a hundred times slower.
  EXPECT_NEAR((seconds(1) - start) / near, 101, 1e-6);
}

TEST(DeviceEstimateTest, KnowsTheKernelsItWasCalibratedFor) {
  EXPECT_TRUE(CheckHasShares("onednn").ok());
  EXPECT_TRUE(CheckHasShares("reference").ok());
  EXPECT_THAT(std::string(CheckHasShares("xnnpack").message()), HasSubstr("onednn, reference"));
  EXPECT_TRUE(Fuses("onednn"));
  EXPECT_FALSE(Fuses("reference"));
}

TEST(DeviceTest, TableIsWhole) {
  for (const Device& device : KnownDevices()) {
    EXPECT_FALSE(device.name.empty() || device.description.empty() || device.source.empty()) << device.name;
    EXPECT_GE(device.cores, 1) << device.name;
    // Memory is slower than the caches of all cores, and a byte costs more than a FLOP.
    EXPECT_LT(device.bytes_per_second, device.cache_bytes_per_second * device.cores) << device.name;
    EXPECT_LT(device.bytes_per_second, device.flops_per_second * device.cores) << device.name;
    EXPECT_GT(device.cache_bytes, 0) << device.name;
    EXPECT_GT(device.node_seconds, 0) << device.name;
    EXPECT_EQ(FindDevice(device.name, RealFileSystem())->description, device.description);
  }
}

TEST(DeviceTest, ReadsADescription) {
  const absl::StatusOr<Device> device = ParseDevice(
      R"({"name": "board", "cores": 4, "flops_per_second": 8e9, "bytes_per_second": 2e9, "node_seconds": 1e-5})");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "board");
  EXPECT_EQ(device->cores, 4);
  EXPECT_EQ(device->cache_bytes_per_second, 16e9);
  EXPECT_EQ(device->node_seconds, 1e-5);
}

TEST(DeviceTest, SaysWhatIsWrongWithADescription) {
  const auto error = [](absl::string_view text) { return std::string(ParseDevice(text).status().message()); };
  EXPECT_THAT(error("{\n  \"cores\": 4,\n}"), HasSubstr("line 3"));
  EXPECT_THAT(error("[1]"), HasSubstr("object"));
  EXPECT_THAT(error(R"({"bytes_per_second": 1e9})"), HasSubstr("'flops_per_second' is missing"));
  EXPECT_THAT(error(R"({"flops_per_second": 1e9})"), HasSubstr("'bytes_per_second' is missing"));
  EXPECT_THAT(error(R"({"flops_per_second": "fast", "bytes_per_second": 1e9})"), HasSubstr("found no number"));
  EXPECT_THAT(error(R"({"flops_per_second": 0, "bytes_per_second": 1e9})"), HasSubstr("found 0"));
  EXPECT_THAT(error(R"({"flops_per_second": 1e300, "bytes_per_second": 1e9})"), HasSubstr("found 1e+300"));
  EXPECT_THAT(error(R"({"cores": 0.5, "flops_per_second": 1e9, "bytes_per_second": 1e9})"), HasSubstr("'cores'"));
  EXPECT_THAT(error(R"({"flop_per_second": 1e9})"), HasSubstr("did you mean 'flops_per_second'"));
  EXPECT_THAT(error(R"({"name": 7, "flops_per_second": 1e9, "bytes_per_second": 1e9})"), HasSubstr("name"));
}

TEST(DeviceTest, NamesTheNearestDevice) {
  const absl::Status status = FindDevice("cortex-a35", RealFileSystem()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean 'cortex-a53'"));
}

TEST(DeviceTest, MeasuresThisMachine) {
  const Device device = MeasureThisDevice();
  EXPECT_GT(device.flops_per_second, 1e8);
  EXPECT_GT(device.bytes_per_second, 1e7);
  EXPECT_GT(device.cache_bytes_per_second, 1e7);
  EXPECT_GT(device.cache_bytes, 1e5);
}

}  // namespace
}  // namespace permafrost
