// Operators of a TensorFlow Lite model that an accelerator would leave to the CPU, by a table that users can extend.
#ifndef PERMAFROST_TOOLS_SUMMARY_ACCELERATORS_H_
#define PERMAFROST_TOOLS_SUMMARY_ACCELERATORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"

namespace permafrost {

// A row of the table: an operator that the accelerator computes.
struct AcceleratorRow {
  bool is_checked = true;
  int32_t lowest_version = 1, highest_version = INT32_MAX;
  std::vector<std::string> types;  // Empty: those of the accelerator.
  std::string condition;           // Printed, not evaluated.
};

struct Accelerator {
  std::string name, title, source, date;
  std::vector<std::string> types;                         // Empty: any.
  int64_t rank = 0;                                       // The largest number of dimensions; 0: any.
  absl::flat_hash_map<std::string, AcceleratorRow> rows;  // By operator.
};

// Parses a table; the format is described in tools/summary/accelerators.txt. InvalidArgument, with the line, for
// anything else.
absl::StatusOr<std::vector<Accelerator>> ParseAccelerators(absl::string_view text);

// Returns the accelerator of that name, or of the first target in the file of that path. InvalidArgument, with the
// names, if there is neither.
absl::StatusOr<Accelerator> FindAccelerator(const std::string& name_or_path, FileSystem& files);

// Operators of one kind with one reason.
struct OperatorGroup {
  std::string op;                    // "CONV_2D", "CUSTOM 'name'".
  std::string reason;                // Why they fall back, or the condition of their row.
  std::vector<std::string> results;  // Names of their first results, in file order.
};

struct AcceleratorReport {
  int64_t operators = 0;
  std::vector<OperatorGroup> fallbacks;   // Left to the CPU.
  std::vector<OperatorGroup> conditions;  // Computed if a condition of the table holds.
  std::vector<OperatorGroup> unchecked;   // Computed by a row that was not checked.
};

// Compares all operators of a TensorFlow Lite file with the rows. InvalidArgument for another file; other errors are
// those of TfliteContainer::Open.
absl::StatusOr<AcceleratorReport> CheckAccelerator(const Accelerator& accelerator, const FileView& file);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SUMMARY_ACCELERATORS_H_
