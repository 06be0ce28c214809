// GIF decoder (87a and 89a), with the results of TensorFlow.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/images/image_decoding.h"

namespace permafrost {
namespace {

constexpr int64_t kChannels = 3;
constexpr int kColorBytes = 3;
constexpr int kMostCodeBits = 12;
constexpr int kNoCode = -1;
constexpr int kNoTransparency = -1;
// An upper bound of the pixels for a byte of data: a code of at least 3 bits adds at most one string of the table, and
// the longest string has fewer than 2^12 pixels.
constexpr int64_t kMostPixelsPerByte = (int64_t{1} << kMostCodeBits) * 8 / 3;

absl::Status Damaged(absl::string_view what) { return absl::DataLossError(absl::StrCat("damaged GIF: ", what)); }

absl::Status TooShort() { return Damaged("the file ends too early"); }

// A position in the file. Reads beyond the end give zeros and set `failed`.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : rest_(bytes) {}

  bool failed() const { return failed_; }
  int Byte() {
    const absl::string_view byte = Bytes(1);
    return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
  }
  int Word() {
    const int low = Byte();
    return low | Byte() << 8;
  }
  absl::string_view Bytes(size_t count) {
    if (count > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const absl::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  // Skips blocks of data up to the empty one, and returns the bytes of all of them with their length bytes.
  absl::string_view Blocks() {
    const absl::string_view start = rest_;
    while (const int length = Byte()) Bytes(static_cast<size_t>(length));
    return start.substr(0, start.size() - rest_.size());
  }

 private:
  absl::string_view rest_;
  bool failed_ = false;
};

struct Frame {
  int64_t y = 0, x = 0, height = 0, width = 0;
  bool is_interlaced = false;
  int transparent = kNoTransparency;  // A colour index.
  absl::string_view colors;           // Three bytes each.
  int code_bits = 0;                  // Of the colour indices in the data.
  absl::string_view data;             // Blocks, each after its length.
};

struct File {
  std::vector<Frame> frames;
  int64_t height = 0, width = 0;  // Those of the largest frame.
};

absl::string_view ReadColors(Reader* reader, int flags) {
  constexpr int kHasColors = 0x80, kSizeMask = 7;
  if ((flags & kHasColors) == 0) return {};
  return reader->Bytes(size_t{kColorBytes} << ((flags & kSizeMask) + 1));
}

// Reads the transparent colour index of an extension, if it is a control block with one.
void ReadExtension(Reader* reader, int* transparent, bool* has_control) {
  constexpr int kControl = 0xF9, kHasTransparency = 1;
  const int label = reader->Byte();
  const absl::string_view blocks = reader->Blocks();
  // Length, flags, delay (2 bytes), index. The first control block of a frame counts.
  if (label != kControl || *has_control || blocks.size() < 5 || blocks[0] != 4) return;
  *has_control = true;
  *transparent = (blocks[1] & kHasTransparency) != 0 ? static_cast<uint8_t>(blocks[4]) : kNoTransparency;
}

absl::StatusOr<Frame> ReadFrame(Reader* reader, absl::string_view global_colors) {
  constexpr int kIsInterlaced = 0x40;
  Frame frame;
  frame.x = reader->Word();
  frame.y = reader->Word();
  frame.width = reader->Word();
  frame.height = reader->Word();
  const int flags = reader->Byte();
  frame.is_interlaced = (flags & kIsInterlaced) != 0;
  frame.colors = ReadColors(reader, flags);
  if (frame.colors.empty()) frame.colors = global_colors;
  frame.code_bits = reader->Byte();
  frame.data = reader->Blocks();
  if (reader->failed()) return TooShort();
  if (frame.width == 0 || frame.height == 0) return Damaged("a frame has no pixels");
  if (frame.code_bits < 1 || frame.code_bits > 8) {
    return Damaged(absl::StrCat("found colour indices of ", frame.code_bits, " bits, expected 1 to 8"));
  }
  return frame;
}

// Finds the frames. Their pixels are not decoded yet.
absl::StatusOr<File> ReadStructure(absl::string_view bytes) {
  constexpr int kExtension = '!', kImage = ',', kEnd = ';';
  constexpr size_t kSignature = 6;
  Reader reader(bytes);
  reader.Bytes(kSignature);
  reader.Word();  // The size of the screen, which TensorFlow ignores.
  reader.Word();
  const int flags = reader.Byte();
  reader.Byte();  // Background colour.
  reader.Byte();  // Aspect ratio.
  const absl::string_view global_colors = ReadColors(&reader, flags);
  if (reader.failed()) return TooShort();
  File file;
  int transparent = kNoTransparency;
  bool has_control = false;
  while (true) {
    const int kind = reader.Byte();
    // Damage behind a complete frame ends the file, as in TensorFlow.
    if (reader.failed()) break;
    if (kind == kEnd) break;
    if (kind == kExtension) {
      ReadExtension(&reader, &transparent, &has_control);
      continue;
    }
    if (kind != kImage) break;
    absl::StatusOr<Frame> frame = ReadFrame(&reader, global_colors);
    if (!frame.ok()) return frame.status();
    frame->transparent = transparent;
    transparent = kNoTransparency;
    has_control = false;
    file.height = std::max(file.height, frame->height);
    file.width = std::max(file.width, frame->width);
    file.frames.push_back(*frame);
  }
  if (file.frames.empty()) return reader.failed() ? TooShort() : Damaged("it has no frame");
  return file;
}

// Reads codes of increasing length, lowest bit first, from blocks of data.
class CodeReader {
 public:
  explicit CodeReader(absl::string_view blocks) : blocks_(blocks) {}

  // Returns kNoCode at the end of the data.
  int Next(int bits) {
    while (num_bits_ < bits) {
      if (left_ == 0) {
        if (at_ >= blocks_.size()) return kNoCode;
        left_ = static_cast<uint8_t>(blocks_[at_++]);
        if (left_ == 0) return kNoCode;
      }
      buffer_ |= uint32_t{static_cast<uint8_t>(blocks_[at_++])} << num_bits_;
      num_bits_ += 8;
      --left_;
    }
    const int code = static_cast<int>(buffer_ & ((uint32_t{1} << bits) - 1));
    buffer_ >>= bits;
    num_bits_ -= bits;
    return code;
  }

 private:
  absl::string_view blocks_;
  size_t at_ = 0;
  int left_ = 0;  // Bytes left in the block.
  uint32_t buffer_ = 0;
  int num_bits_ = 0;
};

// Decodes LZW codes to exactly `count` colour indices.
absl::Status Decompress(const Frame& frame, size_t count, std::vector<uint8_t>* indices) {
  constexpr int kTableSize = 1 << kMostCodeBits;
  const int clear = 1 << frame.code_bits, end = clear + 1;
  // Entry c is the string of entry prefix[c] and the pixel last[c].
  std::vector<int16_t> prefix(kTableSize, kNoCode);
  std::vector<uint8_t> last(kTableSize), first(kTableSize);
  for (int c = 0; c < clear; ++c)
    first[static_cast<size_t>(c)] = last[static_cast<size_t>(c)] = static_cast<uint8_t>(c);
  indices->clear();
  indices->reserve(count);
  CodeReader codes(frame.data);
  int bits = frame.code_bits + 1, size = end + 1, before = kNoCode;
  uint8_t reversed[kTableSize];
  while (indices->size() < count) {
    const int code = codes.Next(bits);
    if (code == kNoCode || code == end) return Damaged("a frame lacks pixels");
    if (code == clear) {
      bits = frame.code_bits + 1;
      size = end + 1;
      before = kNoCode;
      continue;
    }
    if (before == kNoCode) {
      if (code > clear) return Damaged(absl::StrCat("found the code ", code, ", expected at most ", clear));
      indices->push_back(static_cast<uint8_t>(code));
      before = code;
      continue;
    }
    if (code > size || (code == size && size == kTableSize)) {
      return Damaged(absl::StrCat("found the code ", code, ", expected at most ", size));
    }
    // The new entry is the previous string and the first pixel of this one.
    if (size < kTableSize) {
      const auto entry = static_cast<size_t>(size);
      prefix[entry] = static_cast<int16_t>(before);
      first[entry] = first[static_cast<size_t>(before)];
      last[entry] = code == size ? first[entry] : first[static_cast<size_t>(code)];
      ++size;
      if (size == 1 << bits && bits < kMostCodeBits) ++bits;
    }
    size_t length = 0;
    for (int c = code; c != kNoCode; c = c < clear ? kNoCode : prefix[static_cast<size_t>(c)]) {
      reversed[length++] = last[static_cast<size_t>(c)];
    }
    while (length > 0 && indices->size() < count) indices->push_back(reversed[--length]);
    before = code;
  }
  return absl::OkStatus();
}

// Returns the row of the picture for row `i` of the data.
class RowOrder {
 public:
  explicit RowOrder(const Frame& frame) : height_(frame.height), is_interlaced_(frame.is_interlaced) {}

  int64_t Next() {
    if (!is_interlaced_) return next_++;
    constexpr int64_t kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
    while (next_ >= height_) next_ = kFirst[++pass_];
    const int64_t row = next_;
    next_ += kStep[pass_];
    return row;
  }

 private:
  int64_t height_;
  bool is_interlaced_;
  int pass_ = 0;
  int64_t next_ = 0;
};

// Draws the part of the frame that lies inside the picture.
absl::Status Draw(const Frame& frame, const std::vector<uint8_t>& indices, const File& file, bool is_first,
                  uint8_t* pixels) {
  const int64_t num_colors = static_cast<int64_t>(frame.colors.size()) / kColorBytes;
  if (num_colors == 0) return Damaged("a frame has no colours");
  const int64_t columns = std::min(frame.width, file.width - frame.x);
  if (columns <= 0) return absl::OkStatus();
  RowOrder rows(frame);
  for (int64_t i = 0; i < frame.height; ++i) {
    const int64_t y = frame.y + rows.Next();
    if (y >= file.height) continue;
    const uint8_t* index = indices.data() + i * frame.width;
    uint8_t* pixel = pixels + (y * file.width + frame.x) * kChannels;
    for (int64_t x = 0; x < columns; ++x, ++index, pixel += kChannels) {
      if (*index == frame.transparent) {
        if (is_first) std::memset(pixel, 0, kChannels);
        continue;
      }
      if (*index >= num_colors) {
        return Damaged(absl::StrCat("found the colour ", *index, ", expected less than ", num_colors));
      }
      std::memcpy(pixel, frame.colors.data() + *index * kColorBytes, kColorBytes);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSize(const File& file, size_t num_frames, const GifOptions& options) {
  const int64_t area = file.height * file.width;
  if (static_cast<int64_t>(num_frames) > options.max_pixels / area) {
    return absl::ResourceExhaustedError(absl::StrCat("found ", num_frames, " frames of ", file.width, " x ",
                                                     file.height, " pixels, expected at most ", options.max_pixels,
                                                     " in all"));
  }
  for (size_t i = 0; i < num_frames; ++i) {
    const Frame& frame = file.frames[i];
    if (frame.height * frame.width > kMostPixelsPerByte * static_cast<int64_t>(frame.data.size())) {
      return Damaged(
          absl::StrCat(frame.data.size(), " bytes are too few for ", frame.width, " x ", frame.height, " pixels"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodeGifPixels(absl::string_view bytes, const GifOptions& options, AllocatePixels allocate) {
  PF_ASSIGN_OR_RETURN(const File file, ReadStructure(bytes));
  const size_t num_frames = options.first_frame_only ? 1 : file.frames.size();
  if (options.rejects_animations && num_frames > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the GIF file has ", num_frames, " frames, which only DecodeGif and DecodeImage accept"));
  }
  PF_RETURN_IF_ERROR(CheckSize(file, num_frames, options));
  PictureSize size;
  size.frames = static_cast<int64_t>(num_frames);
  size.height = file.height;
  size.width = file.width;
  size.channels = kChannels;
  size.working_bytes = file.height * file.width;  // Colour indices of a frame.
  PF_ASSIGN_OR_RETURN(uint8_t * pixels, allocate(size));
  const auto frame_bytes = static_cast<size_t>(size.height * size.width * kChannels);
  std::vector<uint8_t> indices;
  for (size_t i = 0; i < num_frames; ++i, pixels += frame_bytes) {
    const Frame& frame = file.frames[i];
    PF_RETURN_IF_ERROR(Decompress(frame, static_cast<size_t>(frame.height * frame.width), &indices));
    if (i == 0) {
      std::memset(pixels, 0, frame_bytes);
    } else {
      std::memcpy(pixels, pixels - frame_bytes, frame_bytes);
    }
    PF_RETURN_IF_ERROR(Draw(frame, indices, file, i == 0, pixels));
  }
  return absl::OkStatus();
}

}  // namespace permafrost
