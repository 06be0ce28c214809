// Implements reading and writing of NPY files.
#include "io/formats/npy.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/printable.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
// NumPy's default limit on the length of a header.
constexpr size_t kLongestHeader = 10000;
// More dimensions than TensorFlow (254) or NumPy (64) support.
constexpr int kMostDims = 254;
constexpr size_t kAlignment = 64;

struct ElementCode {
  absl::string_view code;  // Without the byte order.
  DType dtype;
};

constexpr ElementCode kElementCodes[] = {
    {"f4", DType::kFloat},     {"f8", DType::kDouble},      {"f2", DType::kHalf},   {"i1", DType::kInt8},
    {"i2", DType::kInt16},     {"i4", DType::kInt32},       {"i8", DType::kInt64},  {"u1", DType::kUint8},
    {"u2", DType::kUint16},    {"u4", DType::kUint32},      {"u8", DType::kUint64}, {"b1", DType::kBool},
    {"c8", DType::kComplex64}, {"c16", DType::kComplex128},
};

// Strings of fixed width: bytes, or Unicode code points of 4 bytes.
struct TextType {
  char kind = 'S';  // 'S' or 'U', as in NumPy.
  int64_t width = 0;
};
constexpr int64_t kCodePointBytes = 4;
// A string takes 32 bytes in memory, and may have one in the file: this many take 512 MB.
constexpr int64_t kMostStrings = int64_t{1} << 24;
// The lengths of text that NumPy stores fit in 31 bits.
constexpr int64_t kWidestText = INT32_MAX;

struct Header {
  std::optional<DType> dtype;
  TextType text;  // If dtype is kString.
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

// Parses the subset of Python that headers use.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : rest_(text) {}

  absl::StatusOr<Header> Parse() {
    Header header;
    if (!Take("{")) return Malformed();
    while (!Take("}")) {
      PF_ASSIGN_OR_RETURN(const std::string key, Quoted());
      if (!Take(":")) return Malformed();
      if (key == "descr" && !header.dtype.has_value()) {
        PF_ASSIGN_OR_RETURN(header.dtype, ElementType(&header.text));
      } else if (key == "fortran_order" && !header.fortran_order.has_value()) {
        if (Take("False")) {
          header.fortran_order = false;
        } else if (Take("True")) {
          header.fortran_order = true;
        } else {
          return Malformed();
        }
      } else if (key == "shape" && !header.shape.has_value()) {
        PF_ASSIGN_OR_RETURN(header.shape, Dimensions());
      } else {
        return absl::DataLossError(absl::StrCat("NPY header has key '", Printable(key),
                                                "', expected 'descr', 'fortran_order' and "
                                                "'shape', once each"));
      }
      if (!Take(",") && !absl::StartsWith(Next(), "}")) return Malformed();
    }
    if (!Next().empty()) return Malformed();
    return header;
  }

 private:
  absl::Status Malformed() const {
    return absl::DataLossError(absl::StrCat("NPY header is malformed at '", Printable(rest_.substr(0, 20)), "'"));
  }
  absl::string_view Next() {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return rest_;
  }
  bool Take(absl::string_view token) {
    Next();
    return absl::ConsumePrefix(&rest_, token);
  }

  absl::StatusOr<std::string> Quoted() {
    const char quote = Next().empty() ? '\0' : rest_[0];
    if (quote != '\'' && quote != '"') return Malformed();
    const size_t end = rest_.find(quote, 1);
    if (end == absl::string_view::npos) return Malformed();
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  // Sets *text for strings.
  absl::StatusOr<DType> ElementType(TextType* text) {
    if (absl::StartsWith(Next(), "[")) {
      return absl::UnimplementedError("NPY file holds records, expected numbers or strings");
    }
    PF_ASSIGN_OR_RETURN(const std::string descr, Quoted());
    absl::string_view code = descr;
    // The elements of one byte have no byte order.
    if (absl::ConsumePrefix(&code, ">") && (!absl::EndsWith(code, "1") || absl::StartsWith(code, "U"))) {
      return absl::UnimplementedError(absl::StrCat("NPY elements are '", Printable(descr),
                                                   "' (big-endian), expected little-endian; save with "
                                                   "array.astype(array.dtype.newbyteorder('<'))"));
    }
    if (!absl::ConsumePrefix(&code, "<") && !absl::ConsumePrefix(&code, "|")) absl::ConsumePrefix(&code, "=");
    for (const ElementCode& element : kElementCodes) {
      if (element.code == code) return element.dtype;
    }
    if (absl::StartsWith(code, "S") || absl::StartsWith(code, "U")) {
      text->kind = code[0];
      if (absl::SimpleAtoi(code.substr(1), &text->width) && text->width >= 1 && text->width <= kWidestText) {
        return DType::kString;
      }
    }
    const char* hint = code == "O" ? "; save strings with array.astype('S')" : "";
    return absl::UnimplementedError(absl::StrCat("NPY elements are '", Printable(descr),
                                                 "', expected numbers, booleans or strings of fixed width", hint));
  }

  absl::StatusOr<Shape> Dimensions() {
    if (!Take("(")) return Malformed();
    Shape shape;
    while (!Take(")")) {
      const absl::string_view next = Next();
      size_t digits = 0;
      while (digits < next.size() && absl::ascii_isdigit(next[digits])) ++digits;
      int64_t dim;
      if (!absl::SimpleAtoi(next.substr(0, digits), &dim)) return Malformed();
      rest_.remove_prefix(digits);
      Take("L");  // Python 2 wrote long integers with this suffix.
      if (shape.rank() == kMostDims) return absl::DataLossError("NPY shape has more than 254 dimensions");
      shape.AddDim(dim);
      if (!Take(",") && !absl::StartsWith(Next(), ")")) return Malformed();
    }
    return shape;
  }

  absl::string_view rest_;
};

void AppendUtf8(uint32_t code_point, std::string* text) {
  const auto last = [](uint32_t bits) { return static_cast<char>(0x80 | (bits & 0x3f)); };
  if (code_point < 0x80) {
    text->push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    *text += {static_cast<char>(0xc0 | code_point >> 6), last(code_point)};
  } else if (code_point < 0x10000) {
    *text += {static_cast<char>(0xe0 | code_point >> 12), last(code_point >> 6), last(code_point)};
  } else {
    *text +=
        {static_cast<char>(0xf0 | code_point >> 18), last(code_point >> 12), last(code_point >> 6), last(code_point)};
  }
}

// Converts code points of 4 bytes, little-endian, to UTF-8.
absl::StatusOr<std::string> ToUtf8(absl::string_view code_points) {
  std::string text;
  for (size_t i = 0; i < code_points.size(); i += kCodePointBytes) {
    uint32_t code_point = 0;
    for (size_t byte = kCodePointBytes; byte-- > 0;) {
      code_point = code_point << 8 | static_cast<unsigned char>(code_points[i + byte]);
    }
    // Unicode ends at 0x10ffff, and has no characters at the surrogates of UTF-16.
    if (code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff)) {
      return absl::DataLossError(absl::StrCat("NPY array of text holds ", code_point, ", which is no code point"));
    }
    AppendUtf8(code_point, &text);
  }
  return text;
}

// Reads strings of fixed width. As in NumPy, zeros at the end of a string are padding.
absl::StatusOr<Tensor> ReadStrings(const TextType& type, const Shape& shape, absl::string_view elements) {
  PF_ASSIGN_OR_RETURN(const int64_t count, shape.CheckedNumElements());
  if (count > kMostStrings) {
    return absl::ResourceExhaustedError(
        absl::StrCat("NPY array has ", count, " strings, expected at most ", kMostStrings));
  }
  const int64_t unit = type.kind == 'U' ? kCodePointBytes : 1;
  const int64_t bytes = type.width * unit;  // Of a string. Below 2^33, so the product with the count is exact.
  if (static_cast<uint64_t>(count * bytes) != elements.size()) {
    return absl::DataLossError(absl::StrCat("NPY array of shape ", shape.ToString(), " has ", elements.size(),
                                            " bytes, expected ", count, " strings of ", bytes));
  }
  std::vector<std::string> strings;
  strings.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    absl::string_view text = elements.substr(static_cast<size_t>(i * bytes), static_cast<size_t>(bytes));
    const size_t last = text.find_last_not_of('\0');
    const size_t units = last == absl::string_view::npos ? 0 : last / static_cast<size_t>(unit) + 1;
    text = text.substr(0, units * static_cast<size_t>(unit));
    if (type.kind == 'S') {
      strings.emplace_back(text);
      continue;
    }
    PF_ASSIGN_OR_RETURN(std::string converted, ToUtf8(text));
    strings.push_back(std::move(converted));
  }
  return Tensor::FromStrings(shape, std::move(strings));
}

}  // namespace

absl::StatusOr<Tensor> ParseNpy(absl::string_view file, Owner owner) {
  absl::string_view rest = file;
  if (!absl::ConsumePrefix(&rest, kMagic))
    return absl::DataLossError("not an NPY file: it does not start with \\x93NUMPY");
  if (rest.size() < 2) return absl::DataLossError("NPY file is truncated within its version");
  const int major = static_cast<unsigned char>(rest[0]);
  if (major < 1 || major > 3) {
    return absl::UnimplementedError(absl::StrCat("NPY version is ", major, ", expected 1, 2 or 3"));
  }
  rest.remove_prefix(2);
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (rest.size() < length_bytes) return absl::DataLossError("NPY file is truncated within the length of its header");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= size_t{static_cast<unsigned char>(rest[i])} << (8 * i);
  rest.remove_prefix(length_bytes);
  if (length > kLongestHeader) {
    return absl::DataLossError(absl::StrCat("NPY header has ", length, " bytes, expected at most ", kLongestHeader));
  }
  if (length > rest.size()) {
    return absl::DataLossError(
        absl::StrCat("NPY file is truncated: its header has ", length, " bytes, and ", rest.size(), " are left"));
  }
  PF_ASSIGN_OR_RETURN(const Header header, HeaderParser(rest.substr(0, length)).Parse());
  rest.remove_prefix(length);
  if (!header.dtype.has_value() || !header.fortran_order.has_value() || !header.shape.has_value()) {
    return absl::DataLossError("NPY header lacks a key, expected 'descr', 'fortran_order' and 'shape'");
  }
  if (*header.fortran_order && header.shape->rank() > 1) {
    return absl::UnimplementedError(
        "NPY array is in column-major order (fortran_order: True), expected row-major; save "
        "numpy.ascontiguousarray(array)");
  }
  if (*header.dtype == DType::kString) return ReadStrings(header.text, *header.shape, rest);
  PF_ASSIGN_OR_RETURN(const int64_t count, header.shape->CheckedNumElements());
  int64_t bytes;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(SizeOf(*header.dtype)), &bytes) ||
      static_cast<uint64_t>(bytes) != rest.size()) {
    return absl::DataLossError(absl::StrCat("NPY array of shape ", header.shape->ToString(), " and type ",
                                            DTypeName(*header.dtype), " has ", rest.size(), " bytes, expected ", count,
                                            " elements of ", SizeOf(*header.dtype)));
  }
  if (*header.dtype == DType::kBool &&
      rest.find_first_not_of(absl::string_view("\0\1", 2)) != absl::string_view::npos) {
    return absl::DataLossError("NPY array of booleans holds a byte that is neither 0 nor 1");
  }
  return Tensor::FromBytes(*header.dtype, *header.shape, rest, std::move(owner));
}

absl::Status WriteNpy(const Tensor& tensor, ByteSink* sink) {
  absl::string_view code;
  for (const ElementCode& element : kElementCodes) {
    if (element.dtype == tensor.dtype()) code = element.code;
  }
  if (code.empty()) {
    return absl::UnimplementedError(absl::StrCat("NPY does not support elements of type ", DTypeName(tensor.dtype())));
  }
  const bool is_one_byte = SizeOf(tensor.dtype()) == 1;
  std::string header =
      absl::StrCat("{'descr': '", is_one_byte ? "|" : "<", code, "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(tensor.shape().dims(), ", "), tensor.shape().rank() == 1 ? ",), }" : "), }");
  const size_t prefix = kMagic.size() + 4;
  const size_t unpadded = prefix + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header.push_back('\n');
  std::string start(kMagic);
  start += {'\x01', '\x00', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  PF_RETURN_IF_ERROR(sink->Append(start + header));
  return sink->Append(tensor.bytes());
}

}  // namespace permafrost
