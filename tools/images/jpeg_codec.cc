// JPEG encoder based on libjpeg-turbo. The library reports errors with longjmp, so functions that it may jump out of
// hold no objects with destructors.
#include "tools/images/jpeg_codec.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// Included after <cstdio>, whose FILE it needs.
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/images/image_decoding.h"

namespace permafrost {
namespace {

struct Errors {
  jpeg_error_mgr base;
  jmp_buf jump;
  char text[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void OnError(j_common_ptr codec) {
  auto* errors = reinterpret_cast<Errors*>(codec->err);
  errors->base.format_message(codec, errors->text);
  longjmp(errors->jump, 1);
}

void SetUp(Errors* errors) {
  jpeg_std_error(&errors->base);
  errors->base.error_exit = &OnError;
}

class Encoder {
 public:
  Encoder() {
    SetUp(&errors_);
    codec_.err = &errors_.base;
  }
  ~Encoder() {
    jpeg_destroy_compress(&codec_);
    std::free(bytes_);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  const char* failure() const { return errors_.text; }
  absl::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_), size_}; }

  bool Write(const Image& image, int quality) {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_create_compress(&codec_);
    jpeg_mem_dest(&codec_, &bytes_, &size_);
    codec_.image_width = static_cast<JDIMENSION>(image.width);
    codec_.image_height = static_cast<JDIMENSION>(image.height);
    codec_.input_components = static_cast<int>(image.channels);
    codec_.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&codec_);
    jpeg_set_quality(&codec_, quality, TRUE);
    jpeg_start_compress(&codec_, TRUE);
    while (codec_.next_scanline < codec_.image_height) {
      JSAMPROW row = const_cast<JSAMPROW>(image.At(codec_.next_scanline, 0));
      jpeg_write_scanlines(&codec_, &row, 1);
    }
    jpeg_finish_compress(&codec_);
    return true;
  }

 private:
  Errors errors_;
  jpeg_compress_struct codec_ = {};
  unsigned char* bytes_ = nullptr;
  unsigned long size_ = 0;  // The type that libjpeg requires.
};

}  // namespace

bool IsJpeg(absl::string_view bytes) { return StartsLikeJpeg(bytes); }

absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes, const ImageLimits& limits) {
  JpegOptions options;
  options.max_pixels = limits.max_pixels;
  Image image;
  const auto allocate = [&](const PictureSize& size) -> absl::StatusOr<uint8_t*> {
    image = MakeGrid<uint8_t>(size.height, size.width, size.channels);
    return image.pixels.data();
  };
  PF_RETURN_IF_ERROR(DecodeJpegPixels(bytes, options, allocate));
  return image;
}

absl::StatusOr<std::string> EncodeJpeg(const Image& image, int quality) {
  Encoder encoder;
  if (!encoder.Write(image, quality)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write as JPEG: ", encoder.failure()));
  }
  return std::string(encoder.bytes());
}

}  // namespace permafrost
