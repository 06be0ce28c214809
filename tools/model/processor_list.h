// Parses a list of processors.
#ifndef PERMAFROST_TOOLS_MODEL_PROCESSOR_LIST_H_
#define PERMAFROST_TOOLS_MODEL_PROCESSOR_LIST_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Parses "0-2,5", in the format of taskset, or a mask in hexadecimal digits, "0x27". InvalidArgument (found, expected).
absl::StatusOr<std::vector<int>> ParseProcessors(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_PROCESSOR_LIST_H_
