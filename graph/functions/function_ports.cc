// Implements OutputNames with the op table and the signatures of the library.
#include "graph/functions/function_ports.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/wire_format/node_def.h"

namespace permafrost {
namespace {

// Maximum of output positions stored for calls of functions whose outputs are lists.
constexpr int64_t kMostStarts = int64_t{1} << 24;

bool IsList(const ArgSpec& arg) { return arg.is_type_list || !arg.number_attr.empty(); }

}  // namespace

const std::vector<ArgSpec>* OutputNames::OutputsOf(const Node& node) const {
  if (const OpSchema* schema = FindSchema(node.op()); schema != nullptr) return &schema->outputs;
  const Function* function = library_.Find(node.op().name());
  return function == nullptr ? nullptr : &function->signature().outputs;
}

absl::StatusOr<const std::vector<int>*> OutputNames::StartsOf(const Node& node, const std::vector<ArgSpec>& args) {
  const auto [entry, is_new] = starts_.try_emplace(&node);
  if (!is_new) return &entry->second;
  num_starts_ += static_cast<int64_t>(args.size()) + 1;
  if (num_starts_ > kMostStarts) {
    return absl::ResourceExhaustedError(
        absl::StrCat(node.Describe(), ": the preceding calls have more than ", kMostStarts, " outputs"));
  }
  std::vector<int> starts;
  int64_t total = 0;
  for (const ArgSpec& arg : args) {
    starts.push_back(static_cast<int>(total));
    PF_ASSIGN_OR_RETURN(const int64_t count, ResolveCount(node, arg));
    total += count;
    if (total > INT32_MAX) {
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": its attributes specify too many outputs"));
    }
  }
  starts.push_back(static_cast<int>(total));
  entry->second = std::move(starts);
  return &entry->second;
}

// Searches linearly while the list is short, which is the common case.
int OutputNames::IndexOf(const std::vector<ArgSpec>& args, absl::string_view arg) {
  constexpr size_t kShort = 16;
  if (args.size() <= kShort) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].name == arg) return static_cast<int>(i);
    }
    return -1;
  }
  auto& names = names_[&args];
  if (names.empty()) {
    for (size_t i = 0; i < args.size(); ++i) names.emplace(args[i].name, static_cast<int>(i));
  }
  const auto found = names.find(arg);
  return found == names.end() ? -1 : found->second;
}

absl::StatusOr<PortRange> OutputNames::Find(const Node& node, absl::string_view arg) {
  const std::vector<ArgSpec>* args = OutputsOf(node);
  if (args == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("names output ", Quoted(arg), " of ", node.Describe(), ", which has an unknown op"));
  }
  const int index = IndexOf(*args, arg);
  if (index < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("names output ", Quoted(arg), " of ", node.Describe(), ", which has no output of that name"));
  }
  if (std::none_of(args->begin(), args->begin() + index + 1, IsList)) return PortRange{index, 1};
  PF_ASSIGN_OR_RETURN(const std::vector<int>* starts, StartsOf(node, *args));
  return PortRange{(*starts)[index], (*starts)[index + 1] - (*starts)[index]};
}

absl::StatusOr<std::string> OutputNames::NameOf(const Node& node, int port) {
  const std::vector<ArgSpec>* args = OutputsOf(node);
  if (args == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(node.Describe(), ": the op is unknown, so its output ", port, " has no name"));
  }
  if (std::none_of(args->begin(), args->end(), IsList)) {
    if (port < static_cast<int>(args->size())) return absl::StrCat((*args)[port].name, ":0");
  } else {
    PF_ASSIGN_OR_RETURN(const std::vector<int>* starts, StartsOf(node, *args));
    if (port < starts->back()) {
      const size_t index = std::upper_bound(starts->begin(), starts->end(), port) - starts->begin() - 1;
      return absl::StrCat((*args)[index].name, ":", port - (*starts)[index]);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(node.Describe(), " has no output ", port));
}

}  // namespace permafrost
