// The function that receives the text of nodes that print.
#ifndef PERMAFROST_RUNTIME_CHECK_RESOURCES_PRINT_WRITER_H_
#define PERMAFROST_RUNTIME_CHECK_RESOURCES_PRINT_WRITER_H_

#include <functional>

#include "absl/strings/string_view.h"

namespace permafrost {

// Writes text; `stream` is one of the names of PrintV2: "stderr", "stdout", "log(info)", "log(warning)", "log(error)".
using PrintWriter = std::function<void(absl::string_view stream, absl::string_view text)>;

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_RESOURCES_PRINT_WRITER_H_
