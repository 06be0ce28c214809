// Implements the search for variables by name.
#include "io/formats/checkpoint/variable_list.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/nearest.h"

namespace permafrost {

absl::StatusOr<size_t> VariableList::Find(absl::string_view name) const {
  const auto found = std::lower_bound(variables_.begin(), variables_.end(), name,
                                      [](const VariableInfo& a, absl::string_view b) { return a.name < b; });
  if (found != variables_.end() && found->name == name) return static_cast<size_t>(found - variables_.begin());
  std::vector<absl::string_view> names;
  names.reserve(variables_.size());
  for (const VariableInfo& variable : variables_) names.push_back(variable.name);
  return absl::NotFoundError(absl::StrCat("has no variable '", name, "'", DidYouMean(name, names)));
}

}  // namespace permafrost
