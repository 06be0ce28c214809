// Decoders of compressed pictures: JPEG by libjpeg-turbo, PNG by libpng, and GIF.
//
// The functions are weak: in a program that does not link //runtime_check/images, such as a small runtime, each of them
// is null. So the kernels that call them do not depend on the libraries.
#ifndef PERMAFROST_RUNTIME_CHECK_IMAGES_IMAGE_DECODING_H_
#define PERMAFROST_RUNTIME_CHECK_IMAGES_IMAGE_DECODING_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Weak, and visible in builds that hide their functions: a reference to a hidden weak function cannot be null in a
// shared library.
#define PERMAFROST_OPTIONAL_DECODER __attribute__((weak, visibility("default")))

namespace permafrost {

// The largest picture that is decoded, and the largest sum of the frames of an animation: 2^27 pixels. The largest
// phone sensors have 108 million. A file that claims more is rejected before any allocation.
inline constexpr int64_t kMostPicturePixels = int64_t{1} << 27;

struct PictureSize {
  int64_t frames = 1;
  int64_t height = 0, width = 0, channels = 0;
  int64_t working_bytes = 0;  // Memory that the decoder uses in addition, if it depends on the size.
};

// Returns memory for the samples: frames in order, rows from the top, the channels of a pixel adjacent. Called once,
// when the headers have been read.
using AllocatePixels = absl::FunctionRef<absl::StatusOr<uint8_t*>(const PictureSize& size)>;

// A part of a picture.
struct CropWindow {
  int64_t y = 0, x = 0, height = 0, width = 0;
};

struct JpegOptions {
  int channels = 0;                 // 1, 3, or 0: 1 for a grey file, else 3.
  int ratio = 1;                    // Divides height and width: 1, 2, 4 or 8.
  bool fancy_upscaling = true;      // Interpolate chroma of lower resolution.
  bool fast_dct = false;            // A faster inverse transform, which differs by a few steps of 255.
  bool is_strict = true;            // Reject damage that the decoder can skip.
  bool fills_missing_data = false;  // Decode a truncated file as if it had an end marker there.
  // The share of the rows that a truncated file must have; the missing rows are black. Rows are missing only if
  // fills_missing_data is false.
  float acceptable_fraction = 1;
  bool crops = false;
  CropWindow window;
  int64_t max_pixels = kMostPicturePixels;
};

// Decodes baseline and progressive files, grey, YCbCr, RGB and CMYK. The orientation recorded by a camera is not
// applied. DataLoss for a file that is damaged or truncated, ResourceExhausted beyond the limit, InvalidArgument for
// other values of the options or a window that is not inside the picture.
absl::Status DecodeJpegPixels(absl::string_view bytes, const JpegOptions& options,
                              AllocatePixels allocate) PERMAFROST_OPTIONAL_DECODER;

struct PngOptions {
  int channels = 0;          // 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA, 0 those of the file.
  bool drops_alpha = false;  // With channels == 0: without transparency.
  int bits = 8;              // 8, or 16 for samples in the byte order of the machine.
  int64_t max_pixels = kMostPicturePixels;
};

// Decodes any PNG file. Samples of 16 bits lose the lower eight for 8 bits, those of 8 bits are repeated for 16. Gamma
// and colour profiles are ignored. Errors are those of DecodeJpegPixels.
absl::Status DecodePngPixels(absl::string_view bytes, const PngOptions& options,
                             AllocatePixels allocate) PERMAFROST_OPTIONAL_DECODER;

struct GifOptions {
  bool first_frame_only = false;
  bool rejects_animations = false;  // InvalidArgument for a file of several frames.
  int64_t max_pixels = kMostPicturePixels;
};

// Decodes a GIF file to RGB as TensorFlow does: the size is that of the largest frame, a frame is drawn over the one
// before it, whatever its disposal method, and transparent pixels of the first frame are black. A file that ends after
// a complete frame is accepted. DataLoss for a damaged file, ResourceExhausted beyond the limit.
absl::Status DecodeGifPixels(absl::string_view bytes, const GifOptions& options,
                             AllocatePixels allocate) PERMAFROST_OPTIONAL_DECODER;

// Return whether the bytes start like a file of that format.
inline bool StartsLikeJpeg(absl::string_view bytes) { return bytes.substr(0, 3) == "\xff\xd8\xff"; }
inline bool StartsLikePng(absl::string_view bytes) { return bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n"; }
inline bool StartsLikeGif(absl::string_view bytes) { return bytes.substr(0, 4) == "GIF8"; }

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_IMAGES_IMAGE_DECODING_H_
