// The files page.html, page.css, page.js and page_parts.js, embedded by the build.
#ifndef PERMAFROST_TOOLS_REPORT_PAGE_PARTS_H_
#define PERMAFROST_TOOLS_REPORT_PAGE_PARTS_H_

#include "absl/strings/string_view.h"

namespace permafrost {

// `kPagePartsJs` precedes the script of each page.
extern const absl::string_view kPageHtml, kPageCss, kPageJs, kPagePartsJs;

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_PAGE_PARTS_H_
