// Implements the detection of foreign formats by their magic bytes.
#include "io/foreign_format.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace permafrost {
namespace {

using absl::string_view;

struct Format {
  size_t offset;  // Of the magic bytes in the file.
  string_view magic;
  string_view message;
};

constexpr Format kFormats[] = {
    {0, string_view("\x1f\x8b", 2), "is gzip-compressed; decompress it first (gunzip)"},
    {0, string_view("PK\x03\x04", 4),
     "is a zip archive (a .keras or .tflite bundle, or a packed model); unpack it first"},
    {0,
     string_view("\xfd"
                 "7zXZ\0",
                 6),
     "is xz-compressed; decompress it first (unxz)"},
    {0, string_view("BZh", 3), "is bzip2-compressed; decompress it first (bunzip2)"},
    {257, string_view("ustar", 5), "is a tar archive; unpack it first"},
    {0, string_view("\x89HDF\r\n\x1a\n", 8),
     "is an HDF5 file (a Keras .h5 model); save it as a SavedModel and freeze that"},
    {0, string_view("\x08\x01\x12", 3), "is a SavedModel protobuf; pass its folder instead"},
    {0, string_view("version https://git-lfs", 23),
     "is a git-lfs pointer, not the model; fetch the model first (git lfs pull)"},
    {0, string_view("\x93NUMPY", 6), "is a NumPy array, not a model"},
    {0,
     string_view("\x7f"
                 "ELF",
                 4),
     "is a program or library, not a model"},
};

// The magic bytes at the end of LevelDB tables: V1 checkpoints, and the index of V2 checkpoints.
constexpr string_view kTableMagic("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);

// True if the bytes start like an onnx.ModelProto: the IR version, then one of its first text fields or the graph. IR
// versions started at 3 in 2017 and increase by about one per year.
bool LooksLikeOnnx(string_view bytes) {
  constexpr char kFirstIr = 3, kLastIr = 40;
  if (bytes.size() < 4 || bytes[0] != 0x08 || bytes[1] < kFirstIr || bytes[1] > kLastIr) return false;
  constexpr string_view kNextTags("\x12\x1a\x22\x3a\x42", 5);
  return kNextTags.find(bytes[2]) != string_view::npos;
}

bool LooksLikeHtml(string_view bytes) {
  constexpr size_t kLooked = 512;
  const string_view start = absl::StripLeadingAsciiWhitespace(bytes.substr(0, kLooked));
  return absl::StartsWithIgnoreCase(start, "<!doctype html") || absl::StartsWithIgnoreCase(start, "<html");
}

}  // namespace

string_view ForeignFormat(string_view head, string_view tail) {
  for (const Format& format : kFormats) {
    if (head.size() >= format.offset && absl::StartsWith(head.substr(format.offset), format.magic)) {
      return format.message;
    }
  }
  if (LooksLikeOnnx(head)) return "is an ONNX model, not a TensorFlow graph; convert it first";
  if (LooksLikeHtml(head)) return "is an HTML page, not a model; check the download URL";
  if (absl::EndsWith(tail, kTableMagic)) {
    return "is a table of a training checkpoint, which has no graph; freeze it with its graph "
           "(freeze_graph --input_checkpoint)";
  }
  return {};
}

}  // namespace permafrost
