// Tests of NPY files: round trips, files written by numpy, and all kinds of damage.
#include "io/formats/npy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

// Returns a version 1.0 file with this header, unpadded, and these elements.
std::string File(const std::string& header, const std::string& elements, char version = 1) {
  std::string file("\x93NUMPY", 6);
  file += {version, '\0', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  if (version > 1) file += std::string(2, '\0');
  return file + header + elements;
}

std::string Error(const std::string& file) { return std::string(ParseNpy(file, nullptr).status().message()); }

const char kHeader[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n";
const std::string& kElements = *new std::string("\0\0\x80\x3f\0\0\0\x40", 8);

TEST(Npy, ReadsAllVersions) {
  for (const char version : {1, 2, 3}) {
    const std::string file = File(kHeader, kElements, version);
    const absl::StatusOr<Tensor> tensor = ParseNpy(file, nullptr);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(*tensor, Tensor::FromVector<float>({2, 1}, {1, 2}));
    EXPECT_EQ(tensor->bytes().data(), file.data() + file.size() - 8) << "the elements were copied";
  }
}

TEST(Npy, ReadsOtherSpellingsOfTheHeader) {
  EXPECT_TRUE(ParseNpy(File("{\"shape\":(2L,),\"descr\":\"=f4\",\"fortran_order\":True}", kElements), nullptr).ok());
  const absl::StatusOr<Tensor> scalar =
      ParseNpy(File("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\x01"), nullptr);
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_EQ(scalar->shape(), Shape());
}

TEST(Npy, WritesWhatItReads) {
  const std::vector<Tensor> tensors = {
      Tensor::FromVector<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
      Tensor::FromVector<int64_t>({3}, {-1, 0, INT64_MAX}),
      Tensor::Scalar<double>(0.5),
      Tensor::FromVector<uint8_t>({0, 4}, {}),
      Tensor::FromVector<Half>({1}, {Half{0x3c00}}),
      Tensor::FromVector<std::complex<float>>({1}, {{1, 2}}),
  };
  for (const Tensor& tensor : tensors) {
    StringSink sink;
    ASSERT_TRUE(WriteNpy(tensor, &sink).ok());
    EXPECT_EQ((sink.text().size() - tensor.bytes().size()) % 64, 0u);
    const absl::StatusOr<Tensor> read = ParseNpy(sink.text(), nullptr);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, tensor);
  }
}

TEST(Npy, RefusesTypesThatNumpyDoesNotHave) {
  StringSink sink;
  EXPECT_EQ(WriteNpy(Tensor::FromStrings({1}, {"a"}), &sink).code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(sink.text().empty());
}

TEST(Npy, SaysWhatIsWrong) {
  const std::string e = kElements;
  EXPECT_EQ(Error(""), "not an NPY file: it does not start with \\x93NUMPY");
  EXPECT_EQ(Error(File(kHeader, e, 4)), "NPY version is 4, expected 1, 2 or 3");
  EXPECT_TRUE(absl::StrContains(Error(File("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1)}", e)),
                                "column-major order (fortran_order: True)"));
  EXPECT_TRUE(
      absl::StrContains(Error(File("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", e)), "big-endian"));
  EXPECT_TRUE(absl::StrContains(Error(File("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", e)),
                                "'|O', expected numbers, booleans or strings of fixed width; save strings"));
  EXPECT_TRUE(
      absl::StrContains(Error(File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", e)), "records"));
  EXPECT_TRUE(absl::StrContains(Error(File("{'descr': '<f4', 'fortran_order': False}", e)), "lacks a key"));
  EXPECT_TRUE(absl::StrContains(Error(File("{'descr': '<f4', 'shape': (2,), 'shape': (2,)}", e)), "key 'shape'"));
  EXPECT_TRUE(
      absl::StrContains(Error(File("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", e)), "malformed at '0,"));
  EXPECT_TRUE(
      absl::StrContains(Error(File("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", e)), "malformed"));
  EXPECT_TRUE(absl::StrContains(Error(File("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", e)),
                                "shape [3] and type float has 8 bytes, expected 3 elements of 4"));
  EXPECT_FALSE(
      ParseNpy(File("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8)}", e), nullptr).ok());
  EXPECT_TRUE(absl::StrContains(Error(File("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\x02")),
                                "neither 0 nor 1"));
  std::string long_header = File(kHeader, e, 2);
  long_header[10] = '\x7f';
  EXPECT_TRUE(absl::StrContains(Error(long_header), "expected at most 10000"));
  EXPECT_TRUE(absl::StrContains(
      Error(File(absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", std::string(900, '1'), ",)}"), e)),
      "malformed"));
}

std::string TextFile(const std::string& descr, const std::string& shape, const std::string& elements) {
  return File(absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': ", shape, "}"), elements);
}

TEST(Npy, ReadsStrings) {
  const absl::StatusOr<Tensor> bytes =
      ParseNpy(TextFile("|S3", "(2, 2)", std::string("abcd\0\0\0\0\0\0e\xff", 12)), nullptr);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, Tensor::FromStrings({2, 2}, {"abc", "d", "", std::string("\0e\xff", 3)}));
  // One, two, three and four bytes in UTF-8; a zero inside.
  const std::string points("a\0\0\0\xe4\0\0\0\xac\x20\0\0\x00\xf6\x01\0\0\0\0\0b\0\0\0\0\0\0\0\0\0\0\0", 32);
  const absl::StatusOr<Tensor> text = ParseNpy(TextFile("<U4", "(2,)", points), nullptr);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, Tensor::FromStrings({2}, {"a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", std::string("\0b", 2)}));
  EXPECT_TRUE(ParseNpy(TextFile("|S5", "(0,)", ""), nullptr).ok());
}

TEST(Npy, RefusesDamagedStrings) {
  EXPECT_TRUE(absl::StrContains(Error(TextFile("|S3", "(2,)", "abcde")), "has 5 bytes, expected 2 strings of 3"));
  EXPECT_TRUE(absl::StrContains(Error(TextFile(">U1", "(1,)", "abcd")), "big-endian"));
  EXPECT_TRUE(absl::StrContains(Error(TextFile("<U1", "(1,)", "abcd")), "which is no code point"));
  EXPECT_TRUE(
      absl::StrContains(Error(TextFile("<U1", "(1,)", std::string("\0\xd8\0\0", 4))), "which is no code point"));
  EXPECT_TRUE(absl::StrContains(Error(TextFile("|S1", "(16777217,)", "")), "expected at most 16777216"));
  for (const char* descr : {"|S0", "|S", "|S-1", "|S3000000000", "<U", "|SU", "|S 3"}) {
    EXPECT_TRUE(absl::StrContains(Error(TextFile(descr, "(1,)", "")), "expected")) << descr;
  }
  EXPECT_FALSE(ParseNpy(TextFile("<U2147483647", "(16777216,)", ""), nullptr).ok());
}

TEST(Npy, RefusesEveryTruncation) {
  const std::string file = File(kHeader, kElements);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseNpy(absl::string_view(file).substr(0, size), nullptr).ok()) << size;
  }
  EXPECT_FALSE(ParseNpy(file + "x", nullptr).ok());
}

TEST(Npy, SurvivesEveryBitFlip) {
  const std::string file = File(kHeader, kElements);
  for (size_t i = 0; i < file.size() * 8; ++i) {
    std::string damaged = file;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    const absl::StatusOr<Tensor> tensor = ParseNpy(damaged, nullptr);
    if (tensor.ok() && tensor->dtype() != DType::kString) {
      EXPECT_EQ(tensor->bytes().size(), kElements.size());
    } else if (!tensor.ok()) {
      EXPECT_FALSE(tensor.status().message().empty());
    }
  }
}

}  // namespace
}  // namespace permafrost
