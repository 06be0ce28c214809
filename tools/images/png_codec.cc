// PNG decoder based on libpng. The library reports errors with longjmp, so functions that it may jump out of hold no
// objects with destructors.
#include "tools/images/png_codec.h"

#include <png.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// The maximum expansion of deflate (RFC 1951: a length of 258 for a code of 2 bits), so a shorter file cannot hold its
// rows.
constexpr uint64_t kMostExpansion = 1032;

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

  bool ReadHeader(Header* header) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, &source_, &OnRead);
    png_read_info(png_, info_);
    header->height = png_get_image_height(png_, info_);
    header->width = png_get_image_width(png_, info_);
    header->file_row_bytes = png_get_rowbytes(png_, info_);
    const int color = png_get_color_type(png_, info_);
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    if (png_get_bit_depth(png_, info_) == 16) png_set_strip_16(png_);
    png_set_strip_alpha(png_);  // Includes transparency of a palette.
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    header->channels = png_get_channels(png_, info_);
    header->row_bytes = png_get_rowbytes(png_, info_);
    return true;
  }

  bool ReadRows(png_bytep* rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

 private:
  Source source_;
  Failure failure_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

bool IsPng(absl::string_view bytes) {
  return bytes.size() >= 8 && png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, 8) == 0;
}

absl::StatusOr<Image> DecodePng(absl::string_view bytes, const ImageLimits& limits) {
  Decoder decoder(bytes);
  if (!decoder.is_ready()) return absl::ResourceExhaustedError("no memory to decode it");
  Header header;
  if (!decoder.ReadHeader(&header)) return absl::DataLossError(absl::StrCat("damaged PNG: ", decoder.failure()));
  const auto height = static_cast<int64_t>(header.height), width = static_cast<int64_t>(header.width);
  if (height > limits.max_pixels / width) {
    return absl::ResourceExhaustedError(
        absl::StrCat("found ", width, " x ", height, " pixels, expected at most ", limits.max_pixels, " in all"));
  }
  if (static_cast<uint64_t>(header.file_row_bytes) * header.height > kMostExpansion * bytes.size()) {
    return absl::DataLossError(
        absl::StrCat("damaged PNG: ", bytes.size(), " bytes are too few for ", width, " x ", height, " pixels"));
  }
  if ((header.channels != 1 && header.channels != 3) ||
      header.row_bytes != header.width * static_cast<size_t>(header.channels)) {
    return absl::DataLossError(absl::StrCat("damaged PNG: found ", header.channels, " channels, expected 1 or 3"));
  }
  Image image = MakeGrid<uint8_t>(height, width, header.channels);
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < height; ++y) rows.push_back(image.At(y, 0));
  if (!decoder.ReadRows(rows.data())) return absl::DataLossError(absl::StrCat("damaged PNG: ", decoder.failure()));
  return image;
}

}  // namespace permafrost
