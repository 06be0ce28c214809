// Ops on whole strings: StringLower, StringUpper, StringStrip, StringLength, StringJoin, ReduceJoin, Substr, AsString,
// StringToNumber, regular expressions and hash buckets.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/regular_expression.h"
#include "runtime_check/kernels/string_hash.h"

namespace permafrost {
namespace {

using Strings = std::vector<std::string>;

const Strings& StringsOf(ComputeContext* context, int i) { return context->input_strings(i); }

// Computes output[i] = function(input[i]); function(const std::string&) returns a string.
template <typename Function>
absl::Status MapStrings(ComputeContext* context, Function function) {
  const Strings& input = StringsOf(context, 0);
  Strings& output = context->output_strings(0);
  for (size_t i = 0; i < input.size(); ++i) output[i] = function(input[i]);
  return absl::OkStatus();
}

// --- Case, spaces, length --------------------------------------------------------------------------------------------

// Changes the case of ASCII letters. With encoding utf-8 TensorFlow changes letters of all scripts.
absl::Status ComputeCase(ComputeContext* context, char (*change)(unsigned char)) {
  PF_ASSIGN_OR_RETURN(const std::string encoding, StringAttr(context->node(), "encoding"));
  if (!encoding.empty()) {
    if (encoding != "utf-8") {
      return absl::InvalidArgumentError(absl::StrCat("attr 'encoding' is '", encoding, "', expected '' or 'utf-8'"));
    }
    for (const std::string& text : StringsOf(context, 0)) {
      const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
      if (std::all_of(text.begin(), text.end(), is_ascii)) continue;
      return absl::UnimplementedError("changes the case of letters beyond ASCII (attr 'encoding' is 'utf-8')");
    }
  }
  return MapStrings(context, [change](const std::string& text) {
    std::string result = text;
    for (char& c : result) c = change(static_cast<unsigned char>(c));
    return result;
  });
}
absl::Status ComputeLower(ComputeContext* context) { return ComputeCase(context, &absl::ascii_tolower); }
absl::Status ComputeUpper(ComputeContext* context) { return ComputeCase(context, &absl::ascii_toupper); }

absl::Status ComputeStrip(ComputeContext* context) {
  return MapStrings(context, [](const std::string& text) { return std::string(absl::StripAsciiWhitespace(text)); });
}

// Returns true if a byte begins a UTF-8 character.
bool IsLead(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

absl::StatusOr<bool> CountsCharacters(const Node& node) {
  PF_ASSIGN_OR_RETURN(const std::string unit, StringAttr(node, "unit"));
  if (unit == "UTF8_CHAR") return true;
  if (unit == "BYTE") return false;
  return absl::InvalidArgumentError(absl::StrCat("attr 'unit' is '", unit, "', expected BYTE or UTF8_CHAR"));
}

absl::Status ComputeLength(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool in_characters, CountsCharacters(context->node()));
  const Strings& input = StringsOf(context, 0);
  int32_t* output = context->output<int32_t>(0);
  for (size_t i = 0; i < input.size(); ++i) {
    output[i] = static_cast<int32_t>(in_characters
                                         ? static_cast<size_t>(std::count_if(input[i].begin(), input[i].end(), &IsLead))
                                         : input[i].size());
  }
  return absl::OkStatus();
}

// --- Joining ---------------------------------------------------------------------------------------------------------

// All inputs have one shape, or are scalars.
absl::Status PrepareJoin(PrepareContext* context) {
  Shape shape;
  for (int i = 0; i < context->num_inputs(); ++i) {
    const Shape& input = context->input_shape(i);
    if (input.rank() == 0) continue;
    if (shape.rank() != 0 && input != shape) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", input.ToString(),
                                                     ", expected [] or ", shape.ToString(),
                                                     " as of the inputs before"));
    }
    shape = input;
  }
  context->SetOutputShape(0, shape);
  return absl::OkStatus();
}

absl::Status ComputeJoin(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::string separator, StringAttr(context->node(), "separator"));
  Strings& output = context->output_strings(0);
  const auto part = [&](int input, size_t i) -> const std::string& {
    const Strings& strings = StringsOf(context, input);
    return strings[context->input_shape(input).rank() == 0 ? 0 : i];
  };
  // A scalar may be repeated in each result, so sizes are checked first.
  int64_t bytes = 0;
  for (size_t i = 0; i < output.size(); ++i) {
    for (int k = 0; k < context->num_inputs(); ++k) {
      bytes += static_cast<int64_t>(part(k, i).size() + separator.size());
    }
  }
  PF_ASSIGN_OR_RETURN(const Reservation reservation, Reservation::Take(&context->budget(), bytes, "joined strings"));
  for (size_t i = 0; i < output.size(); ++i) {
    std::string joined;
    for (int k = 0; k < context->num_inputs(); ++k) {
      if (k > 0) joined += separator;
      joined += part(k, i);
    }
    output[i] = std::move(joined);
  }
  return absl::OkStatus();
}

struct ReduceState : KernelState {
  std::vector<int> axes;  // In the order in which strings are joined: the last changes fastest.
};

absl::Status PrepareReduce(PrepareContext* context) {
  const Shape& shape = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const bool keeps, BoolAttr(context->node(), "keep_dims"));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntegerVectorInput(context, 1));
  auto state = std::make_unique<ReduceState>();
  std::vector<bool> is_joined(static_cast<size_t>(shape.rank()));
  for (const int64_t axis : axes) {
    PF_ASSIGN_OR_RETURN(const int resolved, ResolveAxis(axis, shape.rank()));
    if (is_joined[static_cast<size_t>(resolved)]) {
      return absl::InvalidArgumentError(absl::StrCat("axis ", resolved, " is named twice"));
    }
    is_joined[static_cast<size_t>(resolved)] = true;
    state->axes.push_back(resolved);
  }
  std::reverse(state->axes.begin(), state->axes.end());  // The first that is named is joined first.
  Shape output = Shape();
  for (int d = 0; d < shape.rank(); ++d) {
    if (!is_joined[static_cast<size_t>(d)]) {
      output.AddDim(shape.dim(d));
    } else if (keeps) {
      output.AddDim(1);
    }
  }
  context->SetOutputShape(0, output);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeReduce(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::string separator, StringAttr(context->node(), "separator"));
  const std::vector<int>& axes = context->state<ReduceState>().axes;
  const Shape& shape = context->input_shape(0);
  const Strings& input = StringsOf(context, 0);
  Strings& output = context->output_strings(0);
  if (axes.empty()) {
    output = input;
    return absl::OkStatus();
  }
  if (input.empty()) {
    for (std::string& text : output) text.clear();
    return absl::OkStatus();
  }
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()), 1);
  for (int d = shape.rank() - 2; d >= 0; --d) strides[d] = strides[d + 1] * shape.dim(d + 1);
  std::vector<int> kept;
  int64_t joined = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) kept.push_back(d);
  }
  for (const int d : axes) joined *= shape.dim(d);
  const auto offset = [&](const std::vector<int>& dims, int64_t i) {
    int64_t result = 0;
    for (size_t k = dims.size(); k > 0; --k) {
      const int64_t size = shape.dim(dims[k - 1]);
      result += i % size * strides[static_cast<size_t>(dims[k - 1])];
      i /= size;
    }
    return result;
  };
  for (size_t i = 0; i < output.size(); ++i) {
    std::string text;
    const int64_t start = offset(kept, static_cast<int64_t>(i));
    for (int64_t k = 0; k < joined; ++k) {
      if (k > 0) text += separator;
      text += input[static_cast<size_t>(start + offset(axes, k))];
    }
    output[i] = std::move(text);
  }
  return absl::OkStatus();
}

// --- Parts of strings ------------------------------------------------------------------------------------------------

// Inputs: (input, pos, len), with positions and lengths for each string, or one for all.
absl::Status PrepareSubstr(PrepareContext* context) {
  const Shape &strings = context->input_shape(0), &positions = context->input_shape(1);
  if (positions != context->input_shape(2) || (positions.rank() != 0 && positions != strings)) {
    return absl::UnimplementedError(absl::StrCat("strings of shape ", strings.ToString(), ", positions of shape ",
                                                 positions.ToString(), " and lengths of shape ",
                                                 context->input_shape(2).ToString(),
                                                 "; expected one position and length for all, or for each"));
  }
  return SameShape(context);
}

absl::Status ComputeSubstr(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool in_characters, CountsCharacters(context->node()));
  const Strings& input = StringsOf(context, 0);
  Strings& output = context->output_strings(0);
  const bool is_shared = context->input_shape(1).rank() == 0;
  absl::Status status;
  DispatchOn<int32_t, int64_t>(context->input_at(1).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < input.size(); ++i) {
      const std::string& text = input[i];
      const int64_t position = context->input<T>(1)[is_shared ? 0 : i],
                    length = context->input<T>(2)[is_shared ? 0 : i];
      const int64_t size =
          in_characters ? std::count_if(text.begin(), text.end(), &IsLead) : static_cast<int64_t>(text.size());
      const int64_t begin = position < 0 ? position + size : position;
      if (begin < 0 || begin > size || length < 0) {
        status = absl::InvalidArgumentError(absl::StrCat("position ", position, " and length ", length, " at element ",
                                                         i, ", where the string has ", size));
        return;
      }
      const int64_t end = begin + std::min(length, size - begin);
      if (!in_characters) {
        output[i] = text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
        continue;
      }
      int64_t number = -1;
      std::string part;
      for (const char c : text) {
        if (IsLead(c)) ++number;
        if (number >= begin && number < end) part.push_back(c);
      }
      output[i] = std::move(part);
    }
  });
  return status;
}

// --- Numbers ---------------------------------------------------------------------------------------------------------

struct FormatState : KernelState {
  std::string format;  // For printf, without the letter of the type.
  char letter = 0;     // Of floats.
};

absl::Status PrepareAsString(PrepareContext* context) {
  const Node& node = context->node();
  PF_ASSIGN_OR_RETURN(const int64_t precision, IntAttr(node, "precision"));
  PF_ASSIGN_OR_RETURN(const bool is_scientific, BoolAttr(node, "scientific"));
  PF_ASSIGN_OR_RETURN(const bool is_shortest, BoolAttr(node, "shortest"));
  PF_ASSIGN_OR_RETURN(const int64_t width, IntAttr(node, "width"));
  PF_ASSIGN_OR_RETURN(const std::string fill, StringAttr(node, "fill"));
  // Limits the width, which comes from the file; no number needs more digits.
  constexpr int64_t kMostDigits = 1000;
  if (width > kMostDigits || precision > kMostDigits) {
    return absl::InvalidArgumentError(
        absl::StrCat("'width' is ", width, " and 'precision' ", precision, ", expected at most ", kMostDigits));
  }
  if (fill.size() > 1 || (!fill.empty() && !absl::StrContains(" +-0", fill)) || (is_scientific && is_shortest)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'fill' is '", fill, "', expected one of ' +-0'; scientific and shortest exclude each other"));
  }
  auto state = std::make_unique<FormatState>();
  state->format = absl::StrCat("%", fill);
  if (width > -1) absl::StrAppend(&state->format, width);
  const DType type = context->input_type(0);
  const bool is_floating =
      type == DType::kFloat || type == DType::kDouble || type == DType::kHalf || type == DType::kBFloat16;
  if (is_floating) {
    if (precision > -1) absl::StrAppend(&state->format, ".", precision);
    state->letter = is_scientific ? 'e' : is_shortest ? 'g' : 'f';
  } else if (is_scientific || is_shortest || precision > -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'precision', 'scientific' and 'shortest' have no meaning for ", DTypeName(type)));
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

template <typename... Values>
std::string Formatted(const std::string& format, Values... values) {
  const int size = std::snprintf(nullptr, 0, format.c_str(), values...);
  std::string result(static_cast<size_t>(std::max(size, 0)) + 1, '\0');
  std::snprintf(result.data(), result.size(), format.c_str(), values...);
  result.pop_back();
  return result;
}

absl::Status ComputeAsString(ComputeContext* context) {
  const auto& state = context->state<FormatState>();
  Strings& output = context->output_strings(0);
  if (context->input_at(0).dtype == DType::kString) {
    output = StringsOf(context, 0);
    return absl::OkStatus();
  }
  DispatchOn<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, Half, BFloat16, float,
             double>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* input = context->input<T>(0);
    for (size_t i = 0; i < output.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        output[i] = input[i] ? "true" : "false";
      } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
        output[i] = Formatted(state.format + "lld", static_cast<long long>(input[i]));  // NOLINT: printf's type.
      } else if constexpr (std::is_integral_v<T>) {
        output[i] = Formatted(state.format + "llu", static_cast<unsigned long long>(input[i]));  // NOLINT: the same.
      } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        output[i] = Formatted(state.format + state.letter, static_cast<double>(ToFloat(input[i])));
      } else {
        output[i] = Formatted(state.format + state.letter, static_cast<double>(input[i]));
      }
    }
  });
  return absl::OkStatus();
}

template <typename T>
bool ParseNumber(const std::string& text, T* number) {
  const absl::string_view digits = absl::StripAsciiWhitespace(text);
  if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(digits, number);
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::SimpleAtod(digits, number);
  } else {
    return absl::SimpleAtoi(digits, number);
  }
}

absl::Status ComputeToNumber(ComputeContext* context) {
  const Strings& input = StringsOf(context, 0);
  absl::Status status;
  DispatchOn<float, double, int32_t, int64_t, uint32_t, uint64_t>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* output = context->output<T>(0);
    for (size_t i = 0; i < input.size() && status.ok(); ++i) {
      if (ParseNumber<T>(input[i], &output[i])) continue;
      status = absl::InvalidArgumentError(absl::StrCat("element ", i, " is '", absl::CHexEscape(input[i].substr(0, 80)),
                                                       "', expected a ", DTypeName(context->output_at(0).dtype)));
    }
  });
  return status;
}

// --- Regular expressions ---------------------------------------------------------------------------------------------

struct ExpressionState : KernelState {
  RegularExpression expression;
  std::string rewrite;
};

absl::Status PrepareStaticExpression(PrepareContext* context) {
  auto state = std::make_unique<ExpressionState>();
  PF_ASSIGN_OR_RETURN(const std::string pattern, StringAttr(context->node(), "pattern"));
  PF_ASSIGN_OR_RETURN(state->expression, RegularExpression::Compile(pattern));
  if (context->node().op() == ops::kStaticRegexReplace) {
    PF_ASSIGN_OR_RETURN(state->rewrite, StringAttr(context->node(), "rewrite"));
    PF_RETURN_IF_ERROR(state->expression.CheckRewrite(state->rewrite));
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status PrepareExpression(PrepareContext* context) {
  for (int i = 1; i < context->num_inputs(); ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 0));
  return SameShape(context);
}

absl::Status Replace(ComputeContext* context, const RegularExpression& expression, const std::string& rewrite) {
  PF_ASSIGN_OR_RETURN(const bool all, BoolAttr(context->node(), "replace_global"));
  const Strings& input = StringsOf(context, 0);
  Strings& output = context->output_strings(0);
  std::vector<Reservation> reservations;
  for (size_t i = 0; i < input.size(); ++i) {
    // A rewrite may insert the match several times, at each byte of the text.
    std::string replaced = expression.Replace(input[i], rewrite, all);
    PF_ASSIGN_OR_RETURN(
        Reservation reservation,
        Reservation::Take(&context->budget(), static_cast<int64_t>(replaced.size()), "a rewritten text"));
    reservations.push_back(std::move(reservation));
    output[i] = std::move(replaced);
  }
  return absl::OkStatus();
}

absl::Status ComputeStaticReplace(ComputeContext* context) {
  const auto& state = context->state<ExpressionState>();
  return Replace(context, state.expression, state.rewrite);
}

absl::Status ComputeReplace(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const RegularExpression expression, RegularExpression::Compile(StringsOf(context, 1)[0]));
  PF_RETURN_IF_ERROR(expression.CheckRewrite(StringsOf(context, 2)[0]));
  return Replace(context, expression, StringsOf(context, 2)[0]);
}

absl::Status Match(ComputeContext* context, const RegularExpression& expression) {
  const Strings& input = StringsOf(context, 0);
  for (size_t i = 0; i < input.size(); ++i) context->output<bool>(0)[i] = expression.MatchesAll(input[i]);
  return absl::OkStatus();
}

absl::Status ComputeStaticMatch(ComputeContext* context) {
  return Match(context, context->state<ExpressionState>().expression);
}

absl::Status ComputeMatch(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const RegularExpression expression, RegularExpression::Compile(StringsOf(context, 1)[0]));
  return Match(context, expression);
}

// --- Hashes ----------------------------------------------------------------------------------------------------------

struct BucketState : KernelState {
  uint64_t buckets = 1;
  uint64_t key[2] = {0, 0};
};

absl::Status PrepareBuckets(PrepareContext* context) {
  auto state = std::make_unique<BucketState>();
  PF_ASSIGN_OR_RETURN(const int64_t buckets, IntAttr(context->node(), "num_buckets"));
  if (buckets < 1) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'num_buckets' is ", buckets, ", expected 1 or more"));
  }
  state->buckets = static_cast<uint64_t>(buckets);
  if (context->node().op() == ops::kStringToHashBucketStrong) {
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> key, IntListAttr(context->node(), "key"));
    if (key.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("attr 'key' has ", key.size(), " entries, expected 2"));
    }
    for (size_t i = 0; i < 2; ++i) state->key[i] = static_cast<uint64_t>(key[i]);
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

template <typename Hash>
absl::Status FillBuckets(ComputeContext* context, Hash hash) {
  const Strings& input = StringsOf(context, 0);
  const auto& state = context->state<BucketState>();
  int64_t* output = context->output<int64_t>(0);
  for (size_t i = 0; i < input.size(); ++i) output[i] = static_cast<int64_t>(hash(input[i]) % state.buckets);
  return absl::OkStatus();
}

absl::Status ComputeFastBuckets(ComputeContext* context) { return FillBuckets(context, &FarmFingerprint); }
absl::Status ComputeOldBuckets(ComputeContext* context) { return FillBuckets(context, &MurmurHash); }
absl::Status ComputeStrongBuckets(ComputeContext* context) {
  const uint64_t* key = context->state<BucketState>().key;
  return FillBuckets(context, [key](absl::string_view text) { return SipHash(key[0], key[1], text); });
}

std::vector<DType> PrintableTypes() {
  std::vector<DType> types = NumberTypes();
  types.push_back(DType::kBool);
  types.push_back(DType::kString);
  return types;
}

}  // namespace

DEFINE_KERNEL(StringLower) {
  return Kernel("the strings in lower case; ASCII letters only").Prepare(SameShape).Compute(ComputeLower);
}
DEFINE_KERNEL(StringUpper) {
  return Kernel("the strings in upper case; ASCII letters only").Prepare(SameShape).Compute(ComputeUpper);
}
DEFINE_KERNEL(StringStrip) {
  return Kernel("the strings without leading and trailing white space").Prepare(SameShape).Compute(ComputeStrip);
}
DEFINE_KERNEL(StringLength) {
  return Kernel("the length of each string in bytes or UTF-8 characters").Prepare(SameShape).Compute(ComputeLength);
}
DEFINE_KERNEL(StringJoin) {
  return Kernel("the strings of the inputs, joined with a separator").Prepare(PrepareJoin).Compute(ComputeJoin);
}
DEFINE_KERNEL(ReduceJoin) {
  return Kernel("the strings along the axes, joined with a separator").Prepare(PrepareReduce).Compute(ComputeReduce);
}
DEFINE_KERNEL(Substr) {
  return Kernel("the substring of len bytes or UTF-8 characters at pos of each string")
      .Prepare(PrepareSubstr)
      .Compute(ComputeSubstr);
}
DEFINE_KERNEL(AsString) {
  return Kernel("the numbers formatted as strings")
      .TypeNumbers("T", PrintableTypes())
      .Prepare(PrepareAsString)
      .Compute(ComputeAsString);
}
DEFINE_KERNEL(StringToNumber) {
  return Kernel("the strings parsed as numbers").Prepare(SameShape).Compute(ComputeToNumber);
}
DEFINE_KERNEL(StaticRegexReplace) {
  return Kernel("the strings with matches of the pattern replaced")
      .Prepare(PrepareStaticExpression)
      .Compute(ComputeStaticReplace);
}
DEFINE_KERNEL(RegexReplace) {
  return Kernel("the strings with matches of the pattern replaced").Prepare(PrepareExpression).Compute(ComputeReplace);
}
DEFINE_KERNEL(StaticRegexFullMatch) {
  return Kernel("whether the pattern matches the whole string")
      .Prepare(PrepareStaticExpression)
      .Compute(ComputeStaticMatch);
}
DEFINE_KERNEL(RegexFullMatch) {
  return Kernel("whether the pattern matches the whole string").Prepare(PrepareExpression).Compute(ComputeMatch);
}
DEFINE_KERNEL(StringToHashBucketFast) {
  return Kernel("the FarmHash fingerprint of each string, modulo num_buckets")
      .Prepare(PrepareBuckets)
      .Compute(ComputeFastBuckets);
}
DEFINE_KERNEL(StringToHashBucketStrong) {
  return Kernel("the SipHash of each string under a key, modulo num_buckets")
      .Prepare(PrepareBuckets)
      .Compute(ComputeStrongBuckets);
}
DEFINE_KERNEL(StringToHashBucket) {
  return Kernel("the MurmurHash of each string, modulo num_buckets").Prepare(PrepareBuckets).Compute(ComputeOldBuckets);
}

}  // namespace permafrost
