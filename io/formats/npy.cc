// Implements reading and writing of NPY files.
#include "io/formats/npy.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
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

struct Header {
  std::optional<DType> dtype;
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
        PF_ASSIGN_OR_RETURN(header.dtype, ElementType());
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
        return absl::DataLossError(absl::StrCat("NPY header has key '", key,
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
    return absl::DataLossError(absl::StrCat("NPY header is malformed at '", rest_.substr(0, 20), "'"));
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

  absl::StatusOr<DType> ElementType() {
    if (absl::StartsWith(Next(), "[")) return absl::UnimplementedError("NPY file holds records, expected numbers");
    PF_ASSIGN_OR_RETURN(const std::string descr, Quoted());
    absl::string_view code = descr;
    if (absl::ConsumePrefix(&code, ">") && !absl::EndsWith(code, "1")) {
      return absl::UnimplementedError(absl::StrCat("NPY elements are '", descr,
                                                   "' (big-endian), expected little-endian; save with "
                                                   "array.astype(array.dtype.newbyteorder('<'))"));
    }
    if (!absl::ConsumePrefix(&code, "<") && !absl::ConsumePrefix(&code, "|")) absl::ConsumePrefix(&code, "=");
    for (const ElementCode& element : kElementCodes) {
      if (element.code == code) return element.dtype;
    }
    return absl::UnimplementedError(absl::StrCat("NPY elements are '", descr, "', expected numbers or booleans"));
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
