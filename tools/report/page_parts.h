// The files page.html, page.css and page.js, embedded by the build.
#ifndef PERMAFROST_TOOLS_REPORT_PAGE_PARTS_H_
#define PERMAFROST_TOOLS_REPORT_PAGE_PARTS_H_

#include "absl/strings/string_view.h"

namespace permafrost {

extern const absl::string_view kPageHtml, kPageCss, kPageJs;

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_PAGE_PARTS_H_
