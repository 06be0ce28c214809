// Implements the search for similar names by edit distance.
#include "graph/base/nearest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/selection.h"

namespace permafrost {
namespace {

// Returns the optimal string alignment distance, or `bound` + 1 if it exceeds `bound`. O(|a| * |b|).
size_t Distance(absl::string_view a, absl::string_view b, size_t bound) {
  const size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference > bound) return bound + 1;
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    size_t smallest = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before_last[j - 2] + 1);
      }
      smallest = std::min(smallest, current[j]);
    }
    if (smallest > bound) return bound + 1;
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return last[b.size()];
}

}  // namespace

std::vector<std::string> NearestNames(absl::string_view text, absl::Span<const absl::string_view> candidates,
                                      size_t limit) {
  // A name in a hostile model may have megabytes. Suggestions for such a name are useless.
  constexpr size_t kLongestName = 512;
  if (selection::kIsSelective) return {};  // Selective builds do not report suggestions.
  if (text.empty() || text.size() > kLongestName) return {};
  const size_t bound = std::max<size_t>(2, text.size() / 3);
  std::vector<std::pair<size_t, absl::string_view>> found;
  for (const absl::string_view candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongestName) continue;
    const bool contained = absl::StrContains(candidate, text) || absl::StrContains(text, candidate);
    const size_t distance = Distance(text, candidate, bound);
    if (distance <= bound) {
      found.emplace_back(distance, candidate);
    } else if (contained && std::min(candidate.size(), text.size()) >= 3) {
      found.emplace_back(bound, candidate);
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [distance, name] : found) {
    if (names.size() == limit) break;
    names.emplace_back(name);
  }
  return names;
}

std::string DidYouMean(absl::string_view text, absl::Span<const absl::string_view> candidates) {
  const std::vector<std::string> names = NearestNames(text, candidates);
  if (names.empty()) return "";
  return absl::StrCat("; did you mean '", absl::StrJoin(names, "', '"), "'?");
}

}  // namespace permafrost
