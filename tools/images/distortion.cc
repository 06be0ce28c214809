// Implements each distortion as one function.
#include "tools/images/distortion.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "runtime_check/checking/split_mix.h"
#include "tools/images/jpeg_codec.h"

namespace permafrost {
namespace {

constexpr double kPi = 3.14159265358979323846;
// The gamma of a display: light is proportional to about this power of the value (IEC 61966-2-1).
constexpr double kGamma = 2.2;

// Returns a number in (0, 1].
double Uniform(SplitMix64* random) { return (static_cast<double>(random->Next() >> 11) + 1) / 9007199254740992.0; }
// The method of Box and Muller, 1958.
double Normal(SplitMix64* random) {
  const double radius = std::sqrt(-2 * std::log(Uniform(random)));
  return radius * std::cos(2 * kPi * Uniform(random));
}

float ToPixel(double value) { return static_cast<float>(std::clamp(std::nearbyint(value), 0.0, 255.0)); }

// Returns a picture whose pixel (y, x) is interpolated from `source` at the position that `where` returns.
template <typename Where>
Picture Moved(const Picture& source, const Where& where) {
  Picture moved = MakeGrid<float>(source.height, source.width, source.channels);
  for (int64_t y = 0; y < source.height; ++y) {
    for (int64_t x = 0; x < source.width; ++x) {
      auto [from_y, from_x] = where(static_cast<double>(y), static_cast<double>(x));
      from_y = std::clamp(from_y, 0.0, static_cast<double>(source.height - 1));
      from_x = std::clamp(from_x, 0.0, static_cast<double>(source.width - 1));
      const auto top = static_cast<int64_t>(from_y), left = static_cast<int64_t>(from_x);
      const int64_t bottom = std::min(top + 1, source.height - 1), right = std::min(left + 1, source.width - 1);
      const double down = from_y - static_cast<double>(top), across = from_x - static_cast<double>(left);
      for (int64_t c = 0; c < source.channels; ++c) {
        const double above = source.At(top, left)[c] * (1 - across) + source.At(top, right)[c] * across;
        const double below = source.At(bottom, left)[c] * (1 - across) + source.At(bottom, right)[c] * across;
        moved.At(y, x)[c] = ToPixel(above * (1 - down) + below * down);
      }
    }
  }
  return moved;
}

Picture Blur(const Picture& picture, double strength, uint64_t) {
  const double sigma = strength * static_cast<double>(std::min(picture.height, picture.width));
  const auto radius = static_cast<int64_t>(std::ceil(3 * sigma));  // 0.3 % of the weight lies beyond it.
  std::vector<double> weights;
  double sum = 0;
  for (int64_t i = -radius; i <= radius; ++i) {
    weights.push_back(std::exp(-static_cast<double>(i * i) / (2 * sigma * sigma)));
    sum += weights.back();
  }
  Picture result = picture;
  for (const bool is_across : {true, false}) {
    const Picture source = result;
    for (int64_t y = 0; y < source.height; ++y) {
      for (int64_t x = 0; x < source.width; ++x) {
        for (int64_t c = 0; c < source.channels; ++c) {
          double value = 0;
          for (int64_t i = -radius; i <= radius; ++i) {
            const int64_t from_y = is_across ? y : std::clamp<int64_t>(y + i, 0, source.height - 1);
            const int64_t from_x = is_across ? std::clamp<int64_t>(x + i, 0, source.width - 1) : x;
            value += weights[static_cast<size_t>(i + radius)] * source.At(from_y, from_x)[c];
          }
          result.At(y, x)[c] = static_cast<float>(value / sum);
        }
      }
    }
  }
  for (float& pixel : result.pixels) pixel = ToPixel(pixel);
  return result;
}

Picture Darken(const Picture& picture, double strength, uint64_t) {
  Picture result = picture;
  const double factor = std::pow(2.0, -strength / kGamma);
  for (float& pixel : result.pixels) pixel = ToPixel(pixel * factor);
  return result;
}

Picture MoveOffCenter(const Picture& picture, double strength, uint64_t seed) {
  const uint64_t corner = SplitMix64(seed).Next();
  const double down = strength * static_cast<double>(picture.height) * ((corner & 1) != 0 ? 1 : -1);
  const double across = strength * static_cast<double>(picture.width) * ((corner & 2) != 0 ? 1 : -1);
  return Moved(picture, [&](double y, double x) { return std::make_pair(y - down, x - across); });
}

Picture BendLikeFisheye(const Picture& picture, double strength, uint64_t) {
  const double middle_y = static_cast<double>(picture.height - 1) / 2;
  const double middle_x = static_cast<double>(picture.width - 1) / 2;
  const double corner = std::max(middle_y * middle_y + middle_x * middle_x, 1e-9);
  return Moved(picture, [&](double y, double x) {
    const double dy = y - middle_y, dx = x - middle_x;
    const double factor = 1 + strength * (dy * dy + dx * dx) / corner;
    return std::make_pair(middle_y + dy * factor, middle_x + dx * factor);
  });
}

Picture AddNoise(const Picture& picture, double strength, uint64_t seed) {
  Picture result = picture;
  SplitMix64 random(seed);
  for (float& pixel : result.pixels) pixel = ToPixel(pixel + strength * 255 * Normal(&random));
  return result;
}

Picture CompressAsJpeg(const Picture& picture, double strength, uint64_t) {
  Image image = MakeGrid<uint8_t>(picture.height, picture.width, picture.channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(ToPixel(picture.pixels[i]));
  Picture result = picture;
  const absl::StatusOr<std::string> file = EncodeJpeg(image, static_cast<int>(strength));
  if (!file.ok()) return result;  // Sides longer than 65,500 pixels, which no model takes.
  const absl::StatusOr<Image> decoded = DecodeJpeg(*file, {});
  if (decoded.ok()) result.pixels.assign(decoded->pixels.begin(), decoded->pixels.end());
  return result;
}

}  // namespace

const std::vector<DistortionKind>& DistortionKinds() {
  static const auto* const kKinds = new std::vector<DistortionKind>{
      {"blur", "out of focus by so much of the shorter side", 1e-4, 0.5, {0.01, 0.02, 0.04}, &Blur},
      {"dark", "so many stops less light", 0.01, 10, {1, 2, 3}, &Darken},
      {"off_center", "moved by so much of the sides", 0.001, 0.9, {0.1, 0.2, 0.3}, &MoveOffCenter},
      {"fisheye", "bent inwards, by so much in the corners", 0.001, 10, {0.1, 0.3, 0.6}, &BendLikeFisheye},
      {"noise", "with a deviation of so much of full brightness", 0.001, 2, {0.03, 0.06, 0.12}, &AddNoise},
      {"jpeg", "of this quality", 1, 100, {50, 20, 10}, &CompressAsJpeg},
  };
  return *kKinds;
}

std::string Distortion::ToString() const { return absl::StrCat(kind->name, "=", strength); }

absl::StatusOr<std::vector<Distortion>> ParseDistortions(absl::string_view text) {
  std::vector<Distortion> distortions;
  std::vector<absl::string_view> names, seen;
  for (const DistortionKind& kind : DistortionKinds()) names.push_back(kind.name);
  for (const absl::string_view piece : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> halves = absl::StrSplit(piece, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(halves[0]);
    const auto kind = std::find_if(DistortionKinds().begin(), DistortionKinds().end(),
                                   [&](const DistortionKind& candidate) { return candidate.name == name; });
    if (kind == DistortionKinds().end()) {
      const std::string suggestion = DidYouMean(name, names);
      return absl::InvalidArgumentError(absl::StrCat(
          "found '", name, "'",
          suggestion.empty() ? absl::StrCat(", expected one of: ", absl::StrJoin(names, ", ")) : suggestion));
    }
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("found '", name, "' twice, expected NAME=S1:S2 for several strengths"));
    }
    seen.push_back(name);
    if (halves.size() == 1) {
      for (const double strength : kind->strengths) distortions.push_back({&*kind, strength});
      continue;
    }
    for (const absl::string_view value : absl::StrSplit(halves[1], ':')) {
      double strength = 0;
      if (!absl::SimpleAtod(value, &strength) || !(strength >= kind->least && strength <= kind->most)) {
        return absl::InvalidArgumentError(absl::StrCat("found ", name, "=", value, ", expected ", kind->least, " to ",
                                                       kind->most, ": ", kind->meaning));
      }
      distortions.push_back({&*kind, strength});
    }
  }
  if (distortions.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("found nothing, expected some of: ", absl::StrJoin(names, ", ")));
  }
  return distortions;
}

Picture Distort(const Picture& picture, const Distortion& distortion, uint64_t seed) {
  return distortion.kind->apply(picture, distortion.strength, seed);
}

}  // namespace permafrost
