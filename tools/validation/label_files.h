// Reads the right answers.
#ifndef PERMAFROST_TOOLS_VALIDATION_LABEL_FILES_H_
#define PERMAFROST_TOOLS_VALIDATION_LABEL_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "tools/validation/scoring.h"

namespace permafrost {

// An NPY file: integers [rows] are classes, floats [rows] or [rows, ...] numbers. InvalidArgument for other types, no
// rows, numbers that are not finite and negative classes.
absl::StatusOr<Labels> ReadNpyLabels(FileSystem& files, const std::string& path);

// The names of the classes, one a line, the first that of class 0. InvalidArgument for a name that is there twice.
absl::StatusOr<std::vector<std::string>> ReadClassNames(FileSystem& files, const std::string& path);

// One line of a list of labels.
struct ListedLabel {
  int64_t line = 0;
  std::string file;                 // Empty: the list has only labels, in the order of the files.
  std::vector<std::string> values;  // At least one.
};

// A text file with a line for each picture: "file,label", "file,number,number...", or "label" alone on every line. In a
// file whose name ends in .csv commas separate; elsewhere commas, tabs, or the last blank. Blank lines and those that
// start with "#" do not count, nor does a first line that starts with file, filename, image, name or path.
// InvalidArgument, naming the file and the line, where lines are not alike.
absl::StatusOr<std::vector<ListedLabel>> ReadLabelList(FileSystem& files, const std::string& path);

// Adds what a line says to `labels`. Whole numbers and names of classes are classes, other numbers are numbers; all
// lines must be of one kind and, of numbers, as many. InvalidArgument with found and expected.
absl::Status AddLabel(const ListedLabel& listed, const std::vector<std::string>& class_names, Labels* labels);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_LABEL_FILES_H_
