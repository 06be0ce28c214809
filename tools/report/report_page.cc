// Assembles the page.
#include "tools/report/report_page.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/report/page_parts.h"

namespace permafrost {

std::string HtmlEscaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string EmbeddableJson(absl::string_view json) {
  std::string compact;
  compact.reserve(json.size());
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\' && i + 1 < json.size()) {
      compact += c;
      compact += json[++i];
      continue;
    }
    if (c == '"') in_text = !in_text;
    if (!in_text && (c == ' ' || c == '\n')) continue;
    switch (c) {
      case '<':
        compact += "\\u003c";
        break;
      case '>':
        compact += "\\u003e";
        break;
      case '&':
        compact += "\\u0026";
        break;
      default:
        compact += c;
    }
  }
  return compact;
}

std::string ReportPage(const Report& report) {
  std::ostringstream facts;
  JsonWriter json(facts);
  WriteReportJson(report, &json);
  // One pass, so that inserted text is not searched again.
  return absl::StrReplaceAll(kPageHtml, {{"{{TITLE}}", HtmlEscaped(report.title)},
                                         {"{{STYLE}}", kPageCss},
                                         {"{{PARTS}}", kPagePartsJs},
                                         {"{{SCRIPT}}", kPageJs},
                                         {"{{FACTS}}", EmbeddableJson(facts.str())}});
}

}  // namespace permafrost
