// The function library of a graph in a form that can be compared.
#ifndef PERMAFROST_TOOLS_DIFFERENCE_CANONICAL_LIBRARY_H_
#define PERMAFROST_TOOLS_DIFFERENCE_CANONICAL_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// The bytes of Graph::library() with functions, nodes of a function and entries of maps in a fixed order. Protobuf
// writes maps in any order, so two files of one graph may differ in that alone. DataLoss for malformed bytes.
absl::StatusOr<std::string> CanonicalLibrary(absl::string_view library);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIFFERENCE_CANONICAL_LIBRARY_H_
