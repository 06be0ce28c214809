// Tests of packed weights in folders and packages: saving, lookup, keys, and rejection of weights that do not fit.
#include "tools/model/weight_files.h"

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/memmapped_package.h"
#include "runtime_check/packing/packed_region.h"
#include "runtime_check/packing/precision_plan_bytes.h"
#include "runtime_check/packing/weight_cache.h"
#include "tests/io/test_in_folder.h"
#include "tools/model/weight_packing.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PackedMaker SomeMaker() { return {"0123", "onednn", "version 1", "f32", ""}; }

PackedBytes Bytes(const std::string& text) {
  auto kept = std::make_shared<std::string>(text);
  const absl::string_view view = *kept;
  return {view, std::move(kept)};
}

class WeightCacheTest : public TestInFolder {
 protected:
  std::shared_ptr<WeightCache> Open(const std::string& path, PackedMaker maker = SomeMaker()) {
    notes_.clear();
    return OpenWeightCache(RealFileSystem(), path, std::move(maker), &notes_);
  }
  static std::string Found(WeightCache& cache, const std::string& key) {
    const auto found = cache.Find(key);
    return found.has_value() ? std::string(found->bytes) : "nothing";
  }
  std::string Saved(const std::vector<std::pair<std::string, std::string>>& entries) {
    const std::string path = Path("cache/a.packed");
    WeightCache cache(SomeMaker());
    for (const auto& [key, text] : entries) cache.Keep(key, Bytes(text));
    EXPECT_TRUE(SaveWeightCache(cache, RealFileSystem(), path).ok());
    return path;
  }

  std::vector<std::string> notes_;
};

TEST_F(WeightCacheTest, KeepsFromOneStartToTheNext) {
  const std::string path = Saved({{"a", "first"}, {"b", "second"}});
  const auto cache = Open(path);
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(Found(*cache, "a"), "first");
  EXPECT_EQ(Found(*cache, "b"), "second");
  EXPECT_EQ(Found(*cache, "c"), "nothing");
  EXPECT_EQ(cache->found().entries, 2);
  EXPECT_EQ(cache->found().bytes, 11);
  EXPECT_EQ(cache->packed().entries, 0);
}

TEST_F(WeightCacheTest, NothingNewIsNotWritten) {
  const std::string path = Saved({{"a", "first"}});
  const auto cache = Open(path);
  EXPECT_EQ(Found(*cache, "a"), "first");
  std::filesystem::remove(path);
  EXPECT_TRUE(SaveWeightCache(*cache, RealFileSystem(), path).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(WeightCacheTest, WhatOtherShapesUseStaysWithinBounds) {
  const std::string path = Saved({{"small", "1"}, {"other", "123456"}});
  auto cache = Open(path);
  cache->Keep("new", Bytes("12"));
  ASSERT_TRUE(SaveWeightCache(*cache, RealFileSystem(), path).ok());
  // 7 bytes that were not requested, beside 2.
  cache = Open(path);
  EXPECT_EQ(Found(*cache, "new"), "12");
  EXPECT_EQ(Found(*cache, "other"), "nothing");
  cache->Keep("newer", Bytes("1234"));
  ASSERT_TRUE(SaveWeightCache(*cache, RealFileSystem(), path).ok());
  cache = Open(path);
  cache->Keep("newest", Bytes("123"));
  ASSERT_TRUE(SaveWeightCache(*cache, RealFileSystem(), path).ok());
  cache = Open(path);
  EXPECT_EQ(Found(*cache, "new"), "12");
  EXPECT_EQ(Found(*cache, "newer"), "1234");
  EXPECT_EQ(Found(*cache, "newest"), "123");
}

TEST_F(WeightCacheTest, WhatIsPackedAgainReplacesWhatWasFound) {
  const std::string path = Saved({{"a", "first"}});
  const auto cache = Open(path);
  EXPECT_EQ(Found(*cache, "a"), "first");
  cache->Keep("a", Bytes("second"));
  EXPECT_EQ(Found(*cache, "a"), "second");
  EXPECT_EQ(cache->found().entries, 0);
  ASSERT_TRUE(SaveWeightCache(*cache, RealFileSystem(), path).ok());
  EXPECT_EQ(Found(*Open(path), "a"), "second");
}

TEST_F(WeightCacheTest, DamageIsToldAndLeftAlone) {
  const std::string path = Saved({{"a", "first"}, {"b", "second"}});
  const std::string whole = Get(path);
  Put("cache/a.packed", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(Found(*Open(path), "a"), "nothing");
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("is not used, and made again: found ")));
  Put("cache/a.packed", "");
  EXPECT_EQ(Found(*Open(path), "a"), "nothing");
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("expected packed weights")));
  std::string damaged = whole;
  damaged[whole.find("first")] = 'F';
  Put("cache/a.packed", damaged);
  const auto cache = Open(path);
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(Found(*cache, "a"), "nothing");
  EXPECT_EQ(Found(*cache, "b"), "second");
  EXPECT_THAT(cache->notes(), ElementsAre(HasSubstr("is damaged")));
}

TEST_F(WeightCacheTest, WhatIsForOthersIsTold) {
  const std::string path = Saved({{"a", "first"}});
  const auto check = [&](PackedMaker maker, const std::string& note) {
    EXPECT_EQ(Found(*Open(path, std::move(maker)), "a"), "nothing");
    EXPECT_THAT(notes_, ElementsAre(HasSubstr(note)));
  };
  check({"0123", "onednn", "version 2", "f32", ""}, "found weights for 'version 1', expected 'version 2'");
  check({"0124", "onednn", "version 1", "f32", ""}, "found the model '0123', expected '0124'");
  check({"0123", "other", "version 1", "f32", ""}, "found the delegate 'onednn', expected 'other'");
  check({"0123", "onednn", "version 1", "bf16", ""}, "found precision 'f32', expected 'bf16'");
  check({"0123", "onednn", "version 1", "f32", "x"}, "another plan");
}

TEST_F(WeightCacheTest, MakersHaveFilesOfTheirOwn) {
  const std::string path = CachePath("d", SomeMaker());
  EXPECT_THAT(path, HasSubstr("d/0123-f32-"));
  EXPECT_EQ(CachePath("d", SomeMaker()), path);
  EXPECT_NE(CachePath("d", {"0124", "onednn", "version 1", "f32", ""}), path);
  EXPECT_NE(CachePath("d", {"0123", "other", "version 1", "f32", ""}), path);
  EXPECT_NE(CachePath("d", {"0123", "onednn", "version 2", "f32", ""}), path);
  EXPECT_NE(CachePath("d", {"0123", "onednn", "version 1", "bf16", ""}), path);
  EXPECT_NE(CachePath("d", {"0123", "onednn", "version 1", "f32", "x"}), path);
}

TEST_F(WeightCacheTest, AFolderThatCannotBeMadeIsAnError) {
  Put("file", "");
  WeightCache cache(SomeMaker());
  cache.Keep("a", Bytes("first"));
  EXPECT_FALSE(SaveWeightCache(cache, RealFileSystem(), Path("file/a.packed")).ok());
  EXPECT_FALSE(SaveWeightCache(cache, RealFileSystem(), Path("none/none/a.packed")).ok());
}

// A reader finds one of the files, complete.
TEST_F(WeightCacheTest, TwoProcessesMayWriteTheSameFile) {
  const std::string path = Path("cache/a.packed");
  constexpr int kTimes = 20;
  std::vector<pid_t> writers;
  for (const char letter : {'x', 'y'}) {
    const pid_t writer = fork();
    if (writer != 0) {
      writers.push_back(writer);
      continue;
    }
    WeightCache cache(SomeMaker());
    cache.Keep("a", Bytes(std::string(100000, letter)));
    bool is_ok = true;
    for (int i = 0; i < kTimes; ++i) is_ok = SaveWeightCache(cache, RealFileSystem(), path).ok() && is_ok;
    _exit(is_ok ? 0 : 1);
  }
  for (int i = 0; i < kTimes; ++i) {
    const auto cache = Open(path);
    EXPECT_THAT(notes_, IsEmpty());
    const std::string found = Found(*cache, "a");
    EXPECT_TRUE(found == "nothing" || found == std::string(100000, 'x') || found == std::string(100000, 'y'));
    EXPECT_THAT(cache->notes(), IsEmpty());
  }
  for (const pid_t writer : writers) {
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
  }
  EXPECT_NE(Found(*Open(path), "a"), "nothing");
}

TEST_F(WeightCacheTest, RegionsOfPackagesAreFound) {
  StringSink region;
  ASSERT_TRUE(WritePackedWeights({"", "onednn", "version 1", "bf16", ""}, {{"a", "first"}}, &region).ok());
  StringSink sink;
  PackageWriter writer(&sink);
  ASSERT_TRUE(writer.AddTensor("memmapped_package://w", "1234").ok());
  ASSERT_TRUE(writer.BeginAligned(PackedRegionName("onednn", "bf16"), kPageAlignment).ok());
  ASSERT_TRUE(writer.Append(region.text()).ok());
  ASSERT_TRUE(writer.BeginMessage(PackedRegionName("onednn", "f32")).ok());
  ASSERT_TRUE(writer.Append("no such file").ok());
  ASSERT_TRUE(writer.Finish().ok());
  const std::string path = Put("model.pbmm", sink.text());
  const auto find = [&](const std::string& file, const std::string& precision, const std::string& identity) {
    notes_.clear();
    return FindPackedRegion(RealFileSystem(), file, "onednn", precision, identity, &notes_);
  };
  const auto found = find(path, "bf16", "version 1");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(notes_, IsEmpty());
  WeightCache cache(found->maker());
  cache.Use(found, PackedTrust::kAsTheModel);
  EXPECT_EQ(Found(cache, "a"), "first");
  EXPECT_EQ(find(path, "bf16", "version 2"), nullptr);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("found weights for 'version 1', expected 'version 2'")));
  EXPECT_EQ(find(path, "f32", "version 1"), nullptr);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("expected packed weights")));
  for (const std::string& file : {path, Put("other", "a graph"), Path("none"), Path("")}) {
    EXPECT_EQ(find(file, "int8", "version 1"), nullptr) << file;
    EXPECT_THAT(notes_, IsEmpty());
  }
}

TEST(PackRequestTest, NamesWhatThereIs) {
  const auto plain = ParsePackRequest("onednn");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->precision, "f32");
  EXPECT_FALSE(plain->wants_samples);
  EXPECT_TRUE(ParsePackRequest("onednn:int8")->wants_samples);
  EXPECT_TRUE(ParsePackRequest("onednn:auto")->wants_samples);
  EXPECT_THAT(ParsePackRequest("onednn:f31").status().message(),
              HasSubstr("expected f32, bf16x3, bf16, int8, mixed or auto"));
  EXPECT_THAT(ParsePackRequest("xnnpack:f32").status().message(), HasSubstr("expected one that packs weights"));
  EXPECT_THAT(ParsePackRequest("").status().message(), HasSubstr("expected one that packs weights"));
}

TEST(PrecisionPlanBytesTest, ComeBackAndNoDamageIsMissed) {
  auto plan = std::make_shared<PrecisionPlan>();
  plan->precision = Precision::kInt8;
  plan->nodes["a"] = Precision::kBf16;
  plan->tensors["b"] = {-1.5f, 2, 1.75f, {0.25f, -0.5f}};
  plan->tensors["c"] = {};
  const std::string bytes = PrecisionPlanBytes({"model", "onednn", "int8", plan});
  const auto back = ParsePrecisionPlanBytes(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->model, "model");
  EXPECT_EQ(back->delegate, "onednn");
  EXPECT_EQ(back->precision, "int8");
  ASSERT_NE(back->plan, nullptr);
  EXPECT_EQ(back->plan->precision, Precision::kInt8);
  EXPECT_EQ(back->plan->nodes, plan->nodes);
  EXPECT_EQ(back->plan->tensors, plan->tensors);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(ParsePrecisionPlanBytes(bytes.substr(0, size)).ok());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(ParsePrecisionPlanBytes(damaged).ok()) << i;
  }
  const auto none = ParsePrecisionPlanBytes(PrecisionPlanBytes({"model", "onednn", "f32", nullptr}));
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->plan, nullptr);
}

}  // namespace
}  // namespace permafrost
