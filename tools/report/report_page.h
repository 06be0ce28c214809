// A report as one HTML page that needs nothing else: style, script and facts are in it.
#ifndef PERMAFROST_TOOLS_REPORT_REPORT_PAGE_H_
#define PERMAFROST_TOOLS_REPORT_REPORT_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tools/report/report_formats.h"

namespace permafrost {

// The page of tools/report/page.{html,css,js}. Nothing of a model can become markup or script: its names are in the
// facts alone, from where the script takes them as text.
std::string ReportPage(const Report& report);

// `json` without blanks between its parts, and with the characters that mean something to HTML escaped, so that it may
// stand in a <script> of type application/json. REQUIRES: valid JSON.
std::string EmbeddableJson(absl::string_view json);

// `text` for between tags or in a quoted attribute.
std::string HtmlEscaped(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_REPORT_PAGE_H_
