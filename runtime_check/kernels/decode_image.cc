// Decoding of pictures: JPEG, PNG and GIF by //runtime_check/images, in programs that link it, and BMP. The format
// follows from the bytes, as in TensorFlow, where the ops accept each other's formats.
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/images/image_decoding.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

struct DecodeState : KernelState {
  int channels = 0;
  JpegOptions jpeg;
  GifOptions gif;
  bool reads_compressed = true;  // JPEG, PNG and GIF.
  bool reads_bitmaps = false;
  bool reads_jpeg_only = false;
  bool has_frames = false;  // The output has a dimension for frames, even if there is one.
  bool has_frames_of_gif = false;
};

absl::StatusOr<std::unique_ptr<DecodeState>> ReadChannels(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 0));
  auto state = std::make_unique<DecodeState>();
  PF_ASSIGN_OR_RETURN(const int64_t channels, IntAttr(context->node(), "channels"));
  if (channels != 0 && channels != 1 && channels != 3 && channels != 4) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'channels' is ", channels, ", expected 0, 1, 3 or 4"));
  }
  state->channels = static_cast<int>(channels);
  state->gif.rejects_animations = true;
  // TensorFlow's default is the fast transform, and it skips damage.
  state->jpeg.fast_dct = true;
  state->jpeg.is_strict = false;
  context->OutputShapeDependsOnValues(0);
  return state;
}

absl::Status PreparePng(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(std::unique_ptr<DecodeState> state, ReadChannels(context));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareBmp(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(std::unique_ptr<DecodeState> state, ReadChannels(context));
  state->reads_compressed = false;
  state->reads_bitmaps = true;
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareGif(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 0));
  auto state = std::make_unique<DecodeState>();
  state->channels = 3;
  state->jpeg.fast_dct = true;
  state->jpeg.is_strict = false;
  state->has_frames = true;
  context->OutputShapeDependsOnValues(0);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareImage(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(std::unique_ptr<DecodeState> state, ReadChannels(context));
  PF_ASSIGN_OR_RETURN(const bool expands, BoolAttr(context->node(), "expand_animations"));
  state->reads_bitmaps = true;
  state->gif.rejects_animations = false;
  state->gif.first_frame_only = !expands;
  state->has_frames_of_gif = expands;
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DecodeState>> ReadJpegAttrs(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(std::unique_ptr<DecodeState> state, ReadChannels(context));
  const Node& node = context->node();
  PF_ASSIGN_OR_RETURN(const int64_t ratio, IntAttr(node, "ratio"));
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'ratio' is ", ratio, ", expected 1, 2, 4 or 8"));
  }
  state->jpeg.ratio = static_cast<int>(ratio);
  PF_ASSIGN_OR_RETURN(state->jpeg.fancy_upscaling, BoolAttr(node, "fancy_upscaling"));
  PF_ASSIGN_OR_RETURN(state->jpeg.fills_missing_data, BoolAttr(node, "try_recover_truncated"));
  PF_ASSIGN_OR_RETURN(state->jpeg.acceptable_fraction, FloatAttr(node, "acceptable_fraction"));
  PF_ASSIGN_OR_RETURN(const std::string method, StringAttr(node, "dct_method"));
  if (method != "" && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE") {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'dct_method' is '", method, "', expected '', 'INTEGER_FAST' or 'INTEGER_ACCURATE'"));
  }
  state->jpeg.fast_dct = method != "INTEGER_ACCURATE";
  return state;
}

absl::Status PrepareJpeg(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(std::unique_ptr<DecodeState> state, ReadJpegAttrs(context));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareCroppedJpeg(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  if (context->input_shape(1).dim(0) != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("'crop_window' has the shape ", context->input_shape(1).ToString(), ", expected [4]"));
  }
  PF_ASSIGN_OR_RETURN(std::unique_ptr<DecodeState> state, ReadJpegAttrs(context));
  state->reads_jpeg_only = true;
  state->jpeg.crops = true;
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// --- Decoding to the output -----------------------------------------------------------------------------------------

// Allocates the output, and memory for the decoded samples if these have another type.
class Target {
 public:
  // `has_frames`: the output has a dimension for frames.
  Target(ComputeContext* context, bool has_frames) : context_(context), has_frames_(has_frames) {}

  // `sample_bytes` is the size of a decoded sample: 1, or 2 for the upper and lower eight bits.
  absl::StatusOr<uint8_t*> Allocate(const PictureSize& size, int sample_bytes) {
    Shape shape({size.height, size.width, size.channels});
    if (has_frames_) shape = Shape({size.frames, size.height, size.width, size.channels});
    PF_RETURN_IF_ERROR(context_->AllocateOutput(0, shape));
    count_ = shape.num_elements();
    const bool is_direct = static_cast<size_t>(sample_bytes) == SizeOf(context_->output_type(0));
    PF_ASSIGN_OR_RETURN(reservation_, Reservation::Take(&context_->budget(),
                                                        size.working_bytes + (is_direct ? 0 : count_ * sample_bytes),
                                                        "a decoded picture"));
    if (is_direct) return reinterpret_cast<uint8_t*>(context_->output_bytes(0));
    samples_.resize(static_cast<size_t>(count_ * sample_bytes));
    return samples_.data();
  }

  // Converts the samples as TensorFlow does: eight bits become the upper ones of 16, and the largest sample 1.0f.
  template <typename Sample>
  void Convert() {
    if (samples_.empty()) return;
    if (context_->output_type(0) == DType::kUint16) {
      constexpr int kUpperBits = 256;
      uint16_t* output = context_->output<uint16_t>(0);
      for (int64_t i = 0; i < count_; ++i)
        output[i] = static_cast<uint16_t>(samples_[static_cast<size_t>(i)] * kUpperBits);
      return;
    }
    const float scale = 1.0f / static_cast<float>(std::numeric_limits<Sample>::max());
    float* output = context_->output<float>(0);
    for (int64_t i = 0; i < count_; ++i) {
      Sample sample;
      std::memcpy(&sample, samples_.data() + i * static_cast<int64_t>(sizeof(Sample)), sizeof(Sample));
      output[i] = static_cast<float>(sample) * scale;
    }
  }

 private:
  ComputeContext* context_;
  bool has_frames_;
  int64_t count_ = 0;
  Reservation reservation_;
  std::vector<uint8_t> samples_;
};

absl::Status NoDecoder(absl::string_view format) {
  return absl::UnimplementedError(
      absl::StrCat("the picture is a ", format, " file, and this program is built without a decoder of that format"));
}

absl::Status FromJpeg(ComputeContext* context, absl::string_view bytes) {
  if (&DecodeJpegPixels == nullptr) return NoDecoder("JPEG");
  const auto& state = context->state<DecodeState>();
  JpegOptions options = state.jpeg;
  options.channels = state.channels;
  if (options.crops) {
    const int32_t* window = context->input<int32_t>(1);
    options.window = {window[0], window[1], window[2], window[3]};
  }
  Target target(context, state.has_frames);
  PF_RETURN_IF_ERROR(
      DecodeJpegPixels(bytes, options, [&](const PictureSize& size) { return target.Allocate(size, 1); }));
  target.Convert<uint8_t>();
  return absl::OkStatus();
}

absl::Status FromPng(ComputeContext* context, absl::string_view bytes) {
  if (&DecodePngPixels == nullptr) return NoDecoder("PNG");
  const auto& state = context->state<DecodeState>();
  PngOptions options;
  options.channels = state.channels;
  const int sample_bytes = context->output_type(0) == DType::kUint8 ? 1 : 2;
  options.bits = 8 * sample_bytes;
  Target target(context, state.has_frames);
  PF_RETURN_IF_ERROR(
      DecodePngPixels(bytes, options, [&](const PictureSize& size) { return target.Allocate(size, sample_bytes); }));
  target.Convert<uint16_t>();
  return absl::OkStatus();
}

absl::Status FromGif(ComputeContext* context, absl::string_view bytes) {
  if (&DecodeGifPixels == nullptr) return NoDecoder("GIF");
  const auto& state = context->state<DecodeState>();
  if (state.channels != 0 && state.channels != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'channels' is ", state.channels, ", expected 0 or 3 for a GIF file"));
  }
  Target target(context, state.has_frames || state.has_frames_of_gif);
  PF_RETURN_IF_ERROR(
      DecodeGifPixels(bytes, state.gif, [&](const PictureSize& size) { return target.Allocate(size, 1); }));
  target.Convert<uint8_t>();
  return absl::OkStatus();
}

// --- BMP -------------------------------------------------------------------------------------------------------------

int32_t Int32At(absl::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return static_cast<int32_t>(value);
}

absl::Status FromBitmap(ComputeContext* context, absl::string_view bytes) {
  // Offsets in the two headers of a file.
  constexpr size_t kHeaders = 32, kPixels = 10, kWidth = 18, kHeight = 22, kBits = 28;
  if (bytes.size() < kHeaders) {
    return absl::DataLossError(absl::StrCat("damaged BMP: found ", bytes.size(), " bytes, expected ", kHeaders));
  }
  const int64_t first = Int32At(bytes, kPixels), width = Int32At(bytes, kWidth),
                signed_height = Int32At(bytes, kHeight);
  const int bits = static_cast<uint8_t>(bytes[kBits]) | static_cast<uint8_t>(bytes[kBits + 1]) << 8;
  const int64_t channels = bits / 8;
  if (bits % 8 != 0 || (channels != 1 && channels != 3 && channels != 4)) {
    return absl::UnimplementedError(absl::StrCat("a BMP file of ", bits, " bits for a pixel, expected 8, 24 or 32"));
  }
  const int wanted = context->state<DecodeState>().channels;
  if (wanted != 0 && wanted != channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'channels' is ", wanted, ", and the BMP file has ", channels, " channels"));
  }
  const int64_t height = signed_height < 0 ? -signed_height : signed_height;
  if (width < 1 || height < 1 || first < 0) {
    return absl::DataLossError(absl::StrCat("damaged BMP: found ", width, " x ", height, " pixels at byte ", first));
  }
  if (height > kMostPicturePixels / width) {
    return absl::ResourceExhaustedError(
        absl::StrCat("found ", width, " x ", height, " pixels, expected at most ", kMostPicturePixels, " in all"));
  }
  // Rows begin at multiples of four bytes. The last one may be incomplete.
  const int64_t row_bytes = (channels * width + 3) / 4 * 4;
  const int64_t needed = first + (height - 1) * row_bytes + width * channels;
  if (needed > static_cast<int64_t>(bytes.size())) {
    return absl::DataLossError(absl::StrCat("damaged BMP: found ", bytes.size(), " bytes, expected ", needed));
  }
  PictureSize size;
  size.height = height;
  size.width = width;
  size.channels = channels;
  Target target(context, /*has_frames=*/false);
  PF_ASSIGN_OR_RETURN(uint8_t * output, target.Allocate(size, 1));
  for (int64_t y = 0; y < height; ++y) {
    // A negative height means that the first row is the upper one.
    const int64_t row = signed_height < 0 ? y : height - 1 - y;
    const char* from = bytes.data() + first + row * row_bytes;
    for (int64_t x = 0; x < width; ++x, from += channels, output += channels) {
      std::memcpy(output, from, static_cast<size_t>(channels));
      if (channels >= 3) std::swap(output[0], output[2]);  // Blue is first in the file.
    }
  }
  target.Convert<uint8_t>();
  return absl::OkStatus();
}

absl::Status ComputeDecode(ComputeContext* context) {
  const absl::string_view bytes = context->input_strings(0).front();
  const auto& state = context->state<DecodeState>();
  const bool reads_others = state.reads_compressed && !state.reads_jpeg_only;
  if (state.reads_compressed && StartsLikeJpeg(bytes)) return FromJpeg(context, bytes);
  if (reads_others && StartsLikePng(bytes)) return FromPng(context, bytes);
  if (reads_others && StartsLikeGif(bytes)) return FromGif(context, bytes);
  if (state.reads_bitmaps && bytes.substr(0, 2) == "BM") return FromBitmap(context, bytes);
  return absl::InvalidArgumentError(absl::StrCat("found ", bytes.size(), " bytes that are no picture, expected ",
                                                 !state.reads_compressed ? "BMP"
                                                 : state.reads_jpeg_only ? "JPEG"
                                                 : state.reads_bitmaps   ? "JPEG, PNG, GIF or BMP"
                                                                         : "JPEG, PNG or GIF"));
}

}  // namespace

DEFINE_KERNEL(DecodeJpeg) {
  return Kernel("the pixels of a JPEG file, or of a PNG or GIF file").Prepare(PrepareJpeg).Compute(ComputeDecode);
}

DEFINE_KERNEL(DecodeAndCropJpeg) {
  return Kernel("the pixels of a JPEG file inside a window").Prepare(PrepareCroppedJpeg).Compute(ComputeDecode);
}

DEFINE_KERNEL(DecodePng) {
  return Kernel("the pixels of a PNG file, or of a JPEG or GIF file")
      .Types<uint8_t, uint16_t>("dtype")
      .Prepare(PreparePng)
      .Compute(ComputeDecode);
}

DEFINE_KERNEL(DecodeGif) {
  return Kernel("the frames of a GIF file, or the one of a JPEG or PNG file")
      .Prepare(PrepareGif)
      .Compute(ComputeDecode);
}

DEFINE_KERNEL(DecodeBmp) { return Kernel("the pixels of a BMP file").Prepare(PrepareBmp).Compute(ComputeDecode); }

DEFINE_KERNEL(DecodeImage) {
  return Kernel("the pixels of a JPEG, PNG or BMP file, or the frames of a GIF file; as float, 0 to 1")
      .Types<uint8_t, uint16_t, float>("dtype")
      .Prepare(PrepareImage)
      .Compute(ComputeDecode);
}

}  // namespace permafrost
