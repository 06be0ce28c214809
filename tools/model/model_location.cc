// Finds the SavedModel or checkpoint around a path.
#include "tools/model/model_location.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "io/formats/saved_model.h"

namespace permafrost {
namespace {

// Returns the part before the last "/", "." if there is none. Ignores trailing slashes.
std::string FolderOf(absl::string_view path) {
  while (path.size() > 1 && absl::ConsumeSuffix(&path, "/")) {
  }
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

std::string NameOf(absl::string_view path) {
  while (path.size() > 1 && absl::ConsumeSuffix(&path, "/")) {
  }
  return std::string(path.substr(path.rfind('/') + 1));
}

// Returns whether the file is a SavedModel message. A GraphDef may have any name.
bool HasSavedModel(FileSystem& files, const std::string& path) {
  // The first field, saved_model_schema_version, is 1 and is followed by the meta graphs.
  constexpr absl::string_view kBinary("\x08\x01\x12", 3);
  constexpr absl::string_view kText = "saved_model_schema_version";
  // Comments and blanks may precede the first field of a text message.
  constexpr size_t kSearched = 4096;
  const absl::StatusOr<FileView> file = files.MapFile(path);
  if (!file.ok()) return false;
  return absl::StartsWith(file->bytes, kBinary) || absl::StrContains(file->bytes.substr(0, kSearched), kText);
}

bool IsMessageName(absl::string_view name) { return name == "saved_model.pb" || name == "saved_model.pbtxt"; }

// Names beside saved_model.pb that TensorFlow writes.
bool IsBesideMessage(absl::string_view name) {
  return name == "variables" || name == "assets" || name == "assets.extra" || name == "fingerprint.pb" ||
         name == "keras_metadata.pb";
}

}  // namespace

std::string CheckpointPrefix(const std::string& path) {
  for (const absl::string_view ending : {".meta", ".index"}) {
    if (absl::EndsWith(path, ending)) return path.substr(0, path.size() - ending.size());
  }
  const size_t data = path.rfind(".data-");
  return data == std::string::npos || !absl::StrContains(path.substr(data), "-of-") ? path : path.substr(0, data);
}

ModelLocation LocateModel(FileSystem& files, const std::string& path) {
  ModelLocation location;
  if (path.empty()) return location;
  const std::string name = NameOf(path), folder = FolderOf(path);
  if (IsSavedModel(files, path)) {
    location.saved_model = path;
  } else if (IsMessageName(name) ? HasSavedModel(files, path)
                                 : IsBesideMessage(name) && files.Exists(path) && IsSavedModel(files, folder)) {
    location.saved_model = folder;
  } else if (NameOf(folder) == "variables" && files.Exists(path) && IsSavedModel(files, FolderOf(folder))) {
    location.saved_model = FolderOf(folder);
  } else if (const std::string prefix = CheckpointPrefix(path); files.Exists(absl::StrCat(prefix, ".meta"))) {
    // A file beside "model.pb.meta" is not a part of it: only a checkpoint's files and its prefix stand for it.
    const bool is_model = prefix == path && files.Exists(path);
    if (!is_model) location = {"", absl::StrCat(prefix, ".meta"), prefix};
  }
  return location;
}

}  // namespace permafrost
