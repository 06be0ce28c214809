// Compares two graph files.
#include "tools/compare_graphs.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/model_file.h"
#include "tools/command_line/json.h"
#include "tools/difference/graph_difference.h"

namespace permafrost {
namespace {

void DefineFlags(CompareGraphsOptions* options, FlagTable* flags) {
  flags->AddPositional("GRAPH", &options->actual, "Graph to compare, in any format that is read.");
  flags->AddPositional("EXPECTED", &options->expected, "Graph that it should equal.");
  flags->Add("tolerance", &options->tolerance, "X",
             "Maximum difference of a constant, relative to the scale of the expected one. Default: equal bits.");
  flags->Add("strict", &options->strict,
             "Also compare versions, the function library and attributes whose names start with _.");
  flags->Add("lineage", &options->lineage, "FILE",
             "File that transform_graph --lineage wrote when it made GRAPH from EXPECTED. Pairs renamed, merged and "
             "folded nodes with their origins.");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  AddReadFlags(&options->read, flags);
  flags->MarkCommon({"tolerance", "strict", "lineage", "json"});
}

void WriteJson(const std::vector<GraphDifference>& differences, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("is_equal").Bool(differences.empty());
  WriteDifferences(differences, &json);
  json.End();
}

}  // namespace

absl::Status CompareGraphFiles(const CompareGraphsOptions& options, FileSystem& files, Console& console) {
  if (options.tolerance.has_value() && *options.tolerance < 0) {
    return absl::InvalidArgumentError("--tolerance is negative");
  }
  ModelOpener opener(files, options.read, console);
  opener.AllowDanglingInputs();
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> actual, opener.Open(options.actual));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> expected, opener.Open(options.expected));
  OriginsByName origins;
  if (!options.lineage.empty()) {
    PF_ASSIGN_OR_RETURN(origins, ReadLineageFile(files, options.lineage));
  }
  const std::vector<GraphDifference> differences = CompareGraphs(
      *actual, *expected, {options.tolerance, options.strict, options.lineage.empty() ? nullptr : &origins});
  if (options.json) {
    WriteJson(differences, console.out);
  } else if (differences.empty()) {
    console.out << "Graphs are equal.\n";
  } else {
    for (const GraphDifference& difference : differences) console.out << Printable(difference.text) << "\n";
  }
  if (differences.empty()) return absl::OkStatus();
  return AnswerIsNo(
      absl::StrCat("the graphs differ in ", differences.size(), differences.size() == 1 ? " place" : " places"));
}

Tool CompareGraphsTool() {
  return DefineTool<CompareGraphsOptions>(
      "compare_graphs", "compares two graphs, and prints the differences node by node",
      {{"Exit status 0 if the graphs are equal, 1 if they differ.", "new.pb old.pb"},
       {"Tolerate small differences of weights.", "--tolerance=1e-6 new.pb old.pb"},
       {"Print the changes that a run of transform_graph made.", "--lineage=run.json new.pb old.pb"}},
      &DefineFlags, &CompareGraphFiles);
}

}  // namespace permafrost
