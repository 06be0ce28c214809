// Finds the SavedModel or checkpoint around a path.
#include "tools/model/model_location.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "io/formats/checkpoint/checkpoint_files.h"
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

// Returns the prefix of the checkpoint that the path stands for; empty if it stands for none. A file beside
// "model.pb.index" is not a part of that checkpoint: only the prefix and the checkpoint's own files stand for it.
std::string FindCheckpoint(FileSystem& files, const std::string& path) {
  const absl::StatusOr<FileStat> stat = files.Stat(path);
  const std::string prefix = CheckpointPrefix(path);
  // A folder of checkpoints has a file that names the latest; other folders may hold one among other files.
  if (stat.ok() && stat->is_directory && !files.Exists(absl::StrCat(path, "/checkpoint"))) return "";
  const bool has_own_name = prefix == path && NameOf(path) != "checkpoint" && stat.ok() && stat->is_regular;
  const absl::StatusOr<CheckpointFiles> found = FindCheckpointFiles(files, path);
  // Of the files without an ending, the tables of version 1 belong to a checkpoint.
  if (found.ok()) return has_own_name && found->tables.empty() ? "" : found->prefix;
  // A checkpoint without its index is reported when it is opened.
  return !has_own_name && files.Exists(absl::StrCat(prefix, ".meta")) ? prefix : "";
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
  } else if (const std::string prefix = FindCheckpoint(files, path); !prefix.empty()) {
    location.checkpoint = prefix;
    if (const std::string meta = absl::StrCat(prefix, ".meta"); files.Exists(meta)) location.meta_graph = meta;
  }
  return location;
}

absl::Status NoGraphError(const std::string& path, const ModelLocation& location) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", path, "' is a training checkpoint, which has the values of variables and no graph, and '",
                   location.checkpoint,
                   ".meta' is not there; freeze it with its graph: freeze_graph --input_graph=graph.pb "
                   "--input_checkpoint=",
                   location.checkpoint, " --output_node_names=NAMES --output_graph=frozen.pb"));
}

}  // namespace permafrost
