// JPEG codec based on libjpeg-turbo. The library reports errors with longjmp, so functions that it may jump out of hold
// no objects with destructors.
#include "tools/images/jpeg_codec.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// Included after <cstdio>, whose FILE they need, and in this order: the second one depends on the library's
// configuration.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// Maximum number of scans. Each scan of a progressive file covers the whole picture. Against hostile files,
// libjpeg-turbo recommends stopping after some hundred scans ("Two Issues with the JPEG Standard"); encoders write
// about ten.
constexpr int kMostScans = 200;
// A block of 64 pixels takes at least one bit in Huffman codes, so a shorter file cannot hold its pixels.
constexpr int64_t kMostPixelsPerByte = 64 * 8;

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

// libjpeg fills in missing data and warns; here an incomplete picture is an error.
void OnMessage(j_common_ptr codec, int level) {
  if (level >= 0) return;
  const int code = codec->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE) {
    OnError(codec);
  }
}

void OnScan(j_common_ptr codec) {
  if (codec->is_decompressor && reinterpret_cast<j_decompress_ptr>(codec)->input_scan_number > kMostScans) {
    codec->err->msg_code = JERR_BAD_SCAN_SCRIPT;
    codec->err->msg_parm.i[0] = kMostScans;
    OnError(codec);
  }
}

void SetUp(Errors* errors) {
  jpeg_std_error(&errors->base);
  errors->base.error_exit = &OnError;
  errors->base.emit_message = &OnMessage;
}

class Decoder {
 public:
  explicit Decoder(absl::string_view bytes) : bytes_(bytes) {
    SetUp(&errors_);
    codec_.err = &errors_.base;
  }
  ~Decoder() { jpeg_destroy_decompress(&codec_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  const char* failure() const { return errors_.text; }
  const jpeg_decompress_struct& codec() const { return codec_; }

  bool ReadHeader() {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_create_decompress(&codec_);
    codec_.progress = &progress_;
    progress_.progress_monitor = &OnScan;
    jpeg_mem_src(&codec_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_read_header(&codec_, TRUE);
    const bool is_grey = codec_.num_components == 1;
    const bool is_cmyk = codec_.jpeg_color_space == JCS_CMYK || codec_.jpeg_color_space == JCS_YCCK;
    codec_.out_color_space = is_grey ? JCS_GRAYSCALE : is_cmyk ? JCS_CMYK : JCS_RGB;
    return true;
  }

  // Reads rows, `row_bytes` apart. For CMYK, `line` is a buffer for one row.
  bool ReadRows(uint8_t* pixels, size_t row_bytes, uint8_t* line) {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_start_decompress(&codec_);
    const bool is_cmyk = codec_.out_color_space == JCS_CMYK;
    while (codec_.output_scanline < codec_.output_height) {
      uint8_t* row = pixels + codec_.output_scanline * row_bytes;
      JSAMPROW target = is_cmyk ? line : row;
      jpeg_read_scanlines(&codec_, &target, 1);
      if (is_cmyk) PutInkOnPaper(line, row);
    }
    jpeg_finish_decompress(&codec_);
    return true;
  }

 private:
  // Converts CMYK to RGB. Adobe's programs, which write nearly all of these files, store inverted CMYK.
  void PutInkOnPaper(const uint8_t* line, uint8_t* row) const {
    const auto light = [&](uint8_t value) { return codec_.saw_Adobe_marker ? value : 255 - value; };
    for (JDIMENSION x = 0; x < codec_.output_width; ++x) {
      const int black = light(line[4 * x + 3]);
      for (int c = 0; c < 3; ++c) row[3 * x + c] = static_cast<uint8_t>(light(line[4 * x + c]) * black / 255);
    }
  }

  absl::string_view bytes_;
  Errors errors_;
  jpeg_progress_mgr progress_ = {};
  jpeg_decompress_struct codec_ = {};
};

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

bool IsJpeg(absl::string_view bytes) { return bytes.substr(0, 3) == "\xff\xd8\xff"; }

absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes, const ImageLimits& limits) {
  Decoder decoder(bytes);
  const auto damaged = [&] { return absl::DataLossError(absl::StrCat("damaged JPEG: ", decoder.failure())); };
  if (!decoder.ReadHeader()) return damaged();
  const jpeg_decompress_struct& codec = decoder.codec();
  const int64_t height = codec.image_height, width = codec.image_width;
  if (height < 1 || width < 1 || height > limits.max_pixels / width) {
    return absl::ResourceExhaustedError(
        absl::StrCat("found ", width, " x ", height, " pixels, expected at most ", limits.max_pixels, " in all"));
  }
  if (!codec.arith_code && height * width > kMostPixelsPerByte * static_cast<int64_t>(bytes.size())) {
    return absl::DataLossError(
        absl::StrCat("damaged JPEG: ", bytes.size(), " bytes are too few for ", width, " x ", height, " pixels"));
  }
  Image image = MakeGrid<uint8_t>(height, width, codec.num_components == 1 ? 1 : 3);
  std::vector<uint8_t> line(codec.out_color_space == JCS_CMYK ? static_cast<size_t>(width) * 4 : 0);
  if (!decoder.ReadRows(image.pixels.data(), static_cast<size_t>(width * image.channels), line.data()))
    return damaged();
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
