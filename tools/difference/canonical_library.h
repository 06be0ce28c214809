// A canonical form of a graph's function library, for comparison.
#ifndef PERMAFROST_TOOLS_DIFFERENCE_CANONICAL_LIBRARY_H_
#define PERMAFROST_TOOLS_DIFFERENCE_CANONICAL_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Returns the bytes of Graph::library() with functions, nodes of a function and entries of maps in a fixed order.
// Protobuf writes maps in any order, so two files of one graph may differ only in that order. DataLoss for malformed
// bytes.
absl::StatusOr<std::string> CanonicalLibrary(absl::string_view library);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIFFERENCE_CANONICAL_LIBRARY_H_
