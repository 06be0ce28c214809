// Writes a report as JSON, as CSV and as Markdown.
#ifndef PERMAFROST_TOOLS_REPORT_REPORT_FORMATS_H_
#define PERMAFROST_TOOLS_REPORT_REPORT_FORMATS_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/command_line/json.h"
#include "tools/report/model_facts.h"

namespace permafrost {

struct Report {
  std::string title;
  std::string conditions;          // Settings of the measurement: "onednn, f32, 2 threads".
  std::vector<ModelFacts> models;  // The first is the reference.
};

// Writes the report as JSON; docs/guide/report_model.md describes the members. Non-finite numbers become null, but an
// infinite or undefined SQNR becomes "identical" or "not finite".
void WriteReportJson(const Report& report, JsonWriter* json);

// Writes a header line, then one line per node of each model. Fields are quoted as in RFC 4180.
std::string ReportCsv(const Report& report);

// Writes tables: the models side by side, the slowest types and nodes, the largest constants.
std::string ReportMarkdown(const Report& report);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_REPORT_FORMATS_H_
