// Decoding of strings to numbers and other strings: raw elements, base64 and WAV files.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// --- Raw elements ----------------------------------------------------------------------------------------------------

absl::Status PrepareRaw(PrepareContext* context) {
  PF_RETURN_IF_ERROR(BoolAttr(context->node(), "little_endian").status());
  context->OutputShapeDependsOnValues(0);
  return absl::OkStatus();
}

// Reverses the bytes of each number; complex numbers have two.
void ReverseBytes(DType dtype, char* elements, size_t bytes) {
  const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  const size_t size = SizeOf(dtype) / (is_complex ? 2 : 1);
  for (size_t at = 0; at < bytes; at += size) std::reverse(elements + at, elements + at + size);
}

absl::Status ComputeRaw(ComputeContext* context) {
  const std::vector<std::string>& strings = context->input_strings(0);
  const DType dtype = context->output_type(0);
  const size_t length = strings.empty() ? 0 : strings.front().size(), size = SizeOf(dtype);
  for (size_t i = 0; i < strings.size(); ++i) {
    if (strings[i].size() != length) {
      return absl::InvalidArgumentError(absl::StrCat("string ", i, " has ", strings[i].size(), " bytes, string 0 has ",
                                                     length, ", expected equal lengths"));
    }
  }
  if (length % size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the strings have ", length, " bytes, expected a multiple of ", size));
  }
  Shape shape = context->input_shape(0);
  shape.AddDim(static_cast<int64_t>(length / size));
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, shape));
  if (length == 0 || strings.empty()) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const bool is_little, BoolAttr(context->node(), "little_endian"));
  char* output = context->output_bytes(0);
  for (const std::string& text : strings) {
    std::memcpy(output, text.data(), length);
    if (!is_little) ReverseBytes(dtype, output, length);
    if (dtype == DType::kBool) std::transform(output, output + length, output, [](char x) { return char{x != 0}; });
    output += length;
  }
  return absl::OkStatus();
}

// --- Base64 ----------------------------------------------------------------------------------------------------------

// The alphabet for URLs (RFC 4648, section 5), which is the only one that TensorFlow's ops have.
constexpr absl::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr char kPad = '=';

// Removes the padding that completes the last four characters.
absl::string_view WithoutPadding(absl::string_view text) {
  if (text.size() % 4 != 0 || text.empty() || text.back() != kPad) return text;
  text.remove_suffix(1);
  if (text.back() == kPad) text.remove_suffix(1);
  return text;
}

absl::StatusOr<std::string> FromBase64(absl::string_view text) {
  text = WithoutPadding(text);
  if (text.size() % 4 == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("found base64 of ", text.size(), " characters, which is 1 modulo 4"));
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t buffer = 0;
  int num_bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit = kAlphabet.find(text[i]);
    if (digit == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("character ", i, " is not base64: expected letters, digits, '-' or '_'"));
    }
    buffer = buffer << 6 | static_cast<uint32_t>(digit);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes.push_back(static_cast<char>(buffer >> num_bits & 0xff));
  }
  return bytes;
}

std::string ToBase64(absl::string_view bytes, bool pads) {
  std::string text;
  text.reserve(bytes.size() / 3 * 4 + 4);
  uint32_t buffer = 0;
  int num_bits = 0;
  for (const char byte : bytes) {
    buffer = buffer << 8 | static_cast<uint8_t>(byte);
    for (num_bits += 8; num_bits >= 6;) {
      num_bits -= 6;
      text.push_back(kAlphabet[buffer >> num_bits & 0x3f]);
    }
  }
  if (num_bits > 0) text.push_back(kAlphabet[buffer << (6 - num_bits) & 0x3f]);
  while (pads && text.size() % 4 != 0) text.push_back(kPad);
  return text;
}

absl::Status ComputeFromBase64(ComputeContext* context) {
  const std::vector<std::string>& input = context->input_strings(0);
  std::vector<std::string>& output = context->output_strings(0);
  for (size_t i = 0; i < input.size(); ++i) {
    PF_ASSIGN_OR_RETURN(output[i], FromBase64(input[i]));
  }
  return absl::OkStatus();
}

absl::Status PrepareToBase64(PrepareContext* context) {
  PF_RETURN_IF_ERROR(BoolAttr(context->node(), "pad").status());
  return SameShape(context);
}

absl::Status ComputeToBase64(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool pads, BoolAttr(context->node(), "pad"));
  const std::vector<std::string>& input = context->input_strings(0);
  std::vector<std::string>& output = context->output_strings(0);
  for (size_t i = 0; i < input.size(); ++i) output[i] = ToBase64(input[i], pads);
  return absl::OkStatus();
}

// --- WAV -------------------------------------------------------------------------------------------------------------

struct Sound {
  int64_t channels = 0, samples = 0;
  uint32_t rate = 0;
  absl::string_view frames;  // Samples of 16 bits, little-endian, the channels adjacent.
};

// Reads little-endian numbers and chunks of a file. Reads beyond the end give zeros and set `failed`.
class ChunkReader {
 public:
  explicit ChunkReader(absl::string_view bytes) : rest_(bytes) {}

  bool failed() const { return failed_; }
  bool empty() const { return rest_.empty(); }
  absl::string_view Bytes(size_t count) {
    if (count > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const absl::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  uint32_t Number(size_t count) {
    uint32_t number = 0;
    const absl::string_view bytes = Bytes(count);
    for (size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
    return number;
  }

 private:
  absl::string_view rest_;
  bool failed_ = false;
};

absl::Status Damaged(absl::string_view what) { return absl::DataLossError(absl::StrCat("damaged WAV: ", what)); }

absl::StatusOr<Sound> ReadWav(absl::string_view bytes) {
  ChunkReader reader(bytes);
  const bool is_riff = reader.Bytes(4) == "RIFF";
  reader.Bytes(4);  // The size of the file, which TensorFlow ignores too.
  if (!is_riff || reader.Bytes(4) != "WAVE" || reader.Bytes(4) != "fmt ") {
    return Damaged("it does not begin with RIFF, WAVE and fmt");
  }
  const uint32_t format_bytes = reader.Number(4);
  if (format_bytes != 16 && format_bytes != 18) {
    return Damaged(absl::StrCat("the format has ", format_bytes, " bytes, expected 16 or 18"));
  }
  const uint32_t encoding = reader.Number(2);
  Sound sound;
  sound.channels = reader.Number(2);
  sound.rate = reader.Number(4);
  const uint32_t bytes_per_second = reader.Number(4), sample_bytes = reader.Number(2), bits = reader.Number(2);
  reader.Bytes(format_bytes - 16);
  if (reader.failed()) return Damaged("the file ends too early");
  if (encoding != 1 || bits != 16) {
    return absl::UnimplementedError(
        absl::StrCat("a WAV file of encoding ", encoding, " and ", bits, " bits, expected 1 (PCM) and 16"));
  }
  if (sound.channels < 1 || sample_bytes != 2 * sound.channels ||
      bytes_per_second != uint64_t{sample_bytes} * sound.rate) {
    return Damaged("channels, sizes and rate contradict each other");
  }
  bool has_data = false;
  while (!reader.empty()) {
    const absl::string_view kind = reader.Bytes(4);
    const uint32_t length = reader.Number(4);
    if (kind == "data") {
      if (has_data) return Damaged("it has two chunks of data");
      has_data = true;
      sound.samples = length / sample_bytes;
      sound.frames = reader.Bytes(static_cast<size_t>(sound.samples * sample_bytes));
    } else {
      reader.Bytes(length);
    }
    if (reader.failed()) return Damaged("the file ends too early");
  }
  if (!has_data) return Damaged("it has no data");
  return sound;
}

struct WavState : KernelState {
  int64_t channels = -1, samples = -1;  // -1: those of the file.
};

absl::Status PrepareWav(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 0));
  auto state = std::make_unique<WavState>();
  PF_ASSIGN_OR_RETURN(state->channels, IntAttr(context->node(), "desired_channels"));
  PF_ASSIGN_OR_RETURN(state->samples, IntAttr(context->node(), "desired_samples"));
  context->SetState(std::move(state));
  context->OutputShapeDependsOnValues(0);
  context->SetOutputShape(1, Shape());
  return absl::OkStatus();
}

// Missing samples are silence, and missing channels repeat the last one.
absl::Status ComputeWav(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Sound sound, ReadWav(context->input_strings(0).front()));
  const auto& state = context->state<WavState>();
  const int64_t channels = state.channels < 0 ? sound.channels : state.channels;
  const int64_t samples = state.samples < 0 ? sound.samples : state.samples;
  const Shape shape({samples, channels});
  PF_RETURN_IF_ERROR(shape.CheckedNumElements().status());
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, shape));
  *context->output<int32_t>(1) = static_cast<int32_t>(sound.rate);
  if (shape.num_elements() == 0) return absl::OkStatus();
  float* output = context->output<float>(0);
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t c = 0; c < channels; ++c, ++output) {
      *output = 0;
      if (s >= sound.samples) continue;
      const auto at = static_cast<size_t>(2 * (s * sound.channels + std::min(c, sound.channels - 1)));
      const auto bits = static_cast<uint16_t>(static_cast<uint8_t>(sound.frames[at]) |
                                              static_cast<uint8_t>(sound.frames[at + 1]) << 8);
      *output = static_cast<float>(static_cast<int16_t>(bits)) * (1.0f / 32768);
    }
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(DecodeRaw) {
  return Kernel("the bytes of each string as numbers, along a new last dimension")
      .Types<float, double, Half, BFloat16, bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
             std::complex<float>, std::complex<double>>("out_type")
      .Prepare(PrepareRaw)
      .Compute(ComputeRaw);
}

DEFINE_KERNEL(DecodeBase64) {
  return Kernel("each string decoded from base64 with the alphabet for URLs")
      .Prepare(SameShape)
      .Compute(ComputeFromBase64);
}

DEFINE_KERNEL(EncodeBase64) {
  return Kernel("each string in base64 with the alphabet for URLs").Prepare(PrepareToBase64).Compute(ComputeToBase64);
}

DEFINE_KERNEL(DecodeWav) {
  return Kernel("the samples of a 16-bit WAV file in [-1, 1), and its sample rate")
      .Prepare(PrepareWav)
      .Compute(ComputeWav);
}

}  // namespace permafrost
