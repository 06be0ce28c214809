// Measures two models in alternation.
#include "tools/benchmark/model_comparison.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "tools/benchmark/benchmark_report.h"
#include "tools/command_line/interruption.h"

namespace permafrost {

absl::StatusOr<ModelComparison> CompareModels(const BenchmarkSubject& first, const std::string& first_name,
                                              const BenchmarkSubject& second, const std::string& second_name,
                                              const SessionOptions& options, const ContestLimits& limits,
                                              const Console& console) {
  ModelComparison comparison;
  comparison.models = {first_name, second_name};
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<Contestant> contestants;
  for (const BenchmarkSubject* subject : {&first, &second}) {
    const std::string& name = comparison.models[sessions.size()];
    console.Progress(absl::StrCat("preparing ", name));
    absl::StatusOr<std::unique_ptr<Session>> session = subject->NewSession(options);
    PF_RETURN_IF_ERROR(Annotate(session.status(), absl::StrCat("'", name, "'")));
    Session* pointer = sessions.emplace_back(*std::move(session)).get();
    const absl::StatusOr<std::vector<Tensor>> outputs = pointer->Run(subject->feeds());
    PF_RETURN_IF_ERROR(Annotate(outputs.status(), absl::StrCat("'", name, "'")));
    for (const std::string& note : NonFiniteNotes(subject->outputs(), *outputs)) {
      comparison.notes.push_back(absl::StrCat("'", name, "': ", note));
    }
    contestants.push_back({name, [pointer, subject] { return pointer->Run(subject->feeds()).status(); }});
  }
  // The measurement continues even if the winner is clear, since the ratio is the result.
  ContestLimits both = limits;
  both.hopeless_ratio = 1e9;
  comparison.results = RunInterleaved(
      contestants, both, [&](int round) { console.Progress(absl::StrCat("comparing two models, round ", round + 1)); });
  console.Progress("");
  for (size_t i = 0; i < comparison.results.size(); ++i) {
    PF_RETURN_IF_ERROR(Annotate(comparison.results[i].status, absl::StrCat("'", comparison.models[i], "'")));
  }
  comparison.was_interrupted = Interruption::IsRequested();
  return comparison;
}

void PrintModelComparison(const ModelComparison& comparison, const Console& console) {
  PrintWarnings(comparison.notes, console);
  Table table({{"model"}, {"median", true}, {"p90", true}, {"p99", true}, {"runs", true}});
  for (size_t i = 0; i < comparison.models.size(); ++i) {
    const Sample seconds(comparison.results[i].seconds);
    table.AddRow({Printable(comparison.models[i]), FormatSeconds(seconds.median()),
                  FormatSeconds(seconds.Percentile(0.9)), FormatSeconds(seconds.Percentile(0.99)),
                  absl::StrCat(seconds.size())});
  }
  table.Print(console, "  ");
  const Sample ratio = comparison.ratio();
  const Interval interval = ratio.MedianInterval();
  if (ratio.empty()) return;
  console.out << absl::StrFormat("the second takes %.3f times as long as the first (95 %% sure: %.3f to %.3f): ",
                                 ratio.median(), interval.low, interval.high)
              << (interval.low > 1    ? "it is slower"
                  : interval.high < 1 ? "it is faster"
                                      : "not told apart")
              << "\n";
}

void WriteModelComparison(const ModelComparison& comparison, JsonWriter* json) {
  json->BeginObject();
  json->Key("interrupted").Bool(comparison.was_interrupted);
  json->Key("notes").Texts(comparison.notes);
  json->Key("models").BeginArray();
  for (size_t i = 0; i < comparison.models.size(); ++i) {
    json->BeginObject();
    json->Key("model").Text(comparison.models[i]);
    json->Key("runs");
    WriteSample(Sample(comparison.results[i].seconds), json);
    json->End();
  }
  json->End();
  const Sample ratio = comparison.ratio();
  json->Key("ratio").Number(ratio.median());
  json->Key("ratio_low").Number(ratio.MedianInterval().low);
  json->Key("ratio_high").Number(ratio.MedianInterval().high);
  json->End();
}

}  // namespace permafrost
