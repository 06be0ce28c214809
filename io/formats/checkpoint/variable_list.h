// The variables of a checkpoint, searchable by name.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_VARIABLE_LIST_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_VARIABLE_LIST_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/variable_source.h"

namespace permafrost {

class VariableList {
 public:
  // REQUIRES: names are added in sorted order.
  void Add(VariableInfo variable) { variables_.push_back(std::move(variable)); }

  absl::Span<const VariableInfo> variables() const { return variables_; }

  // Returns the index of a variable, or NotFound with the nearest names.
  absl::StatusOr<size_t> Find(absl::string_view name) const;

 private:
  std::vector<VariableInfo> variables_;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_VARIABLE_LIST_H_
