// A report as JSON, as CSV and as Markdown.
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
  std::string conditions;          // What the times were measured with: "onednn, f32, 2 threads".
  std::vector<ModelFacts> models;  // The first is the one that the others are compared with.
};

// docs/guide/report_model.md describes the members. Numbers that are not finite become null, and the texts "identical"
// and "not finite" stand for an SQNR that is infinite.
void WriteReportJson(const Report& report, JsonWriter* json);

// A line for each node of each model, after one with the names of the columns. Quoted as RFC 4180 asks.
std::string ReportCsv(const Report& report);

// Tables: the models side by side, the slowest types and nodes, the largest constants.
std::string ReportMarkdown(const Report& report);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_REPORT_FORMATS_H_
