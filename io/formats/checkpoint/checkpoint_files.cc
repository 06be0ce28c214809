// Implements the search for the files of a checkpoint.
#include "io/formats/checkpoint/checkpoint_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "io/formats/checkpoint/sorted_table.h"

namespace permafrost {
namespace {

constexpr absl::string_view kIndex = ".index";
constexpr absl::string_view kMeta = ".meta";
constexpr absl::string_view kData = ".data";
constexpr char kAnyShard[] = R"(-?????-of-)";
constexpr absl::string_view kStateFile = "checkpoint";

struct PathParts {
  std::string folder;  // "." if the path has none.
  std::string name;
};

PathParts Split(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

std::string Join(absl::string_view folder, absl::string_view name) {
  return absl::StrCat(folder, absl::EndsWith(folder, "/") ? "" : "/", name);
}

// Parses "name-00001-of-00003", the name of a shard. Returns false for other names.
bool ParseShardName(absl::string_view path, absl::string_view* prefix, int* number, int* count) {
  constexpr absl::string_view kOf = "-of-";
  const auto take_number = [&](int* value) {
    const size_t dash = path.rfind('-');
    const absl::string_view digits = dash == absl::string_view::npos ? "" : path.substr(dash + 1);
    if (digits.size() < 5 || digits.find_first_not_of("0123456789") != absl::string_view::npos) return false;
    path.remove_suffix(digits.size());
    return absl::SimpleAtoi(digits, value);
  };
  if (!take_number(count) || !absl::ConsumeSuffix(&path, kOf) || !take_number(number)) return false;
  *prefix = path.substr(0, path.size() - 1);
  return absl::EndsWith(path, "-");
}

absl::StatusOr<bool> IsRegularFile(FileSystem& files, const std::string& path) {
  const absl::StatusOr<FileStat> stat = files.Stat(path);
  if (absl::IsNotFound(stat.status())) return false;
  if (!stat.ok()) return stat.status();
  return stat->is_regular;
}

class Finder {
 public:
  explicit Finder(FileSystem& files) : files_(files) {}

  absl::StatusOr<CheckpointFiles> Find(const std::string& path) {
    if (path.empty()) return absl::InvalidArgumentError("the path of the checkpoint is empty");
    const absl::StatusOr<FileStat> stat = files_.Stat(path);
    if (stat.ok() && stat->is_directory) {
      absl::StatusOr<CheckpointFiles> found = InFolder(path);
      if (!absl::IsNotFound(found.status())) return found;
      // A folder may have the same name as the prefix.
      PF_ASSIGN_OR_RETURN(const bool has_index, IsRegularFile(files_, absl::StrCat(path, kIndex)));
      if (has_index) return CheckpointFiles{path, {}};
      return found;
    }
    if (!stat.ok() && !absl::IsNotFound(stat.status())) return stat.status();
    if (stat.ok() && Split(path).name == kStateFile) return InFolderOfState(path);
    return stat.ok() ? OfFile(path) : OfPrefix(path);
  }

 private:
  // Handles the path of an existing file.
  absl::StatusOr<CheckpointFiles> OfFile(const std::string& path) {
    absl::string_view prefix = path;
    if (absl::ConsumeSuffix(&prefix, kIndex)) return CheckpointFiles{std::string(prefix), {}};
    int number, count;
    const bool is_shard = ParseShardName(path, &prefix, &number, &count);
    if (is_shard && absl::ConsumeSuffix(&prefix, kData)) return CheckpointFiles{std::string(prefix), {}};
    PF_ASSIGN_OR_RETURN(const FileView file, files_.MapFile(path));
    if (SortedTable::Is(file.bytes)) {
      if (is_shard) return Shards(std::string(prefix), count);
      return CheckpointFiles{path, {path}};
    }
    prefix = path;
    if (absl::ConsumeSuffix(&prefix, kMeta)) return OfPrefix(std::string(prefix));
    PF_ASSIGN_OR_RETURN(const bool has_index, IsRegularFile(files_, absl::StrCat(path, kIndex)));
    if (has_index) return CheckpointFiles{path, {}};
    return absl::DataLossError(absl::StrCat(
        "'", path, "': found no checkpoint: the file is not a table, and there is no '", path, kIndex, "'"));
  }

  // Handles a path that does not exist.
  absl::StatusOr<CheckpointFiles> OfPrefix(const std::string& given) {
    // A Saver returns the name of the shards in this form.
    const std::string prefix = given.substr(0, given.rfind(kAnyShard));
    PF_ASSIGN_OR_RETURN(const bool has_index, IsRegularFile(files_, absl::StrCat(prefix, kIndex)));
    if (has_index) return CheckpointFiles{prefix, {}};
    const PathParts parts = Split(prefix);
    const absl::StatusOr<std::vector<std::string>> names = files_.ListDirectory(parts.folder);
    if (!names.ok()) return Annotate(names.status(), absl::StrCat("checkpoint '", prefix, "'"));
    for (const std::string& name : *names) {
      absl::string_view start;
      int number, count;
      if (!ParseShardName(name, &start, &number, &count)) continue;
      if (start == parts.name) return Shards(prefix, count);
      if (start == absl::StrCat(parts.name, kData)) {
        return absl::NotFoundError(
            absl::StrCat("checkpoint '", prefix, "': found '", name, "', but no '", parts.name, kIndex, "' beside it"));
      }
    }
    return absl::NotFoundError(absl::StrCat("found no checkpoint '", prefix, "': no '", parts.name, kIndex, "' in '",
                                            parts.folder, "'", Nearest(parts.name, *names)));
  }

  static std::string Nearest(absl::string_view name, const std::vector<std::string>& names) {
    std::set<absl::string_view> prefixes;
    for (const std::string& each : names) {
      absl::string_view prefix = each;
      int number, count;
      if (absl::ConsumeSuffix(&prefix, kIndex) ||
          (ParseShardName(each, &prefix, &number, &count) && !absl::EndsWith(prefix, kData))) {
        prefixes.insert(prefix);
      }
    }
    const std::vector<absl::string_view> candidates(prefixes.begin(), prefixes.end());
    return DidYouMean(name, candidates);
  }

  // Handles version 1.
  absl::StatusOr<CheckpointFiles> Shards(const std::string& prefix, int count) {
    CheckpointFiles found{prefix, {}};
    for (int i = 0; i < count; ++i) {
      std::string path = absl::StrFormat("%s-%05d-of-%05d", prefix, i, count);
      PF_ASSIGN_OR_RETURN(const bool is_there, IsRegularFile(files_, path));
      if (!is_there) {
        return absl::NotFoundError(
            absl::StrCat("checkpoint '", prefix, "' has ", count, " shards: found no file '", path, "'"));
      }
      found.tables.push_back(std::move(path));
    }
    if (found.tables.empty()) return absl::NotFoundError(absl::StrCat("checkpoint '", prefix, "' has no shards"));
    return found;
  }

  absl::StatusOr<CheckpointFiles> InFolderOfState(const std::string& state) {
    PF_ASSIGN_OR_RETURN(const FileView text, files_.MapFile(state));
    if (SortedTable::Is(text.bytes)) return CheckpointFiles{state, {state}};
    const absl::StatusOr<std::string> latest = ParseCheckpointState(text.bytes);
    if (!latest.ok()) return Annotate(latest.status(), absl::StrCat("'", state, "'"));
    const std::string folder = Split(state).folder;
    // In a folder that was moved, the state names the old location.
    absl::StatusOr<CheckpointFiles> found =
        NotAFolder(absl::StartsWith(*latest, "/") ? *latest : Join(folder, *latest));
    if (absl::IsNotFound(found.status())) {
      const absl::StatusOr<CheckpointFiles> beside = NotAFolder(Join(folder, Split(*latest).name));
      if (beside.ok()) return beside;
    }
    return found.ok() ? found : Annotate(found.status(), absl::StrCat("'", state, "' names '", *latest, "'"));
  }

  absl::StatusOr<CheckpointFiles> NotAFolder(const std::string& path) {
    const absl::StatusOr<FileStat> stat = files_.Stat(path);
    if (stat.ok() && !stat->is_directory) return OfFile(path);
    return OfPrefix(path);
  }

  absl::StatusOr<CheckpointFiles> InFolder(const std::string& folder) {
    PF_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.ListDirectory(folder));
    std::vector<std::string> prefixes;
    for (const std::string& name : names) {
      if (name == kStateFile) return InFolderOfState(Join(folder, name));
      absl::string_view prefix = name;
      if (absl::ConsumeSuffix(&prefix, kIndex)) prefixes.push_back(std::string(prefix));
    }
    if (prefixes.size() == 1) return CheckpointFiles{Join(folder, prefixes[0]), {}};
    if (prefixes.size() > 1) {
      constexpr size_t kMostNamed = 5;
      const size_t count = prefixes.size();
      if (count > kMostNamed) prefixes.resize(kMostNamed);
      return absl::InvalidArgumentError(absl::StrCat("folder '", folder, "' holds ", count,
                                                     " checkpoints and no file 'checkpoint' that names the latest; "
                                                     "specify one of '",
                                                     absl::StrJoin(prefixes, "', '"), "'"));
    }
    // Handles a SavedModel.
    const std::string variables = Join(folder, "variables/variables");
    PF_ASSIGN_OR_RETURN(const bool has_index, IsRegularFile(files_, absl::StrCat(variables, kIndex)));
    if (has_index) return CheckpointFiles{variables, {}};
    return absl::NotFoundError(absl::StrCat("folder '", folder,
                                            "' holds no checkpoint: expected a file 'checkpoint', '*.index' or "
                                            "'variables/variables.index'"));
  }

  FileSystem& files_;
};

}  // namespace

absl::StatusOr<CheckpointFiles> FindCheckpointFiles(FileSystem& files, const std::string& path) {
  return Finder(files).Find(path);
}

}  // namespace permafrost
