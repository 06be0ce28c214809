// Groups near misses.
#include "tools/transform/explanation.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

// Maximum number of nodes named in a group.
constexpr size_t kMostNames = 3;

// Returns the text without the parts that differ between nodes: names in single quotes, an op in brackets after a name,
// numbers.
std::string Blanked(const std::string& text) {
  std::string blanked;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') {
      const size_t end = text.find('\'', i + 1);
      if (end != std::string::npos) {
        blanked += "''";
        i = end;
        continue;
      }
    }
    if (absl::ascii_isdigit(static_cast<unsigned char>(text[i]))) {
      if (blanked.empty() || blanked.back() != '#') blanked += '#';
      continue;
    }
    blanked += text[i];
  }
  return blanked;
}

}  // namespace

std::vector<MissGroup> GroupMisses(const std::vector<MissedRewrite>& misses) {
  std::vector<MissGroup> groups;
  absl::flat_hash_map<std::string, size_t> index;
  for (const MissedRewrite& miss : misses) {
    const std::string key = absl::StrCat(miss.op, "\n", Blanked(miss.reason), "\n", Blanked(miss.way_out));
    const auto [entry, is_new] = index.try_emplace(key, groups.size());
    if (is_new) groups.push_back({&miss, 0, {}});
    MissGroup& group = groups[entry->second];
    ++group.count;
    if (group.nodes.size() < kMostNames) group.nodes.push_back(miss.node);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const MissGroup& a, const MissGroup& b) {
    const auto rank = [](const MissGroup& group) {
      return std::make_tuple(group.first->num_failures, group.first->way_out.empty(), -group.count);
    };
    return rank(a) < rank(b);
  });
  return groups;
}

std::vector<std::string> ExplainMisses(const std::vector<MissedRewrite>& misses) {
  std::vector<std::string> lines;
  const std::vector<MissGroup> groups = GroupMisses(misses);
  int64_t left_out = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const MissGroup& group = groups[i];
    if (i >= kMostMissGroups) {
      left_out += group.count;
      continue;
    }
    if (group.count == 1) {
      lines.push_back(group.first->ToString());
      continue;
    }
    std::string names;
    for (const std::string& name : group.nodes) absl::StrAppend(&names, names.empty() ? "" : ", ", "'", name, "'");
    const int64_t more = group.count - static_cast<int64_t>(group.nodes.size());
    if (more > 0) absl::StrAppend(&names, " and ", more, " more");
    lines.push_back(absl::StrCat(group.count, " ", group.first->op, " (", names, "), of which the first: ",
                                 group.first->reason, group.first->way_out.empty() ? "" : "; ", group.first->way_out));
  }
  if (left_out > 0) {
    lines.push_back(
        absl::StrCat(left_out, " more for ", groups.size() - kMostMissGroups, " other reasons; --json has them all"));
  }
  return lines;
}

}  // namespace permafrost
