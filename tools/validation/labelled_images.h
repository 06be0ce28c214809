// Finds the pictures of a folder, and what is right for each.
#ifndef PERMAFROST_TOOLS_VALIDATION_LABELLED_IMAGES_H_
#define PERMAFROST_TOOLS_VALIDATION_LABELLED_IMAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "tools/validation/scoring.h"

namespace permafrost {

struct LabelledImages {
  std::vector<std::string> paths;
  Labels labels;                         // One for each path, or none at all.
  std::vector<std::string> class_names;  // By class; empty where nobody names them.
  int64_t num_left_out = 0;              // Pictures of the folder that the list of labels does not name.
};

// Where the labels are, besides the folder.
struct LabelPlaces {
  std::string list;         // An NPY file or a list (see label_files.h); empty: none.
  std::string class_names;  // A file, or empty.
  int32_t offset = 0;       // Added to each class: models that count "background" as class 0 want 1.
};

// With a list, the pictures that it names, or, where it holds only labels, those of the folder in the order of their
// names. Without, one class for each folder inside of `folder`: the number that is its name where all names are
// numbers, its place among the named classes where there are names, else its place in alphabetical order. A folder of
// pictures gives them without labels. Pictures come in an order that `seed` shuffles, so that any first part is like
// the whole. Errors of files; InvalidArgument, naming the file and the line: no pictures, labels for pictures that are
// not there, more or fewer labels than pictures, unknown classes.
absl::StatusOr<LabelledImages> FindLabelledImages(FileSystem& files, const std::string& folder,
                                                  const LabelPlaces& places, uint64_t seed);

// Adds `offset` to each class. InvalidArgument below 0.
absl::Status ShiftClasses(int32_t offset, Labels* labels);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_LABELLED_IMAGES_H_
