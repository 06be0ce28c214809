// The files page.html, page.css and page.js, as the build puts them into the program.
#ifndef PERMAFROST_TOOLS_REPORT_PAGE_PARTS_H_
#define PERMAFROST_TOOLS_REPORT_PAGE_PARTS_H_

#include "absl/strings/string_view.h"

namespace permafrost {

extern const absl::string_view kPageHtml, kPageCss, kPageJs;

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_PAGE_PARTS_H_
