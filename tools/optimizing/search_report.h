// Reports of a search: text for a terminal, JSON with every trial, and a page.
#ifndef PERMAFROST_TOOLS_OPTIMIZING_SEARCH_REPORT_H_
#define PERMAFROST_TOOLS_OPTIMIZING_SEARCH_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"
#include "tools/optimizing/budget.h"
#include "tools/optimizing/search.h"
#include "tools/optimizing/trial_bench.h"

namespace permafrost {

// All facts of a finished search. Views objects that must outlive it.
struct SearchReport {
  std::string in_model, out_model, precision_plan;  // Paths; the last one empty if the result needs no plan.
  std::string calibration;                          // Path of the file that kCalibrationName stands for; or empty.
  uint64_t in_bytes = 0;                            // Size of the file that was read.
  uint64_t out_bytes = 0;                           // Size of the file that was written; 0 if none was.
  uint64_t certificate_bytes = 0;                   // Size of the certificate in that file; 0: it is not there.
  std::string command;                              // The command of transform_graph that makes the result.
  std::string date, machine;
  OptimizationBudget budget;
  std::string minimize;
  size_t num_search_inputs = 0, num_held_back_inputs = 0;
  std::vector<std::string> notes;
  const SearchOutcome* outcome = nullptr;
  const TrialBench* bench = nullptr;
};

// Returns the time of a trial's way to run, which was measured on the folded model; 0 if it was not.
double SecondsOf(const SearchOutcome& outcome, const RunChoice& run);

// Returns the command line of transform_graph, quoted for a shell. `graph_inputs` and `graph_outputs` are lists of
// names.
std::string TransformCommand(const std::string& in_model, const std::string& out_model, const std::string& graph_inputs,
                             const std::string& graph_outputs, const std::string& transforms);

void PrintSearch(const SearchReport& report, const Console& console);
void WriteSearchJson(const SearchReport& report, JsonWriter* json);
// Returns a self-contained page in the style of report_model. Names of a model are only in its data, as text.
std::string SearchPage(const SearchReport& report);

// Returns OK, or the answer "no" with the nearest miss, if nothing is within the budget.
absl::Status SearchVerdict(const SearchReport& report);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZING_SEARCH_REPORT_H_
