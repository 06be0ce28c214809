// Compares lines of depthwise convolutions, in memory between guard pages, with directly computed sums.
#include "runtime_check/delegates/onednn/depthwise_lines.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/onednn/storage_values.h"
#include "tests/runtime_check/delegates/guarded_memory.h"

namespace permafrost {
namespace onednn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Numbers {
 public:
  int Whole(int least, int most) {
    state_ = state_ * 1664525u + 1013904223u;
    return least + static_cast<int>((state_ >> 8) % static_cast<uint32_t>(most - least + 1));
  }
  // Returns a bfloat16 number between -2 and 2.
  float Part() { return static_cast<float>(Whole(-128, 128)) / 64; }

 private:
  uint32_t state_ = 11;
};

struct Case {
  WindowAxis axis;
  int64_t channels;
  Element source, target;
  uint32_t inside;  // Bit t is set if line t is inside the image.
  bool has_slopes;
  int64_t count;  // Number of target lines.
};

std::unique_ptr<GuardedMemory> Stored(Element element, const std::vector<float>& values) {
  const StorageType type{element};
  const auto count = static_cast<int64_t>(values.size());
  auto memory = std::make_unique<GuardedMemory>(static_cast<size_t>(count * type.bytes()), 1);
  std::vector<char> bytes(static_cast<size_t>(count * type.bytes()));
  StoreFloats(type, values.data(), count, bytes.data(), 0);
  memory->Fill({bytes.data(), bytes.size()});
  memory->MakeReadOnly();
  return memory;
}

void Check(const Case& given) {
  const WindowAxis& axis = given.axis;
  const int64_t channels = given.channels, taps = axis.taps;
  const auto size = static_cast<size_t>(channels);
  const bool is_of_bytes = StorageType{given.source}.IsInt8();
  Numbers numbers;
  std::vector<std::vector<float>> images;
  std::vector<std::unique_ptr<GuardedMemory>> memories;
  const char* lines[kMostDepthwiseTaps + kMostDepthwiseLines - 1] = {};
  for (int64_t t = 0; t < taps + given.count - 1; ++t) {
    std::vector<float>& image = images.emplace_back(static_cast<size_t>(axis.input) * size, 0.0f);
    if ((given.inside >> t & 1) == 0) continue;
    for (float& value : image) {
      value = !is_of_bytes                   ? numbers.Part()
              : given.source == Element::kU8 ? static_cast<float>(numbers.Whole(0, 255))
                                             : static_cast<float>(numbers.Whole(-127, 127));
    }
    lines[t] = memories.emplace_back(Stored(given.source, image))->data();
  }
  std::vector<float> weights(static_cast<size_t>(taps * taps) * size);
  std::vector<int8_t> narrow(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    narrow[i] = static_cast<int8_t>(numbers.Whole(-127, 127));
    weights[i] = is_of_bytes ? static_cast<float>(narrow[i]) : numbers.Part();
  }
  DepthwiseResults results;
  for (size_t c = 0; c < size; ++c) {
    results.addends.push_back(is_of_bytes ? 8 * numbers.Part() : numbers.Part());
    if (is_of_bytes) results.factors.push_back(0.001f + 0.0001f * static_cast<float>(numbers.Whole(0, 20)));
    if (given.has_slopes) results.slopes.push_back(numbers.Part());
  }
  const StorageType target{given.target};
  results.least = given.target == Element::kU8 ? 0.0f : is_of_bytes ? -127.0f : -3.0f;
  results.most = given.target == Element::kU8 ? 200.0f : is_of_bytes ? 127.0f : kInfinity;
  const auto make = [&] {
    return is_of_bytes ? DepthwiseLines(axis, channels, given.source, given.target, narrow, results)
                       : DepthwiseLines(axis, channels, given.source, given.target, weights, results);
  };
  const auto count = given.count * axis.output * channels;
  GuardedMemory written(static_cast<size_t>(count * target.bytes()), 1);
  make().Run(lines, given.count, written.data());
  EXPECT_TRUE(written.CheckSurroundings().ok());
  std::vector<float> actual(static_cast<size_t>(count));
  LoadFloats(target, written.data(), 0, count, actual.data());
  for (int64_t i = 0; i < given.count * axis.output; ++i) {
    const int64_t line = i / axis.output, x = i % axis.output;
    for (size_t c = 0; c < size; ++c) {
      double sum = 0, magnitude = 1;
      for (int64_t t = 0; t < taps; ++t) {
        const std::vector<float>& image = images[static_cast<size_t>(line + t)];
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t column = axis.First(x) + tap * axis.dilation;
          if (column < 0 || column >= axis.input) continue;
          const double product = static_cast<double>(image[static_cast<size_t>(column) * size + c]) *
                                 weights[static_cast<size_t>(t * taps + tap) * size + c];
          sum += product;
          magnitude += std::fabs(product);
        }
      }
      float value = is_of_bytes ? std::fma(static_cast<float>(sum), results.factors[c], results.addends[c])
                                : static_cast<float>(sum + results.addends[c]);
      if (given.has_slopes && value < 0) value *= results.slopes[c];
      value = std::min(std::max(value, results.least), results.most);
      if (target.IsInt8()) value = std::nearbyint(value);
      const double slack = is_of_bytes ? 0 : (target.IsBf16() ? std::fabs(value) / 256 : 0) + 4e-6 * magnitude;
      ASSERT_NEAR(actual[static_cast<size_t>(i) * size + c], value, slack)
          << "line " << line << ", position " << x << ", channel " << c;
    }
  }
}

TEST(DepthwiseLinesTest, AgreesWithSumsSpeltOut) {
  const std::pair<Element, Element> kTypes[] = {
      {Element::kFloat, Element::kFloat}, {Element::kBf16, Element::kBf16}, {Element::kBf16, Element::kFloat},
      {Element::kU8, Element::kU8},       {Element::kU8, Element::kS8},     {Element::kS8, Element::kU8},
      {Element::kS8, Element::kS8},       {Element::kS8, Element::kFloat},  {Element::kU8, Element::kFloat}};
  bool has_any = false;
  for (const auto& [source, target] : kTypes) {
    if (!HasDepthwiseLines(source)) continue;
    has_any = true;
    int variant = 0;
    for (const int64_t taps : {3, 5}) {
      for (const auto& [stride, dilation] : {std::pair{1, 1}, {2, 1}, {1, 2}, {1, 7}}) {
        for (const int64_t input : {1, 2, 4, 5, 13}) {
          for (const int64_t channels : {1, 3, 16, 17, 32, 48, 67, 128, 145}) {
            for (const int64_t pad : {int64_t{0}, (taps - 1) * dilation / 2, taps * dilation + 1}) {
              const WindowAxis axis{input, taps, stride, dilation, pad, 0};
              Case given{axis, channels, source, target, 0, variant % 3 == 0, 1 + variant % 2};
              // All positions that begin inside the image or before it; some windows lie completely outside it.
              given.axis.output = (input + pad - 1) / stride + 1;
              given.inside = variant % 5 == 0 ? 0b10110u : variant % 7 == 0 ? 0u : 0b111111u;
              ++variant;
              SCOPED_TRACE(absl::StrCat(NameOf(source), " to ", NameOf(target), ", ", taps, " taps, stride ", stride,
                                        ", dilation ", dilation, ", ", input, " columns, ", channels, " channels, pad ",
                                        pad, ", ", given.count, " of the lines ", given.inside));
              Check(given);
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
  if (!has_any) GTEST_SKIP() << "this processor has no lines";
}

TEST(DepthwiseLinesTest, KeepsNan) {
  for (const Element element : {Element::kFloat, Element::kBf16}) {
    if (!HasDepthwiseLines(element)) GTEST_SKIP() << "this processor has no lines of floats";
    const WindowAxis axis{4, 3, 1, 1, 1, 4};
    std::vector<float> image(4 * 20, 1.0f);
    image[7] = std::numeric_limits<float>::quiet_NaN();
    const auto memory = Stored(element, image);
    DepthwiseResults results;
    results.addends.assign(20, 0.5f);
    results.slopes.assign(20, 0.25f);
    results.least = 0;
    results.most = 6;
    const DepthwiseLines made(axis, 20, element, element, std::vector<float>(9 * 20, 0.25f), results);
    const char* const lines[] = {memory->data(), memory->data(), nullptr};
    std::vector<char> written(4 * 20 * 4);
    made.Run(lines, 1, written.data());
    std::vector<float> actual(4 * 20);
    LoadFloats({element}, written.data(), 0, 4 * 20, actual.data());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(std::isnan(actual[i]), i % 20 == 7 && i / 20 < 2) << NameOf(element) << " " << i;
    }
  }
}

TEST(DepthwiseLinesTest, TakesWhatItCan) {
  EXPECT_TRUE(HasDepthwiseLines(WindowAxis{9, 3, 1, 4, 0, 1}));
  EXPECT_TRUE(HasDepthwiseLines(WindowAxis{9, 5, 2, 1, 0, 3}));
  EXPECT_FALSE(HasDepthwiseLines(WindowAxis{9, 3, 2, 2, 0, 3}));
  EXPECT_FALSE(HasDepthwiseLines(WindowAxis{9, 3, 3, 1, 0, 3}));
  EXPECT_FALSE(HasDepthwiseLines(WindowAxis{9, 4, 1, 1, 0, 6}));
}

}  // namespace
}  // namespace onednn
}  // namespace permafrost
