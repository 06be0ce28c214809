// Ops that split strings: StringSplit, StringSplitV2, StringNGrams and Unicode decoding.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/ragged_splits.h"
#include "runtime_check/kernels/regular_expression.h"

namespace permafrost {
namespace {

using Strings = std::vector<std::string>;

const Strings& StringsOf(ComputeContext* context, int i) { return context->input_strings(i); }

// --- Splitting -------------------------------------------------------------------------------------------------------

absl::Status PrepareSplit(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 0));
  context->OutputShapeDependsOnValues(0);
  context->OutputShapeDependsOnValues(1);
  context->SetOutputShape(2, Shape({2}));
  return absl::OkStatus();
}

bool IsSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

// Splits at spaces into at most `most` parts and one part with the remainder; a negative `most` means no limit.
void SplitAtSpaces(absl::string_view text, int64_t most, std::vector<absl::string_view>* parts) {
  const auto skip_spaces = [&] {
    while (!text.empty() && IsSpace(text[0])) text.remove_prefix(1);
  };
  skip_spaces();
  for (int64_t count = 0; !text.empty();) {
    const auto end = std::find_if(text.begin(), text.end(), &IsSpace);
    const auto size = static_cast<size_t>(end - text.begin());
    parts->push_back(text.substr(0, size));
    text.remove_prefix(size);
    skip_spaces();
    if (++count == most) {
      parts->push_back(text);
      return;
    }
  }
}

// Splits at separators in the same way, including empty parts.
void SplitAt(absl::string_view text, absl::string_view separator, int64_t most, std::vector<absl::string_view>* parts) {
  int64_t count = 0;
  for (size_t found; count != most && (found = text.find(separator)) != absl::string_view::npos; ++count) {
    parts->push_back(text.substr(0, found));
    text.remove_prefix(found + separator.size());
  }
  parts->push_back(text);
}

// Writes the outputs, a sparse matrix with one row per text. `split` appends the parts of a text.
template <typename Split>
absl::Status GiveParts(ComputeContext* context, Split split) {
  const Strings& input = StringsOf(context, 0);
  std::vector<absl::string_view> parts;
  std::vector<size_t> ends;
  size_t longest = 0;
  for (const std::string& text : input) {
    const size_t begin = parts.size();
    // A text has at most one part more than bytes. Each part is a view.
    PF_ASSIGN_OR_RETURN(
        const Reservation reservation,
        Reservation::Take(&context->budget(), static_cast<int64_t>((parts.size() + text.size() + 1) * 2 * sizeof(text)),
                          "the parts of strings"));
    split(text, &parts);
    ends.push_back(parts.size());
    longest = std::max(longest, parts.size() - begin);
  }
  const auto count = static_cast<int64_t>(parts.size());
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, Shape({count, 2})));
  PF_RETURN_IF_ERROR(context->AllocateOutput(1, Shape({count})));
  int64_t* indices = context->output<int64_t>(0);
  Strings& values = context->output_strings(1);
  size_t part = 0;
  for (size_t row = 0; row < ends.size(); ++row) {
    for (int64_t column = 0; part < ends[row]; ++part, ++column) {
      *indices++ = static_cast<int64_t>(row);
      *indices++ = column;
      values[part] = std::string(parts[part]);
    }
  }
  context->output<int64_t>(2)[0] = static_cast<int64_t>(input.size());
  context->output<int64_t>(2)[1] = static_cast<int64_t>(longest);
  return absl::OkStatus();
}

absl::Status ComputeSplitV2(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t most, IntAttr(context->node(), "maxsplit"));
  const std::string& separator = StringsOf(context, 1)[0];
  return GiveParts(context, [&](const std::string& text, std::vector<absl::string_view>* parts) {
    if (most == 0) {
      parts->push_back(text);
    } else if (separator.empty()) {
      SplitAtSpaces(text, most, parts);
    } else {
      SplitAt(text, separator, most, parts);
    }
  });
}

// Each byte of `delimiter` is a separator; without a delimiter, each byte is a part.
absl::Status ComputeSplit(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool skips_empty, BoolAttr(context->node(), "skip_empty"));
  const std::string& delimiter = StringsOf(context, 1)[0];
  return GiveParts(context, [&](absl::string_view text, std::vector<absl::string_view>* parts) {
    if (text.empty()) return;
    for (size_t at = 0; delimiter.empty() ? at < text.size() : at <= text.size();) {
      size_t end = delimiter.empty() ? at + 1 : text.find_first_of(delimiter, at);
      end = std::min(end, text.size());
      if (end > at || !skips_empty) parts->push_back(text.substr(at, end - at));
      at = delimiter.empty() ? end : end + 1;
    }
  });
}

// --- N-grams ---------------------------------------------------------------------------------------------------------

absl::Status PrepareNGrams(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  context->OutputShapeDependsOnValues(0);
  context->SetOutputShape(1, context->input_shape(1));
  return absl::OkStatus();
}

struct NGrams {
  std::string separator, left, right;
  std::vector<int64_t> widths;
  int64_t pad_width = 0;
  bool keeps_short = false;

  int64_t PadOf(int64_t width) const { return std::min(pad_width < 0 ? width - 1 : pad_width, width - 1); }
  int64_t CountOf(int64_t length, int64_t width) const {
    return std::max<int64_t>(0, length + 2 * PadOf(width) - width + 1);
  }
};

// Returns n-gram `index` of the `count` n-grams of this width.
std::string NGramAt(const NGrams& grams, const std::string* tokens, int64_t index, int64_t count, int64_t width) {
  const int64_t pad = grams.PadOf(width);
  const int64_t left = std::max<int64_t>(0, pad - index), right = std::max<int64_t>(0, pad - (count - index - 1));
  const int64_t middle = width - left - right, first = left > 0 ? 0 : index - pad;
  std::string text;
  for (int64_t i = 0; i < width; ++i) {
    if (i > 0) text += grams.separator;
    text += i < left ? grams.left : i < left + middle ? tokens[first + i - left] : grams.right;
  }
  return text;
}

template <typename Split>
absl::Status MakeNGrams(ComputeContext* context, const NGrams& grams) {
  const Strings& tokens = StringsOf(context, 0);
  const Split* splits = context->input<Split>(1);
  const int64_t num_splits = context->input_shape(1).dim(0);
  PF_RETURN_IF_ERROR(CheckSplits(splits, num_splits, static_cast<int64_t>(tokens.size())));
  const auto for_each = [&](auto&& f) -> absl::Status {
    for (int64_t row = 0; row + 1 < num_splits; ++row) {
      const int64_t length = splits[row + 1] - splits[row];
      int64_t in_row = 0;
      for (const int64_t width : grams.widths) {
        const int64_t count = grams.CountOf(length, width);
        in_row += count;
        PF_RETURN_IF_ERROR(f(row, count, width));
      }
      if (in_row == 0 && length > 0 && grams.keeps_short) {
        PF_RETURN_IF_ERROR(f(row, int64_t{1}, length + 2 * std::max<int64_t>(grams.pad_width, 0)));
      }
    }
    return absl::OkStatus();
  };
  Split* out_splits = context->output<Split>(1);
  if (num_splits > 0) std::fill_n(out_splits, num_splits, Split{0});
  size_t longest = std::max(grams.left.size(), grams.right.size());
  for (const std::string& token : tokens) longest = std::max(longest, token.size());
  double bytes = 0;
  int64_t total = 0;
  PF_RETURN_IF_ERROR(for_each([&](int64_t row, int64_t count, int64_t width) {
    total += count;
    bytes += static_cast<double>(count) * static_cast<double>(width) *
             static_cast<double>(longest + grams.separator.size() + 1);
    out_splits[row + 1] = static_cast<Split>(total);
    return absl::OkStatus();
  }));
  for (int64_t row = 1; row < num_splits; ++row) out_splits[row] = std::max(out_splits[row], out_splits[row - 1]);
  if (bytes > 1e15) return absl::ResourceExhaustedError("the n-grams need more than 10^15 bytes");
  PF_ASSIGN_OR_RETURN(const Reservation reservation,
                      Reservation::Take(&context->budget(), static_cast<int64_t>(bytes), "n-grams"));
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, Shape({total})));
  Strings& output = context->output_strings(0);
  size_t next = 0;
  return for_each([&](int64_t row, int64_t count, int64_t width) {
    for (int64_t i = 0; i < count; ++i) {
      output[next++] = NGramAt(grams, tokens.data() + splits[row], i, count, width);
    }
    return absl::OkStatus();
  });
}

absl::Status ComputeNGrams(ComputeContext* context) {
  const Node& node = context->node();
  NGrams grams;
  PF_ASSIGN_OR_RETURN(grams.separator, StringAttr(node, "separator"));
  PF_ASSIGN_OR_RETURN(grams.left, StringAttr(node, "left_pad"));
  PF_ASSIGN_OR_RETURN(grams.right, StringAttr(node, "right_pad"));
  PF_ASSIGN_OR_RETURN(grams.widths, IntListAttr(node, "ngram_widths"));
  PF_ASSIGN_OR_RETURN(grams.pad_width, IntAttr(node, "pad_width"));
  PF_ASSIGN_OR_RETURN(grams.keeps_short, BoolAttr(node, "preserve_short_sequences"));
  // Sums of a few of these fit in int64.
  constexpr int64_t kWidest = int64_t{1} << 31;
  for (const int64_t width : grams.widths) {
    if (width > 0 && width < kWidest && grams.pad_width < kWidest) continue;
    return absl::InvalidArgumentError(absl::StrCat("found n-grams of width ", width, " padded by ", grams.pad_width,
                                                   ", expected a width from 1 on and numbers below 2^31"));
  }
  return context->input_at(1).dtype == DType::kInt32 ? MakeNGrams<int32_t>(context, grams)
                                                     : MakeNGrams<int64_t>(context, grams);
}

// --- Unicode ---------------------------------------------------------------------------------------------------------

struct Decoding {
  std::string errors;
  int64_t replacement = 0;
  bool replaces_control = false;
};

absl::StatusOr<Decoding> DecodingOf(const Node& node) {
  Decoding decoding;
  PF_ASSIGN_OR_RETURN(const std::string encoding, StringAttr(node, "input_encoding"));
  if (!absl::EqualsIgnoreCase(encoding, "UTF-8") && !absl::EqualsIgnoreCase(encoding, "US-ASCII")) {
    return absl::UnimplementedError(absl::StrCat("attr 'input_encoding' is '", encoding, "', expected UTF-8"));
  }
  PF_ASSIGN_OR_RETURN(decoding.errors, StringAttr(node, "errors"));
  PF_ASSIGN_OR_RETURN(decoding.replacement, IntAttr(node, "replacement_char"));
  PF_ASSIGN_OR_RETURN(decoding.replaces_control, BoolAttr(node, "replace_control_characters"));
  const bool is_valid = decoding.replacement >= 0 && decoding.replacement <= 0x10ffff &&
                        (decoding.replacement < 0xd800 || decoding.replacement > 0xdfff);
  if (!is_valid) return absl::InvalidArgumentError("attr 'replacement_char' is no character");
  if (decoding.errors != "replace" && decoding.errors != "ignore" && decoding.errors != "strict") {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'errors' is '", decoding.errors, "', expected replace, ignore or strict"));
  }
  return decoding;
}

// Returns the number of invalid bytes at `at` that one replacement character stands for. The start of a character, up
// to the first byte that does not fit, counts as one (Unicode, "maximal subparts").
size_t BadBytesAt(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t lead = byte(at), next = byte(at + 1);
  if (lead < 0xc2 || lead > 0xf4) return 1;
  const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (next < low || next > high) return 1;
  size_t size = 2;
  while (size < length && (byte(at + size) & 0xc0) == 0x80) ++size;
  return size;
}

// Calls f(code point, first byte) for each character.
template <typename F>
absl::Status ForEachCharacter(const Decoding& decoding, absl::string_view text, F f) {
  for (size_t at = 0; at < text.size();) {
    auto [code_point, length] = CodePointAt(text, at);
    const bool is_control = code_point >= 0 && (code_point < 0x20 || code_point == 0x7f);
    if (code_point < 0) {
      length = BadBytesAt(text, at);
      if (decoding.errors == "strict") {
        return absl::InvalidArgumentError(absl::StrCat("found bytes that are not UTF-8 at byte ", at, " of a string"));
      }
      if (decoding.errors == "replace") f(static_cast<int32_t>(decoding.replacement), at);
    } else {
      f(is_control && decoding.replaces_control ? static_cast<int32_t>(decoding.replacement) : code_point, at);
    }
    at += length;
  }
  return absl::OkStatus();
}

absl::Status PrepareDecode(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t count, context->input_shape(0).CheckedNumElements());
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape({count + 1})));
  for (int i = 1; i < context->num_outputs(); ++i) context->OutputShapeDependsOnValues(i);
  return DecodingOf(context->node()).status();
}

template <typename Split>
absl::Status Decode(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Decoding decoding, DecodingOf(context->node()));
  Split* splits = context->output<Split>(0);
  splits[0] = 0;
  int64_t total = 0;
  for (const std::string& text : StringsOf(context, 0)) {
    PF_RETURN_IF_ERROR(ForEachCharacter(decoding, text, [&](int32_t, size_t) { ++total; }));
    *++splits = static_cast<Split>(total);
  }
  for (int i = 1; i < context->num_outputs(); ++i) PF_RETURN_IF_ERROR(context->AllocateOutput(i, Shape({total})));
  int32_t* values = context->output<int32_t>(1);
  int64_t* starts = context->num_outputs() > 2 ? context->output<int64_t>(2) : nullptr;
  for (const std::string& text : StringsOf(context, 0)) {
    PF_RETURN_IF_ERROR(ForEachCharacter(decoding, text, [&](int32_t code_point, size_t at) {
      *values++ = code_point;
      if (starts != nullptr) *starts++ = static_cast<int64_t>(at);
    }));
  }
  return absl::OkStatus();
}

absl::Status ComputeDecode(ComputeContext* context) {
  return context->output_at(0).dtype == DType::kInt32 ? Decode<int32_t>(context) : Decode<int64_t>(context);
}

absl::Status RequireUtf8Output(const Node& node) {
  PF_ASSIGN_OR_RETURN(const std::string encoding, StringAttr(node, "output_encoding"));
  if (encoding == "UTF-8") return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("attr 'output_encoding' is '", encoding, "', expected UTF-8"));
}

absl::Status PrepareTranscode(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireUtf8Output(context->node()));
  PF_RETURN_IF_ERROR(DecodingOf(context->node()).status());
  return SameShape(context);
}

absl::Status ComputeTranscode(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Decoding decoding, DecodingOf(context->node()));
  const Strings& input = StringsOf(context, 0);
  for (size_t i = 0; i < input.size(); ++i) {
    std::string text;
    PF_RETURN_IF_ERROR(ForEachCharacter(decoding, input[i], [&](int32_t code_point, size_t) {
      AppendCodePoint(static_cast<uint32_t>(code_point), &text);
    }));
    (context->output_strings(0))[i] = std::move(text);
  }
  return absl::OkStatus();
}

absl::Status PrepareEncode(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireUtf8Output(context->node()));
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  if (context->input_shape(1).dim(0) == 0) return absl::InvalidArgumentError("the splits are empty, expected a 0");
  context->SetOutputShape(0, Shape({context->input_shape(1).dim(0) - 1}));
  return absl::OkStatus();
}

template <typename Split>
absl::Status Encode(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::string errors, StringAttr(context->node(), "errors"));
  PF_ASSIGN_OR_RETURN(const int64_t replacement, IntAttr(context->node(), "replacement_char"));
  const int32_t* values = context->input<int32_t>(0);
  const Split* splits = context->input<Split>(1);
  PF_RETURN_IF_ERROR(CheckSplits(splits, context->input_shape(1).dim(0), context->input_shape(0).dim(0)));
  const auto is_valid = [](int64_t x) { return x >= 0 && x <= 0x10ffff && (x < 0xd800 || x > 0xdfff); };
  if (!is_valid(replacement)) return absl::InvalidArgumentError("attr 'replacement_char' is no character");
  Strings& output = context->output_strings(0);
  for (size_t row = 0; row < output.size(); ++row) {
    std::string text;
    for (Split i = splits[row]; i < splits[row + 1]; ++i) {
      if (is_valid(values[i])) {
        AppendCodePoint(static_cast<uint32_t>(values[i]), &text);
      } else if (errors == "strict") {
        return absl::InvalidArgumentError(
            absl::StrCat("found ", values[i], " at element ", i, ", which is no character"));
      } else if (errors == "replace") {
        AppendCodePoint(static_cast<uint32_t>(replacement), &text);
      }
    }
    output[row] = std::move(text);
  }
  return absl::OkStatus();
}

absl::Status ComputeEncode(ComputeContext* context) {
  return context->input_at(1).dtype == DType::kInt32 ? Encode<int32_t>(context) : Encode<int64_t>(context);
}

Kernel DecodeKernel(const char* formula) {
  return Kernel(formula).TypeNumbers("Tsplits", IndexTypes()).Prepare(PrepareDecode).Compute(ComputeDecode);
}

}  // namespace

DEFINE_KERNEL(StringSplit) {
  return Kernel("the parts of each string between delimiters, as a sparse matrix")
      .Prepare(PrepareSplit)
      .Compute(ComputeSplit);
}
DEFINE_KERNEL(StringSplitV2) {
  return Kernel("the parts of each string between separators or white space, as a sparse matrix")
      .Prepare(PrepareSplit)
      .Compute(ComputeSplitV2);
}
DEFINE_KERNEL(StringNGrams) {
  return Kernel("the n-grams of the strings of each row, joined with a separator")
      .TypeNumbers("Tsplits", IndexTypes())
      .Prepare(PrepareNGrams)
      .Compute(ComputeNGrams);
}
DEFINE_KERNEL(UnicodeDecode) { return DecodeKernel("the code points of each UTF-8 string"); }
DEFINE_KERNEL(UnicodeDecodeWithOffsets) {
  return DecodeKernel("the code points of each UTF-8 string, and their byte offsets");
}
DEFINE_KERNEL(UnicodeEncode) {
  return Kernel("UTF-8 strings encoded from code points")
      .TypeNumbers("Tsplits", IndexTypes())
      .Prepare(PrepareEncode)
      .Compute(ComputeEncode);
}
DEFINE_KERNEL(UnicodeTranscode) {
  return Kernel("the strings converted to valid UTF-8").Prepare(PrepareTranscode).Compute(ComputeTranscode);
}

}  // namespace permafrost
