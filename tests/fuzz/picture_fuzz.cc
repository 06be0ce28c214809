// Fuzz target: bytes as a picture in PNG, JPEG or GIF. The first byte selects options of the decoder.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime_check/images/image_decoding.h"
#include "tests/fuzz/finding.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::string_view file = bytes.substr(1);
  const int choice = data[0];
  constexpr int64_t kMostPixels = 1 << 20;
  std::vector<uint8_t> samples;
  const auto allocate = [&](const PictureSize& picture) -> absl::StatusOr<uint8_t*> {
    const int64_t pixels = picture.frames * picture.height * picture.width;
    if (pixels <= 0 || pixels > kMostPixels) Fail("a size beyond the limit", bytes);
    samples.resize(static_cast<size_t>(pixels * picture.channels) * 2);
    return samples.data();
  };
  if (StartsLikePng(file)) {
    PngOptions options;
    options.channels = choice % 5;
    options.bits = choice & 8 ? 16 : 8;
    options.drops_alpha = choice & 16;
    options.max_pixels = kMostPixels;
    CheckError(DecodePngPixels(file, options, allocate), bytes);
  } else if (StartsLikeGif(file)) {
    GifOptions options;
    options.first_frame_only = choice & 1;
    options.rejects_animations = choice & 2;
    options.max_pixels = kMostPixels;
    CheckError(DecodeGifPixels(file, options, allocate), bytes);
  } else {
    JpegOptions options;
    options.channels = choice & 1 ? 3 : 0;
    options.ratio = 1 << (choice >> 1 & 3);
    options.is_strict = choice & 8;
    options.fills_missing_data = choice & 16;
    options.fancy_upscaling = choice & 32;
    options.acceptable_fraction = choice & 64 ? 0.5f : 1.0f;
    options.max_pixels = kMostPixels;
    CheckError(DecodeJpegPixels(file, options, allocate), bytes);
  }
  return 0;
}
