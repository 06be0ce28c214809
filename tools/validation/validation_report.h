// Prints the results of a validation.
#ifndef PERMAFROST_TOOLS_VALIDATION_VALIDATION_REPORT_H_
#define PERMAFROST_TOOLS_VALIDATION_VALIDATION_REPORT_H_

#include <string>
#include <vector>

#include "tools/command_line/console.h"
#include "tools/command_line/json.h"
#include "tools/validation/validation.h"

namespace permafrost {

struct ValidationReportOptions {
  bool shows_confusion = false;
  bool shows_classes = false;
  std::vector<std::string> class_names;  // By class; if empty or too short, class numbers are printed.
};

// Prints tables, and one line for each problem.
void PrintValidation(const Validation& validation, const ValidationReportOptions& options, const Console& console);

// Writes all results as keys, inside an object that the caller has begun.
void WriteValidation(const Validation& validation, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_VALIDATION_REPORT_H_
