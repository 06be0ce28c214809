// Reads labels from files.
#ifndef PERMAFROST_TOOLS_VALIDATION_LABEL_FILES_H_
#define PERMAFROST_TOOLS_VALIDATION_LABEL_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "tools/validation/scoring.h"

namespace permafrost {

// Reads an NPY file: integers [rows] are classes, floats [rows] or [rows, ...] are numbers. InvalidArgument for other
// types, no rows, non-finite numbers and negative classes.
absl::StatusOr<Labels> ReadNpyLabels(FileSystem& files, const std::string& path);

// Reads the names of the classes, one per line; the first is that of class 0. InvalidArgument for a duplicate name.
absl::StatusOr<std::vector<std::string>> ReadClassNames(FileSystem& files, const std::string& path);

// One line of a list of labels.
struct ListedLabel {
  int64_t line = 0;
  std::string file;                 // Empty: the list has only labels, in the order of the files.
  std::vector<std::string> values;  // At least one.
};

// Reads a text file with one line per picture: "file,label", "file,number,number...", or "label" alone on every line.
// The separator is a comma in a file whose name ends in .csv; elsewhere a comma, a tab, or the last blank. Skips blank
// lines, lines that start with "#", and a first line that starts with file, filename, image, name or path.
// InvalidArgument, naming the file and the line, if lines have different formats.
absl::StatusOr<std::vector<ListedLabel>> ReadLabelList(FileSystem& files, const std::string& path);

// Adds the values of a line to `labels`. Whole numbers and class names are classes, other values are numbers. All lines
// must be of one kind, with the same count of numbers. InvalidArgument with found and expected.
absl::Status AddLabel(const ListedLabel& listed, const std::vector<std::string>& class_names, Labels* labels);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_LABEL_FILES_H_
