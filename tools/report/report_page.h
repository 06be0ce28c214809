// Writes a report as one self-contained HTML page with style, script and data.
#ifndef PERMAFROST_TOOLS_REPORT_REPORT_PAGE_H_
#define PERMAFROST_TOOLS_REPORT_REPORT_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tools/report/report_formats.h"

namespace permafrost {

// Returns the page made from tools/report/page.{html,css,js}. Contents of a model cannot become markup or script: its
// names are only in the data, which the script inserts as text.
std::string ReportPage(const Report& report);

// Returns `json` without blanks between its parts, and with HTML special characters escaped, so that it can be embedded
// in a <script> of type application/json. REQUIRES: valid JSON.
std::string EmbeddableJson(absl::string_view json);

// Returns `text` escaped for element content or a quoted attribute.
std::string HtmlEscaped(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_REPORT_PAGE_H_
