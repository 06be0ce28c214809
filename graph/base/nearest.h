// Finds the names most like a misspelt one, for error messages.
#ifndef PERMAFROST_GRAPH_BASE_NEAREST_H_
#define PERMAFROST_GRAPH_BASE_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost {

// Up to `limit` of `candidates`, nearest first by Damerau-Levenshtein distance (ties in the order given); those further
// away than a third of the text's length, or 2 if that is more, are left out. A candidate that contains `text` or is
// contained in it counts as near.
std::vector<std::string> NearestNames(absl::string_view text, absl::Span<const absl::string_view> candidates,
                                      size_t limit = 3);

// "; did you mean 'a', 'b'?" or an empty string when nothing is near.
std::string DidYouMean(absl::string_view text, absl::Span<const absl::string_view> candidates);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_NEAREST_H_
