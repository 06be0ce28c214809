// The script of the page about a search, embedded by the build.
#ifndef PERMAFROST_TOOLS_OPTIMIZING_SEARCH_PAGE_SCRIPT_H_
#define PERMAFROST_TOOLS_OPTIMIZING_SEARCH_PAGE_SCRIPT_H_

#include "absl/strings/string_view.h"

namespace permafrost {

extern const absl::string_view kSearchPageJs;

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZING_SEARCH_PAGE_SCRIPT_H_
