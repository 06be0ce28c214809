// Prints and writes the results of a search.
#include "tools/optimizing/search_report.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/command_line/cli.h"
#include "tools/optimizing/search_page_script.h"
#include "tools/report/page_parts.h"
#include "tools/report/report_page.h"

namespace permafrost {
namespace {

// Number of the most sensitive layers that are printed; the page lists all.
constexpr size_t kShownLayers = 8;

// Quotes an argument for a POSIX shell.
std::string ShellQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string Percent(double fraction) { return absl::StrCat(FormatNumber(100 * fraction), " %"); }

const TimedTrial* FinalTimeOf(const SearchOutcome& outcome) {
  if (!outcome.best.has_value()) return nullptr;
  for (const TimedTrial& time : outcome.final_times) {
    if (time.request.transforms == outcome.best->transforms && time.request.run == outcome.best->run &&
        time.failure.empty() && time.rounds > 0) {
      return &time;
    }
  }
  return nullptr;
}

// Writes the measurements that all trials share as members of the object that was begun.
void WriteMeasurements(const TrialResult& result, JsonWriter* json) {
  json->Key("bytes").Count(result.bytes);
  json->Key("compressed_bytes").Count(result.compressed_bytes);
  json->Key("memory_bytes").Integer(result.memory_bytes);
  json->Key("nodes").Integer(result.nodes);
  json->Key("relative_rms").Number(result.accuracy.worst_relative_rms());
  json->Key("accuracy_drop").Number(result.accuracy.accuracy_drop());
}

void WriteRun(const RunChoice& run, JsonWriter* json) {
  json->Key("delegate").Text(run.delegate);
  json->Key("precision").Text(run.precision);
  json->Key("threads").Integer(run.threads);
}

void WriteTimeMembers(const TimedTrial& time, JsonWriter* json) {
  json->Key("seconds").Number(time.median_seconds);
  json->Key("low_seconds").Number(time.low_seconds);
  json->Key("high_seconds").Number(time.high_seconds);
  json->Key("ratio").Number(time.ratio);
  json->Key("low_ratio").Number(time.low_ratio);
  json->Key("high_ratio").Number(time.high_ratio);
  json->Key("rounds").Integer(time.rounds);
}

void WriteTimedTrials(const std::vector<TimedTrial>& times, JsonWriter* json) {
  json->BeginArray();
  for (const TimedTrial& time : times) {
    json->BeginObject();
    json->Key("transforms").Text(time.request.transforms);
    WriteRun(time.request.run, json);
    json->Key("failure").Text(time.failure);
    WriteTimeMembers(time, json);
    json->End();
  }
  json->End();
}

void WriteBudget(const SearchReport& report, JsonWriter* json) {
  const OptimizationBudget& budget = report.budget;
  json->BeginObject();
  json->Key("accuracy").Text(AccuracyText(budget));
  json->Key("max_error");
  budget.max_error.has_value() ? json->Number(*budget.max_error) : json->Null();
  json->Key("max_accuracy_drop");
  budget.max_accuracy_drop.has_value() ? json->Number(*budget.max_accuracy_drop) : json->Null();
  json->Key("max_bytes");
  budget.max_bytes.has_value() ? json->Count(*budget.max_bytes) : json->Null();
  const bool has_latency = budget.max_latency.has_value();
  json->Key("max_latency_seconds");
  has_latency&& budget.max_latency->seconds > 0 ? json->Number(budget.max_latency->seconds) : json->Null();
  json->Key("max_latency_ratio");
  has_latency&& budget.max_latency->ratio > 0 ? json->Number(budget.max_latency->ratio) : json->Null();
  json->Key("minimize").Text(report.minimize);
  json->End();
}

// Returns the groups, the most sensitive first.
std::vector<size_t> BySensitivity(const SearchOutcome& outcome) {
  std::vector<size_t> order;
  for (size_t i = 0; i < outcome.groups.size(); ++i) {
    if (outcome.sensitivities[i].in_four.has_value()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return *outcome.sensitivities[a].in_four > *outcome.sensitivities[b].in_four;
  });
  return order;
}

void PrintLayers(const SearchOutcome& outcome, const Console& console) {
  const std::vector<size_t> order = BySensitivity(outcome);
  if (order.empty()) return;
  Table table({{"most sensitive weights"}, {"read by"}, {"elements", true}, {"error in 4 bits", true}, {"stored in"}});
  for (size_t i = 0; i < std::min(kShownLayers, order.size()); ++i) {
    const WeightGroup& group = outcome.groups[order[i]];
    const bool has_storage = outcome.best.has_value() && !outcome.best->storage.codings.empty();
    table.AddRow({Printable(group.Title()), Printable(group.reader), FormatCount(static_cast<uint64_t>(group.elements)),
                  Percent(*outcome.sensitivities[order[i]].in_four),
                  has_storage ? std::string(NameOf(outcome.best->storage.codings[order[i]])) : ""});
  }
  table.Print(console, "  ");
}

}  // namespace

double SecondsOf(const SearchOutcome& outcome, const RunChoice& run) {
  for (const TimedTrial& time : outcome.run_times) {
    if (!time.request.transforms.empty() && time.request.run == run && time.failure.empty()) return time.median_seconds;
  }
  return 0;
}

std::string TransformCommand(const std::string& in_model, const std::string& out_model, const std::string& graph_inputs,
                             const std::string& graph_outputs, const std::string& transforms) {
  std::string command =
      absl::StrCat("transform_graph --in_graph=", ShellQuoted(in_model), " --out_graph=", ShellQuoted(out_model));
  if (!graph_inputs.empty()) absl::StrAppend(&command, " --inputs=", ShellQuoted(graph_inputs));
  absl::StrAppend(&command, " --outputs=", ShellQuoted(graph_outputs), " --transforms=", ShellQuoted(transforms));
  return command;
}

void PrintSearch(const SearchReport& report, const Console& console) {
  const SearchOutcome& outcome = *report.outcome;
  if (outcome.best.has_value()) {
    const TrialResult& result = outcome.best->result;
    Table table({{""}, {"original", true}, {"result", true}, {"ratio", true}});
    table.AddRow({"size", FormatBytes(report.in_bytes), FormatBytes(report.out_bytes),
                  FormatNumber(static_cast<double>(report.out_bytes) /
                               static_cast<double>(std::max<uint64_t>(1, report.in_bytes)))});
    table.AddRow({"compressed", FormatBytes(outcome.original.compressed_bytes), FormatBytes(result.compressed_bytes),
                  FormatNumber(static_cast<double>(result.compressed_bytes) /
                               static_cast<double>(std::max<uint64_t>(1, outcome.original.compressed_bytes)))});
    const TimedTrial* time = FinalTimeOf(outcome);
    if (time != nullptr) {
      const TimedTrial& original = outcome.final_times[0];
      table.AddRow({"latency", FormatSeconds(original.median_seconds), FormatSeconds(time->median_seconds),
                    absl::StrCat(FormatNumber(time->ratio), " (", FormatNumber(time->low_ratio), " to ",
                                 FormatNumber(time->high_ratio), ")")});
    }
    table.AddRow({"rms error, search", "", Percent(result.accuracy.worst_relative_rms()), ""});
    for (const HeldBackCheck& check : outcome.checks) {
      table.AddRow(
          {absl::StrCat("rms error, ", NameOf(check.inputs)), "", Percent(check.accuracy.worst_relative_rms()), ""});
      if (check.accuracy.labels.rows > 0) {
        const LabelMeasure& labels = check.accuracy.labels;
        table.AddRow({absl::StrCat("right, ", NameOf(check.inputs)),
                      absl::StrCat(labels.reference_right, " of ", labels.rows),
                      absl::StrCat(labels.right, " of ", labels.rows), ""});
      }
    }
    table.Print(console, "  ");
    console.out << "run: " << outcome.best->run.Flags();
    if (!report.precision_plan.empty()) console.out << " --precision_plan=" << Printable(report.precision_plan);
    console.out << "\n  latency of the original: " << outcome.baseline.Flags() << "\n";
  }
  PrintLayers(outcome, console);
  console.out << report.bench->trials().size() << " trials, " << report.bench->num_measured()
              << " of them measured now\n";
  if (outcome.best.has_value()) console.out << "reproduce: " << Printable(report.command) << "\n";
}

void WriteSearchJson(const SearchReport& report, JsonWriter* json) {
  const SearchOutcome& outcome = *report.outcome;
  json->BeginObject();
  json->Key("format").Integer(1);
  json->Key("tool").Text(absl::StrCat("optimize_model ", kVersion));
  json->Key("date").Text(report.date);
  json->Key("machine").Text(report.machine);
  json->Key("in_model").Text(report.in_model);
  json->Key("in_bytes").Count(report.in_bytes);
  json->Key("budget");
  WriteBudget(report, json);
  json->Key("inputs").BeginObject();
  json->Key("search").Count(report.num_search_inputs);
  json->Key("held_back").Count(report.num_held_back_inputs);
  json->End();
  json->Key("interrupted").Bool(outcome.was_interrupted);
  json->Key("notes").Texts(report.notes);
  json->Key("original").BeginObject();
  WriteMeasurements(outcome.original, json);
  WriteRun(outcome.baseline, json);
  json->End();
  json->Key("result");
  if (!outcome.best.has_value()) {
    json->Null();
  } else {
    json->BeginObject();
    json->Key("out_model").Text(report.out_model);
    json->Key("file_bytes").Count(report.out_bytes);
    json->Key("certificate_bytes").Count(report.certificate_bytes);
    json->Key("transforms").Text(outcome.best->transforms);
    json->Key("command").Text(report.command);
    WriteRun(outcome.best->run, json);
    json->Key("precision_plan").Text(report.precision_plan);
    json->Key("calibration").Text(report.calibration);
    WriteMeasurements(outcome.best->result, json);
    if (const TimedTrial* time = FinalTimeOf(outcome)) WriteTimeMembers(*time, json);
    json->Key("checks").BeginArray();
    for (const HeldBackCheck& check : outcome.checks) {
      json->BeginObject();
      json->Key("inputs").Text(NameOf(check.inputs));
      json->Key("relative_rms").Number(check.accuracy.worst_relative_rms());
      json->Key("accuracy_drop").Number(check.accuracy.accuracy_drop());
      json->Key("labelled_rows").Integer(check.accuracy.labels.rows);
      json->Key("right").Integer(check.accuracy.labels.right);
      json->Key("reference_right").Integer(check.accuracy.labels.reference_right);
      json->Key("share_of_budget").Number(check.share);
      json->End();
    }
    json->End();
    json->End();
  }
  json->Key("nearest_miss");
  if (!outcome.nearest.has_value()) {
    json->Null();
  } else {
    json->BeginObject();
    json->Key("transforms").Text(outcome.nearest->model.transforms);
    WriteRun(outcome.nearest->model.run, json);
    WriteMeasurements(outcome.nearest->model.result, json);
    json->Key("accuracy_share").Number(outcome.nearest->accuracy_share);
    json->Key("size_share").Number(outcome.nearest->size_share);
    json->Key("latency_share").Number(outcome.nearest->latency_share);
    json->End();
  }
  json->Key("run_times");
  WriteTimedTrials(outcome.run_times, json);
  json->Key("final_times");
  WriteTimedTrials(outcome.final_times, json);
  json->Key("layers").BeginArray();
  for (size_t i = 0; i < outcome.groups.size(); ++i) {
    const WeightGroup& group = outcome.groups[i];
    const GroupSensitivity& sensitivity = outcome.sensitivities[i];
    json->BeginObject();
    json->Key("constants").Texts(group.constants);
    json->Key("elements").Integer(group.elements);
    json->Key("reader").Text(group.reader);
    json->Key("error_in_four_bits");
    sensitivity.in_four.has_value() ? json->Number(*sensitivity.in_four) : json->Null();
    json->Key("error_in_blocks_of_four_bits");
    sensitivity.in_blocks.has_value() ? json->Number(*sensitivity.in_blocks) : json->Null();
    json->Key("error_in_eight_bits");
    sensitivity.in_eight.has_value() ? json->Number(*sensitivity.in_eight) : json->Null();
    json->Key("stored_in");
    outcome.best.has_value() && i < outcome.best->storage.codings.size()
        ? json->Text(NameOf(outcome.best->storage.codings[i]))
        : json->Null();
    json->End();
  }
  json->End();
  json->Key("trials").BeginArray();
  for (const auto& [request, result] : report.bench->trials()) {
    json->BeginObject();
    json->Key("transforms").Text(request.transforms);
    WriteRun(request.run, json);
    json->Key("inputs").Text(NameOf(request.inputs));
    json->Key("failure").Text(result.failure);
    WriteMeasurements(result, json);
    json->Key("run_seconds").Number(SecondsOf(outcome, request.run));
    json->Key("share_of_budget").Number(result.failure.empty() ? AccuracyShare(report.budget, result.accuracy) : 0);
    json->End();
  }
  json->End();
  json->End();
}

std::string SearchPage(const SearchReport& report) {
  std::ostringstream facts;
  JsonWriter json(facts);
  WriteSearchJson(report, &json);
  return absl::StrReplaceAll(kPageHtml, {{"{{TITLE}}", HtmlEscaped(absl::StrCat("Optimisation of ", report.in_model))},
                                         {"{{STYLE}}", kPageCss},
                                         {"{{PARTS}}", kPagePartsJs},
                                         {"{{SCRIPT}}", kSearchPageJs},
                                         {"{{FACTS}}", EmbeddableJson(facts.str())}});
}

absl::Status SearchVerdict(const SearchReport& report) {
  const SearchOutcome& outcome = *report.outcome;
  if (outcome.best.has_value()) return absl::OkStatus();
  if (!outcome.nearest.has_value()) {
    if (outcome.was_interrupted) {
      return absl::CancelledError("stopped before a model within the budget was found; nothing was written");
    }
    return AnswerIsNo("no trial could be measured within the budget; nothing was written");
  }
  const NearestMiss& miss = *outcome.nearest;
  std::string text = "no model is within the budget; nothing was written. The nearest: ";
  absl::StrAppend(&text, FormatBytes(miss.model.result.bytes), ", rms error ",
                  Percent(miss.model.result.accuracy.worst_relative_rms()), ", ", miss.model.run.Flags());
  const std::pair<absl::string_view, double> shares[] = {
      {"accuracy", miss.accuracy_share}, {"size", miss.size_share}, {"latency", miss.latency_share}};
  bool exceeds = false;
  for (const auto& [name, share] : shares) {
    if (share <= 1) continue;
    exceeds = true;
    absl::StrAppend(&text, "; ", name, " is ", FormatNumber(share), " times its limit");
  }
  if (!exceeds)
    absl::StrAppend(&text,
                    "; it fits the inputs of the search, but not the checks on other inputs or the last "
                    "timing");
  return AnswerIsNo(text);
}

}  // namespace permafrost
