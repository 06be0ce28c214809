// Processors as a user writes them.
#ifndef PERMAFROST_TOOLS_MODEL_PROCESSOR_LIST_H_
#define PERMAFROST_TOOLS_MODEL_PROCESSOR_LIST_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// "0-2,5", as taskset takes it, or a mask in hexadecimal digits, "0x27". InvalidArgument (found, expected).
absl::StatusOr<std::vector<int>> ParseProcessors(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_PROCESSOR_LIST_H_
