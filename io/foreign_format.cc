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
    {0,
     string_view("\xfd"
                 "7zXZ\0",
                 6),
     "is xz-compressed; decompress it first (unxz)"},
    {0, string_view("BZh", 3), "is bzip2-compressed; decompress it first (bunzip2)"},
    {257, string_view("ustar", 5), "is a tar archive; unpack it first"},
    {0, string_view("\x89HDF\r\n\x1a\n", 8),
     "is an HDF5 file, as Keras writes (.h5); export it in Python: "
     "keras.models.load_model('model.h5').export('folder'), and pass the folder"},
    {0, string_view("\x08\x01\x12", 3), "is a SavedModel protobuf; pass its folder instead"},
    {0, string_view("version https://git-lfs", 23),
     "is a git-lfs pointer, not the model; fetch the model first (git lfs pull)"},
    {0, string_view("\x93NUMPY", 6), "is a NumPy array, not a model"},
    {0, string_view("GGUF", 4), "is a GGUF file, which has weights and no graph; export the model from its library"},
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

// Zip archives of known programs, by the name of an entry, which is in the first header or in the directory at the end.
struct Archive {
  string_view entry;
  string_view message;
};

constexpr Archive kArchives[] = {
    {"model.weights.h5",
     "is a Keras model (.keras); export it in Python: keras.models.load_model('model.keras').export('folder'), and "
     "pass "
     "the folder"},
    {"/data.pkl",
     "is a PyTorch model (.pt); convert it in Python: ai_edge_torch.convert(model.eval(), (example,)).export("
     "'model.tflite'), and pass that file"},
    {"saved_model.pb", "is a zip archive of a SavedModel; unpack it (unzip) and pass the folder"},
    {".npy", "is an archive of NumPy arrays (.npz), not a model"},
};

// Returns the message for a zip archive, or an empty one.
string_view ZipMessage(string_view head, string_view tail) {
  if (!absl::StartsWith(head, string_view("PK\x03\x04", 4))) return {};
  for (const Archive& archive : kArchives) {
    if (absl::StrContains(head, archive.entry) || absl::StrContains(tail, archive.entry)) return archive.message;
  }
  return "is a zip archive; unpack it first (unzip)";
}

// True for pickle protocols 2 to 5: the opcode PROTO with the version, then one of the opcodes that begin PyTorch's and
// other files (LONG1, FRAME, EMPTY_DICT, GLOBAL, EMPTY_LIST, MARK).
bool LooksLikePickle(string_view bytes) {
  constexpr char kProto = '\x80', kFirst = 2, kLast = 5;
  if (bytes.size() < 3 || bytes[0] != kProto || bytes[1] < kFirst || bytes[1] > kLast) return false;
  return string_view("\x8a\x95}c](", 6).find(bytes[2]) != string_view::npos;
}

// True for the length of a JSON header in 8 bytes, little-endian, and the header. Its length is limited to 100 MB by
// the format, so the upper four bytes are zero.
bool LooksLikeSafetensors(string_view bytes) {
  return bytes.size() > 9 && bytes.substr(4, 4) == string_view("\0\0\0\0", 4) && bytes.substr(8, 2) == "{\"";
}

bool LooksLikeOpenVino(string_view bytes) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(bytes), "<?xml") && absl::StrContains(bytes, "<net ");
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
  if (const string_view message = ZipMessage(head, tail); !message.empty()) return message;
  if (LooksLikeOnnx(head)) {
    return "is an ONNX model, not a TensorFlow graph; convert it (onnx2tf -i model.onnx -o folder -osd), and pass the "
           "folder";
  }
  if (LooksLikePickle(head)) {
    return "is a Python pickle, as older PyTorch files are (.pt, .pth); convert it in Python: "
           "ai_edge_torch.convert(model.eval(), (example,)).export('model.tflite'), and pass that file";
  }
  if (LooksLikeSafetensors(head)) {
    return "is a safetensors file, which has weights and no graph; export the model (optimum-cli export onnx "
           "--model=folder onnx), then convert it (onnx2tf -i onnx/model.onnx -o folder -osd), and pass that folder";
  }
  if (LooksLikeOpenVino(head)) return "is an OpenVINO model, which is not read; export the model it was made from";
  if (LooksLikeHtml(head)) return "is an HTML page, not a model; check the download URL";
  if (absl::EndsWith(tail, kTableMagic)) {
    return "is a table of a training checkpoint, which has no graph; freeze it with its graph "
           "(freeze_graph --input_checkpoint)";
  }
  return {};
}

}  // namespace permafrost
