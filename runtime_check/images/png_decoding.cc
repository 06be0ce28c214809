// PNG decoder based on libpng. The library reports errors with longjmp, so functions that it may jump out of hold no
// objects with destructors.
#include <png.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/images/image_decoding.h"

namespace permafrost {
namespace {

// The maximum expansion of deflate (RFC 1951: a length of 258 for a code of 2 bits), so a shorter file cannot hold its
// rows.
constexpr uint64_t kMostExpansion = 1032;
// The weights of red and green in grey (ITU-R BT.601), as in TensorFlow.
constexpr double kRedInGrey = 0.299, kGreenInGrey = 0.587;

struct Source {
  const char* next;
  size_t left;
};

struct Failure {
  char text[120] = "";
};

void OnError(png_structp png, png_const_charp message) {
  auto* failure = static_cast<Failure*>(png_get_error_ptr(png));
  std::strncpy(failure->text, message, sizeof failure->text - 1);
  png_longjmp(png, 1);
}

void OnWarning(png_structp, png_const_charp) {}

void OnRead(png_structp png, png_bytep out, size_t length) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (length > source->left) png_error(png, "the file ends too early");
  std::memcpy(out, source->next, length);
  source->next += length;
  source->left -= length;
}

struct Header {
  png_uint_32 height = 0, width = 0;
  int channels = 0;
  int file_bits = 0;          // Of a sample in the file.
  size_t row_bytes = 0;       // Size of a row that png_read_image returns.
  size_t file_row_bytes = 0;  // Size of a row before compression.
};

class Decoder {
 public:
  explicit Decoder(absl::string_view bytes) : source_{bytes.data(), bytes.size()} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure_, &OnError, &OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool is_ready() const { return png_ != nullptr && info_ != nullptr; }
  const char* failure() const { return failure_.text; }

  bool ReadHeader(const PngOptions& options, Header* header) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, &source_, &OnRead);
    // Text and suggested palettes, which may decompress to much more than their size, do not change pixels.
    constexpr png_byte kSkipped[] = "zTXt\0iTXt\0tEXt\0sPLT";
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kSkipped, static_cast<int>(sizeof kSkipped / 5));
    png_read_info(png_, info_);
    header->height = png_get_image_height(png_, info_);
    header->width = png_get_image_width(png_, info_);
    header->file_row_bytes = png_get_rowbytes(png_, info_);
    header->file_bits = png_get_bit_depth(png_, info_);
    const int color = png_get_color_type(png_, info_);
    const bool is_transparent = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0;
    const bool is_grey = (color & PNG_COLOR_MASK_COLOR) == 0;
    int channels = options.channels;
    if (channels == 0) {
      channels = color == PNG_COLOR_TYPE_PALETTE ? (is_transparent ? 4 : 3) : png_get_channels(png_, info_);
      if (options.drops_alpha && channels % 2 == 0) --channels;
    }
    if (channels % 2 != 0) {
      if (has_alpha || is_transparent) png_set_strip_alpha(png_);
    } else if (!has_alpha && is_transparent) {
      png_set_tRNS_to_alpha(png_);
    } else if (!has_alpha) {
      png_set_add_alpha(png_, (1u << header->file_bits) - 1, PNG_FILLER_AFTER);
    }
    if (header->file_bits > 8 && options.bits <= 8) png_set_strip_16(png_);
    png_set_packing(png_);
    png_set_interlace_handling(png_);
    if (options.bits > 8 && IsLittleEndian()) png_set_swap(png_);
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (is_grey && header->file_bits < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (channels < 3 && !is_grey) png_set_rgb_to_gray(png_, PNG_ERROR_ACTION_NONE, kRedInGrey, kGreenInGrey);
    if (channels >= 3 && is_grey) png_set_gray_to_rgb(png_);
    png_read_update_info(png_, info_);
    header->channels = png_get_channels(png_, info_);
    header->row_bytes = png_get_rowbytes(png_, info_);
    return header->channels == channels || Fail("the number of channels does not match the colour type");
  }

  bool ReadRows(png_bytep* rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

 private:
  static bool IsLittleEndian() { return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__; }

  bool Fail(const char* text) {
    std::strncpy(failure_.text, text, sizeof failure_.text - 1);
    return false;
  }

  Source source_;
  Failure failure_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

absl::Status DecodePngPixels(absl::string_view bytes, const PngOptions& options, AllocatePixels allocate) {
  if (options.channels < 0 || options.channels > 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", options.channels, " channels for a PNG file, expected 0 to 4"));
  }
  Decoder decoder(bytes);
  if (!decoder.is_ready()) return absl::ResourceExhaustedError("no memory to decode it");
  const auto damaged = [&] { return absl::DataLossError(absl::StrCat("damaged PNG: ", decoder.failure())); };
  Header header;
  if (!decoder.ReadHeader(options, &header)) return damaged();
  const auto height = static_cast<int64_t>(header.height), width = static_cast<int64_t>(header.width);
  if (height > options.max_pixels / width) {
    return absl::ResourceExhaustedError(
        absl::StrCat("found ", width, " x ", height, " pixels, expected at most ", options.max_pixels, " in all"));
  }
  if (static_cast<uint64_t>(header.file_row_bytes) * header.height > kMostExpansion * bytes.size()) {
    return absl::DataLossError(
        absl::StrCat("damaged PNG: ", bytes.size(), " bytes are too few for ", width, " x ", height, " pixels"));
  }
  const bool is_wide = options.bits > 8;
  const bool repeats_bits = is_wide && header.file_bits <= 8;
  const size_t samples_in_row = header.width * static_cast<size_t>(header.channels);
  if (header.row_bytes != samples_in_row * (is_wide && !repeats_bits ? 2 : 1)) {
    return absl::DataLossError(
        absl::StrCat("damaged PNG: found rows of ", header.row_bytes, " bytes, expected ", samples_in_row, " samples"));
  }
  PictureSize size;
  size.height = height;
  size.width = width;
  size.channels = header.channels;
  PF_ASSIGN_OR_RETURN(uint8_t* const pixels, allocate(size));
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < height; ++y) rows.push_back(pixels + static_cast<size_t>(y) * header.row_bytes);
  if (!decoder.ReadRows(rows.data())) return damaged();
  if (!repeats_bits) return absl::OkStatus();
  // In place, from the last sample, whose 16 bits overwrite only samples that have been widened.
  for (size_t i = samples_in_row * header.height; i-- > 0;) {
    const uint16_t wide = static_cast<uint16_t>(pixels[i] * 257);
    std::memcpy(pixels + 2 * i, &wide, sizeof wide);
  }
  return absl::OkStatus();
}

}  // namespace permafrost
