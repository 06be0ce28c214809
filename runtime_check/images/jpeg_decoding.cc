// JPEG decoder based on libjpeg-turbo. The library reports errors with longjmp, so functions that it may jump out of
// hold no objects with destructors.
#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
// Included after <cstdio>, whose FILE they need, and in this order: the second one depends on the library's
// configuration.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/images/image_decoding.h"

namespace permafrost {
namespace {

// Maximum number of scans, and of their pixels. Each scan of a progressive file covers the whole picture. Against
// hostile files, libjpeg-turbo recommends stopping after some hundred scans ("Two Issues with the JPEG Standard");
// encoders write about ten, and the largest picture may have 16. 2^31 pixels take about four seconds.
constexpr int kMostScans = 200;
constexpr int64_t kMostScannedPixels = int64_t{1} << 31;
// A block of 64 pixels takes at least one bit in Huffman codes, so a shorter file cannot hold its pixels.
constexpr int64_t kMostPixelsPerByte = 64 * 8;
// Bytes of a block of 64 coefficients, which the decoder keeps for files of several scans.
constexpr int64_t kBlockBytes = 64 * sizeof(JCOEF);

struct Errors {
  jpeg_error_mgr base;
  jmp_buf jump;
  char text[JMSG_LENGTH_MAX] = "";
  bool is_strict = true;
  int most_scans = kMostScans;
};

[[noreturn]] void OnError(j_common_ptr codec) {
  auto* errors = reinterpret_cast<Errors*>(codec->err);
  errors->base.format_message(codec, errors->text);
  longjmp(errors->jump, 1);
}

// libjpeg fills in missing data and warns.
void OnMessage(j_common_ptr codec, int level) {
  if (level >= 0 || !reinterpret_cast<const Errors*>(codec->err)->is_strict) return;
  const int code = codec->err->msg_code;
  if (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE) OnError(codec);
}

void OnScan(j_common_ptr codec) {
  const int most_scans = reinterpret_cast<const Errors*>(codec->err)->most_scans;
  if (codec->is_decompressor && reinterpret_cast<j_decompress_ptr>(codec)->input_scan_number > most_scans) {
    codec->err->msg_code = JERR_BAD_SCAN_SCRIPT;
    codec->err->msg_parm.i[0] = most_scans;
    OnError(codec);
  }
}

// Data source over memory. At the end of the data, the library suspends decoding, or reads an end marker.
struct Source {
  jpeg_source_mgr base;
  bool fills_missing_data;
};

void OnSourceStart(j_decompress_ptr) {}

boolean OnSourceEnd(j_decompress_ptr codec) {
  static const JOCTET kEndMarker[] = {0xFF, JPEG_EOI};
  auto* source = reinterpret_cast<Source*>(codec->src);
  if (!source->fills_missing_data) return FALSE;
  source->base.next_input_byte = kEndMarker;
  source->base.bytes_in_buffer = sizeof kEndMarker;
  return TRUE;
}

void OnSkip(j_decompress_ptr codec, long count) {
  if (count <= 0) return;
  jpeg_source_mgr* source = codec->src;
  const size_t skipped =
      static_cast<size_t>(count) < source->bytes_in_buffer ? static_cast<size_t>(count) : source->bytes_in_buffer;
  source->next_input_byte += skipped;
  source->bytes_in_buffer -= skipped;
}

// Allocates nothing but what libjpeg allocates, so that it can be destroyed after any jump.
class Decoder {
 public:
  Decoder(absl::string_view bytes, const JpegOptions& options) : options_(options) {
    jpeg_std_error(&errors_.base);
    errors_.base.error_exit = &OnError;
    errors_.base.emit_message = &OnMessage;
    errors_.is_strict = options.is_strict;
    codec_.err = &errors_.base;
    progress_.progress_monitor = &OnScan;
    source_.base.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
    source_.base.bytes_in_buffer = bytes.size();
    source_.base.init_source = &OnSourceStart;
    source_.base.fill_input_buffer = &OnSourceEnd;
    source_.base.skip_input_data = &OnSkip;
    source_.base.resync_to_restart = &jpeg_resync_to_restart;
    source_.base.term_source = &OnSourceStart;
    source_.fills_missing_data = options.fills_missing_data;
  }
  ~Decoder() { jpeg_destroy_decompress(&codec_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  const char* failure() const { return errors_.text; }
  const jpeg_decompress_struct& codec() const { return codec_; }
  int64_t channels() const { return codec_.out_color_space == JCS_GRAYSCALE ? 1 : 3; }

  bool ReadHeader() {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_create_decompress(&codec_);
    codec_.progress = &progress_;
    codec_.src = &source_.base;
    if (jpeg_read_header(&codec_, TRUE) != JPEG_HEADER_OK) return Truncated();
    const int channels = options_.channels != 0 ? options_.channels : codec_.num_components == 1 ? 1 : 3;
    const bool is_cmyk = codec_.jpeg_color_space == JCS_CMYK || codec_.jpeg_color_space == JCS_YCCK;
    codec_.out_color_space = channels == 1 ? JCS_GRAYSCALE : is_cmyk ? JCS_CMYK : JCS_RGB;
    codec_.do_fancy_upsampling = options_.fancy_upscaling ? TRUE : FALSE;
    codec_.dct_method = options_.fast_dct ? JDCT_IFAST : JDCT_ISLOW;
    codec_.scale_num = 1;
    codec_.scale_denom = static_cast<unsigned>(options_.ratio);
    jpeg_calc_output_dimensions(&codec_);
    const int64_t pixels = std::max(int64_t{1}, int64_t{codec_.image_height} * int64_t{codec_.image_width});
    errors_.most_scans = static_cast<int>(std::min<int64_t>(kMostScans, kMostScannedPixels / pixels));
    return true;
  }

  // Returns the bytes of coefficients that the decoder keeps: those of all blocks if there are several scans.
  int64_t CoefficientBytes() {
    if (jpeg_has_multiple_scans(&codec_) == FALSE) return 0;
    int64_t blocks = 0;
    for (int i = 0; i < codec_.num_components; ++i) {
      const jpeg_component_info& component = codec_.comp_info[i];
      blocks += int64_t{component.width_in_blocks} * int64_t{component.height_in_blocks};
    }
    return blocks * kBlockBytes;
  }

  // Reads the rows of `window`. `line` is a buffer for a row of the decoder, which may be wider than the window.
  // Sets *rows_read. Returns true if all rows were read or the data ended.
  bool ReadRows(const CropWindow& window, uint8_t* pixels, uint8_t* line, int64_t* rows_read) {
    *rows_read = 0;
    if (setjmp(errors_.jump) != 0) return false;
    if (jpeg_start_decompress(&codec_) == FALSE) return Truncated();
    const auto first = static_cast<JDIMENSION>(window.y), height = static_cast<JDIMENSION>(window.height);
    const auto target_width = static_cast<JDIMENSION>(window.width);
    if (options_.crops) {
      // The library moves the left edge to a boundary of its blocks and widens the rows.
      auto x = static_cast<JDIMENSION>(window.x), width = target_width;
      jpeg_crop_scanline(&codec_, &x, &width);
      if (jpeg_skip_scanlines(&codec_, first) != first) return Truncated();
    }
    const bool is_cmyk = codec_.out_color_space == JCS_CMYK;
    const size_t row_bytes = static_cast<size_t>(window.width) * static_cast<size_t>(channels());
    const size_t skipped_pixels = codec_.output_width - target_width;
    for (; *rows_read < window.height; ++*rows_read) {
      uint8_t* row = pixels + static_cast<size_t>(*rows_read) * row_bytes;
      JSAMPROW target = is_cmyk || skipped_pixels > 0 ? line : row;
      if (jpeg_read_scanlines(&codec_, &target, 1) == 0) {
        Truncated();
        return true;
      }
      if (is_cmyk) {
        PutInkOnPaper(line + skipped_pixels * 4, target_width, row);
      } else if (target != row) {
        std::memcpy(row, line + skipped_pixels * static_cast<size_t>(channels()), row_bytes);
      }
    }
    // The rest of the file may be missing: the picture is complete.
    if (first + height < codec_.output_height) {
      jpeg_abort_decompress(&codec_);
    } else {
      jpeg_finish_decompress(&codec_);
    }
    return true;
  }

 private:
  // Converts CMYK to RGB. Adobe's programs, which write nearly all of these files, store inverted CMYK.
  void PutInkOnPaper(const uint8_t* line, JDIMENSION width, uint8_t* row) const {
    const auto light = [&](uint8_t value) { return codec_.saw_Adobe_marker ? value : 255 - value; };
    for (JDIMENSION x = 0; x < width; ++x) {
      const int black = light(line[4 * x + 3]);
      for (int c = 0; c < 3; ++c) row[3 * x + c] = static_cast<uint8_t>(light(line[4 * x + c]) * black / 255);
    }
  }

  bool Truncated() {
    std::strncpy(errors_.text, "the file ends too early", sizeof errors_.text - 1);
    return false;
  }

  const JpegOptions& options_;
  Errors errors_;
  Source source_ = {};
  jpeg_progress_mgr progress_ = {};
  jpeg_decompress_struct codec_ = {};
};

absl::Status CheckOptions(const JpegOptions& options) {
  if (options.channels != 0 && options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", options.channels, " channels for a JPEG file, expected 0, 1 or 3"));
  }
  if (options.ratio != 1 && options.ratio != 2 && options.ratio != 4 && options.ratio != 8) {
    return absl::InvalidArgumentError(absl::StrCat("found the ratio ", options.ratio, ", expected 1, 2, 4 or 8"));
  }
  return absl::OkStatus();
}

// Returns the part of the picture to decode.
absl::StatusOr<CropWindow> WindowOf(const JpegOptions& options, int64_t height, int64_t width) {
  if (!options.crops) return CropWindow{0, 0, height, width};
  const CropWindow& window = options.window;
  if (window.y < 0 || window.x < 0 || window.height < 1 || window.width < 1 || window.height > height ||
      window.width > width || window.y > height - window.height || window.x > width - window.width) {
    return absl::InvalidArgumentError(absl::StrCat("the crop window has ", window.width, " x ", window.height,
                                                   " pixels at (", window.x, ", ", window.y, "), the picture ", width,
                                                   " x ", height));
  }
  return window;
}

}  // namespace

absl::Status DecodeJpegPixels(absl::string_view bytes, const JpegOptions& options, AllocatePixels allocate) {
  PF_RETURN_IF_ERROR(CheckOptions(options));
  Decoder decoder(bytes, options);
  const auto damaged = [&] { return absl::DataLossError(absl::StrCat("damaged JPEG: ", decoder.failure())); };
  if (!decoder.ReadHeader()) return damaged();
  const jpeg_decompress_struct& codec = decoder.codec();
  // The decoder processes the whole picture even if the output is smaller.
  const int64_t height = codec.image_height, width = codec.image_width;
  if (height < 1 || width < 1 || height > options.max_pixels / width) {
    return absl::ResourceExhaustedError(
        absl::StrCat("found ", width, " x ", height, " pixels, expected at most ", options.max_pixels, " in all"));
  }
  if (!codec.arith_code && height * width > kMostPixelsPerByte * static_cast<int64_t>(bytes.size())) {
    return absl::DataLossError(
        absl::StrCat("damaged JPEG: ", bytes.size(), " bytes are too few for ", width, " x ", height, " pixels"));
  }
  PF_ASSIGN_OR_RETURN(const CropWindow window, WindowOf(options, codec.output_height, codec.output_width));
  PictureSize size;
  size.height = window.height;
  size.width = window.width;
  size.channels = decoder.channels();
  size.working_bytes = decoder.CoefficientBytes();
  PF_ASSIGN_OR_RETURN(uint8_t* const pixels, allocate(size));
  constexpr size_t kMostChannels = 4;  // CMYK
  std::vector<uint8_t> line;
  if (options.crops || codec.out_color_space == JCS_CMYK) line.resize(codec.output_width * kMostChannels);
  int64_t rows_read = 0;
  if (!decoder.ReadRows(window, pixels, line.data(), &rows_read)) return damaged();
  if (rows_read == window.height) return absl::OkStatus();
  if (static_cast<float>(rows_read) / static_cast<float>(window.height) < options.acceptable_fraction) return damaged();
  const size_t row_bytes = static_cast<size_t>(size.width * size.channels);
  std::memset(pixels + static_cast<size_t>(rows_read) * row_bytes, 0,
              static_cast<size_t>(window.height - rows_read) * row_bytes);
  return absl::OkStatus();
}

}  // namespace permafrost
