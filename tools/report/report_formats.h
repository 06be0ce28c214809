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
  std::string date;                // Of the measurement; empty: not stated.
  std::string machine;             // That measured; empty: not stated.
  std::string conditions;          // Settings of the measurement: "onednn, f32, 2 threads".
  std::vector<ModelFacts> models;  // The first is the reference.
};

// Returns one sentence on the result: with several models, which is the fastest and which the smallest, by how much,
// and how the accuracy of the fastest compares. Differences of latency within the confidence intervals are not counted.
std::string Conclusion(const Report& report);

// Writes the report as JSON; docs/guide/report_model.md describes the members. Non-finite numbers become null, but an
// infinite or undefined SQNR becomes "identical" or "not finite".
void WriteReportJson(const Report& report, JsonWriter* json);

// Writes a header line, then one line per node of each model. Fields are quoted as in RFC 4180.
std::string ReportCsv(const Report& report);

// Writes tables: the models side by side, the slowest types and nodes, the largest constants.
std::string ReportMarkdown(const Report& report);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_REPORT_FORMATS_H_
