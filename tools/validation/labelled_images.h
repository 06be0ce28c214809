// Finds the pictures in a folder, and their labels.
#ifndef PERMAFROST_TOOLS_VALIDATION_LABELLED_IMAGES_H_
#define PERMAFROST_TOOLS_VALIDATION_LABELLED_IMAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "tools/validation/scoring.h"

namespace permafrost {

// Pictures and their labels.
struct LabelledImages {
  std::vector<std::string> paths;
  Labels labels;                         // One per path, or none at all.
  std::vector<std::string> class_names;  // By class; empty if there are no names.
  int64_t num_left_out = 0;              // Pictures in the folder that the list of labels does not contain.
};

// The location of labels outside the folder of pictures.
struct LabelPlaces {
  std::string list;         // An NPY file or a list (see label_files.h); empty: none.
  std::string class_names;  // A file, or empty.
  int32_t offset = 0;       // Added to each class; 1 for models with "background" as class 0.
};

// Finds pictures and labels. With a list, returns the pictures that it names; if it holds only labels, returns the
// pictures of the folder in the order of their names. Without a list, each folder inside `folder` is one class: the
// number in its name if all names are numbers, its index among the class names if these are given, else its index in
// alphabetical order. Pictures directly in `folder` have no labels. `seed` shuffles the pictures, so that any prefix is
// representative of the whole. Errors of files; InvalidArgument, naming the file and the line: no pictures, labels for
// missing pictures, more or fewer labels than pictures, unknown classes.
absl::StatusOr<LabelledImages> FindLabelledImages(FileSystem& files, const std::string& folder,
                                                  const LabelPlaces& places, uint64_t seed);

// Adds `offset` to each class. InvalidArgument if a class becomes negative.
absl::Status ShiftClasses(int32_t offset, Labels* labels);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_LABELLED_IMAGES_H_
