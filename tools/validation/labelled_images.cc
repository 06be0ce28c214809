// Searches folders and lists for pictures and labels.
#include "tools/validation/labelled_images.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "tools/images/image_file.h"
#include "tools/validation/label_files.h"

namespace permafrost {
namespace {

// More classes than any model has: a folder named 20240517 is a date.
constexpr int64_t kMostClasses = 1'000'000;

struct Listing {
  std::vector<std::string> pictures;
  std::vector<std::string> folders;
};

absl::StatusOr<Listing> List(FileSystem& files, const std::string& folder) {
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.ListDirectory(folder));
  Listing listing;
  for (const std::string& name : names) {
    if (name[0] == '.') continue;
    if (HasImageName(name)) {
      listing.pictures.push_back(name);
    } else if (const absl::StatusOr<FileStat> stat = files.Stat(absl::StrCat(folder, "/", name));
               stat.ok() && stat->is_directory) {
      listing.folders.push_back(name);
    }
  }
  return listing;
}

// Returns the class of each folder.
absl::StatusOr<std::vector<int64_t>> ClassesOfFolders(const std::vector<std::string>& folders,
                                                      const std::string& parent,
                                                      std::vector<std::string>* class_names) {
  std::vector<int64_t> classes;
  if (!class_names->empty()) {
    const std::vector<absl::string_view> names(class_names->begin(), class_names->end());
    for (const std::string& folder : folders) {
      const auto found = std::find(class_names->begin(), class_names->end(), folder);
      if (found == class_names->end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "folder '", folder, "' of '", parent, "' is no class that --class_names names", DidYouMean(folder, names)));
      }
      classes.push_back(found - class_names->begin());
    }
    return classes;
  }
  for (const std::string& folder : folders) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(folder, &number) || number < 0 || number >= kMostClasses) break;
    classes.push_back(number);
  }
  if (classes.size() == folders.size()) return classes;
  *class_names = folders;
  classes.resize(folders.size());
  std::iota(classes.begin(), classes.end(), int64_t{0});
  return classes;
}

absl::Status FindInFolders(FileSystem& files, const std::string& folder, const Listing& listing,
                           LabelledImages* found) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> classes,
                      ClassesOfFolders(listing.folders, folder, &found->class_names));
  for (size_t i = 0; i < classes.size(); ++i) {
    const std::string path = absl::StrCat(folder, "/", listing.folders[i]);
    PF_ASSIGN_OR_RETURN(const Listing inner, List(files, path));
    for (const std::string& picture : inner.pictures) {
      found->paths.push_back(absl::StrCat(path, "/", picture));
      found->labels.classes.push_back(classes[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCount(const std::string& list, size_t num_labels, const std::string& folder, size_t num_pictures) {
  if (num_labels == num_pictures) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", list, "' holds ", num_labels, " labels, folder '", folder,
                                                 "' holds ", num_pictures, " pictures"));
}

absl::Status FindByList(FileSystem& files, const std::string& folder, const Listing& listing, const std::string& path,
                        LabelledImages* found) {
  const auto take_all = [&] {
    for (const std::string& picture : listing.pictures) found->paths.push_back(absl::StrCat(folder, "/", picture));
  };
  if (absl::EndsWithIgnoreCase(path, ".npy")) {
    PF_ASSIGN_OR_RETURN(found->labels, ReadNpyLabels(files, path));
    PF_RETURN_IF_ERROR(
        CheckCount(path, static_cast<size_t>(found->labels.num_rows()), folder, listing.pictures.size()));
    take_all();
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(const std::vector<ListedLabel> list, ReadLabelList(files, path));
  const bool names_files = !list[0].file.empty();
  if (!names_files) {
    PF_RETURN_IF_ERROR(CheckCount(path, list.size(), folder, listing.pictures.size()));
    take_all();
  }
  const std::vector<absl::string_view> names(listing.pictures.begin(), listing.pictures.end());
  for (const ListedLabel& listed : list) {
    const std::string place = absl::StrCat("'", path, "' line ", listed.line);
    PF_RETURN_IF_ERROR(Annotate(AddLabel(listed, found->class_names, &found->labels), place));
    if (!names_files) continue;
    found->paths.push_back(absl::StrCat(folder, "/", listed.file));
    if (!files.Exists(found->paths.back())) {
      return absl::NotFoundError(
          absl::StrCat(place, ": no file '", found->paths.back(), "'", DidYouMean(listed.file, names)));
    }
  }
  found->num_left_out =
      std::max<int64_t>(0, static_cast<int64_t>(listing.pictures.size()) - static_cast<int64_t>(found->paths.size()));
  return absl::OkStatus();
}

// Shuffles the pictures. std::shuffle differs between standard libraries; the generator does not.
void Shuffle(uint64_t seed, LabelledImages* images) {
  std::mt19937_64 generator(seed);
  std::vector<size_t> order(images->paths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[generator() % i]);
  LabelledImages shuffled = *images;
  const auto per_row = static_cast<size_t>(images->labels.numbers_per_row);
  for (size_t i = 0; i < order.size(); ++i) {
    shuffled.paths[i] = images->paths[order[i]];
    if (!images->labels.classes.empty()) shuffled.labels.classes[i] = images->labels.classes[order[i]];
    for (size_t k = 0; k < per_row; ++k) {
      shuffled.labels.numbers[i * per_row + k] = images->labels.numbers[order[i] * per_row + k];
    }
  }
  *images = std::move(shuffled);
}

}  // namespace

absl::StatusOr<LabelledImages> FindLabelledImages(FileSystem& files, const std::string& folder,
                                                  const LabelPlaces& places, uint64_t seed) {
  LabelledImages found;
  if (!places.class_names.empty()) {
    PF_ASSIGN_OR_RETURN(found.class_names, ReadClassNames(files, places.class_names));
  }
  PF_ASSIGN_OR_RETURN(const Listing listing, List(files, folder));
  if (!places.list.empty()) {
    PF_RETURN_IF_ERROR(FindByList(files, folder, listing, places.list, &found));
  } else if (listing.pictures.empty()) {
    PF_RETURN_IF_ERROR(FindInFolders(files, folder, listing, &found));
  } else if (!listing.folders.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("folder '", folder, "' holds ", listing.pictures.size(),
                                                   " pictures beside folders (", listing.folders[0],
                                                   "), expected either: a folder is a class"));
  } else {
    for (const std::string& picture : listing.pictures) found.paths.push_back(absl::StrCat(folder, "/", picture));
  }
  if (found.paths.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "folder '", folder, "' holds no pictures, expected .png, .jpg or .jpeg, or a folder of them for each class"));
  }
  PF_RETURN_IF_ERROR(ShiftClasses(places.offset, &found.labels));
  if (places.offset > 0 && !found.class_names.empty() && places.class_names.empty()) {
    const int64_t unnamed = std::min<int64_t>(places.offset, kMostClasses);
    found.class_names.insert(found.class_names.begin(), static_cast<size_t>(unnamed), "");
  }
  Shuffle(seed, &found);
  return found;
}

absl::Status ShiftClasses(int32_t offset, Labels* labels) {
  for (int64_t& label : labels->classes) {
    if (label > kMostClasses || label + offset < 0) {
      return absl::InvalidArgumentError(absl::StrCat("found class ", label + offset, ", expected 0 to ", kMostClasses,
                                                     offset == 0 ? "" : ": --label_offset"));
    }
    label += offset;
  }
  return absl::OkStatus();
}

}  // namespace permafrost
