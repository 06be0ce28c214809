// Finds names similar to a misspelt one, for error messages.
#ifndef PERMAFROST_GRAPH_BASE_NEAREST_H_
#define PERMAFROST_GRAPH_BASE_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost {

// Returns up to `limit` of `candidates`, nearest first by Damerau-Levenshtein distance; ties keep their order. Omits
// candidates whose distance exceeds a third of the length of `text`, but at least 2. A candidate that contains `text`
// or is contained in it counts as near.
std::vector<std::string> NearestNames(absl::string_view text, absl::Span<const absl::string_view> candidates,
                                      size_t limit = 3);

// Returns "; did you mean 'a', 'b'?", or an empty string if no candidate is near.
std::string DidYouMean(absl::string_view text, absl::Span<const absl::string_view> candidates);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_NEAREST_H_
