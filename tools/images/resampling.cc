// Separable filters: weights along a line, first horizontally, then vertically.
#include "tools/images/resampling.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace permafrost {
namespace {

struct Row {
  const char* name;
  ResizeFilter filter;
};
constexpr Row kFilters[] = {{"bilinear", ResizeFilter::kBilinear},
                            {"antialias", ResizeFilter::kAntialias},
                            {"area", ResizeFilter::kArea},
                            {"nearest", ResizeFilter::kNearest}};

// The source pixels of one result pixel along a line: source[first + i] times weights[i].
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;

  int64_t end() const { return first + static_cast<int64_t>(weights.size()); }
};

Taps BilinearTaps(double center, int64_t size) {
  const double at = center - 0.5;
  const auto lower = static_cast<int64_t>(std::max(std::floor(at), 0.0));
  const int64_t upper = std::min(static_cast<int64_t>(std::ceil(at)), size - 1);
  if (upper <= lower) return {std::min(lower, size - 1), {1}};
  const auto part = static_cast<float>(at - std::floor(at));
  return {lower, {1 - part, part}};
}

Taps TriangleTaps(double center, double radius, int64_t size) {
  const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(center - radius)));
  const int64_t end = std::min(size, static_cast<int64_t>(std::ceil(center + radius)));
  Taps taps{first, {}};
  double sum = 0;
  std::vector<double> weights;
  for (int64_t i = first; i < end; ++i) {
    const double distance = std::abs(static_cast<double>(i) + 0.5 - center) / radius;
    weights.push_back(std::max(0.0, 1 - distance));
    sum += weights.back();
  }
  for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
  return taps;
}

Taps AreaTaps(double start, double end, int64_t size) {
  const auto first = static_cast<int64_t>(std::floor(start));
  const int64_t last = std::min(size, std::max(first + 1, static_cast<int64_t>(std::ceil(end - 1e-9))));
  Taps taps{first, {}};
  for (int64_t i = first; i < last; ++i) {
    const double covered = std::min(end, static_cast<double>(i + 1)) - std::max(start, static_cast<double>(i));
    taps.weights.push_back(static_cast<float>(covered / (end - start)));
  }
  return taps;
}

std::vector<Taps> MakeTaps(int64_t from, int64_t to, ResizeFilter filter) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  std::vector<Taps> taps;
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    switch (filter) {
      case ResizeFilter::kBilinear:
        taps.push_back(BilinearTaps(center, from));
        break;
      case ResizeFilter::kAntialias:
        taps.push_back(TriangleTaps(center, std::max(scale, 1.0), from));
        break;
      case ResizeFilter::kArea:
        taps.push_back(AreaTaps(static_cast<double>(i) * scale, static_cast<double>(i + 1) * scale, from));
        break;
      case ResizeFilter::kNearest:
        taps.push_back({std::min(from - 1, static_cast<int64_t>(std::floor(center))), {1}});
        break;
    }
  }
  return taps;
}

}  // namespace

std::vector<std::string> ResizeFilterNames() {
  std::vector<std::string> names;
  for (const Row& row : kFilters) names.emplace_back(row.name);
  return names;
}

absl::StatusOr<ResizeFilter> ParseResizeFilter(absl::string_view name) {
  for (const Row& row : kFilters) {
    if (row.name == name) return row.filter;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("found '", name, "', expected one of: ", absl::StrJoin(ResizeFilterNames(), ", ")));
}

Picture Resample(const Image& image, const PixelWindow& window, int64_t height, int64_t width, ResizeFilter filter) {
  const int64_t channels = image.channels;
  const std::vector<Taps> across = MakeTaps(window.width, width, filter);
  const std::vector<Taps> down = MakeTaps(window.height, height, filter);
  // In double, since a long picture adds up many small weights.
  PixelGrid<double> sums = MakeGrid<double>(height, width, channels);
  // Processes one source row at a time and adds it to all result rows that use it; both indices only increase. So
  // memory does not depend on the height of the source.
  std::vector<float> row(static_cast<size_t>(width * channels));
  size_t first = 0;
  for (int64_t y = 0; y < window.height; ++y) {
    while (first < down.size() && down[first].end() <= y) ++first;
    if (first == down.size()) break;
    if (down[first].first > y) continue;
    std::fill(row.begin(), row.end(), 0.0F);
    const uint8_t* source = image.At(window.top + y, window.left);
    for (size_t x = 0; x < across.size(); ++x) {
      const Taps& taps = across[x];
      float* target = row.data() + x * static_cast<size_t>(channels);
      for (size_t i = 0; i < taps.weights.size(); ++i) {
        const uint8_t* pixel = source + (taps.first + static_cast<int64_t>(i)) * channels;
        for (int64_t c = 0; c < channels; ++c) target[c] += taps.weights[i] * static_cast<float>(pixel[c]);
      }
    }
    for (size_t i = first; i < down.size() && down[i].first <= y; ++i) {
      if (down[i].end() <= y) continue;
      const float weight = down[i].weights[static_cast<size_t>(y - down[i].first)];
      double* target = sums.At(static_cast<int64_t>(i), 0);
      for (size_t x = 0; x < row.size(); ++x) target[x] += static_cast<double>(weight) * row[x];
    }
  }
  Picture result = MakeGrid<float>(height, width, channels);
  std::copy(sums.pixels.begin(), sums.pixels.end(), result.pixels.begin());
  return result;
}

}  // namespace permafrost
