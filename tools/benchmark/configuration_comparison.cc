// Creates a session for each configuration and measures them in alternation.
#include "tools/benchmark/configuration_comparison.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/delegate_list.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/precision/precision_choice.h"
#include "runtime_check/threads/processors.h"
#include "tools/benchmark/benchmark_report.h"
#include "tools/command_line/interruption.h"

namespace permafrost {
namespace {

// The problems of the outputs, by delegate and precision.
using Objections = std::map<std::pair<std::string, std::string>, std::string>;

absl::StatusOr<Objections> FindObjections(const BenchmarkSubject& subject,
                                          const std::vector<Configuration>& configurations,
                                          const SessionOptions& options, const DelegateOptions& switches,
                                          const Console& console) {
  Objections objections;
  std::vector<std::string> feeds;
  for (const BenchmarkInput& input : subject.inputs()) feeds.push_back(input.name);
  if (subject.outputs().empty()) return objections;
  ChoiceOptions choice_options;
  choice_options.delegate = switches;
  std::vector<std::string> names;
  for (const Configuration& one : configurations) {
    const DelegateInfo* info = FindDelegateInfo(one.delegate);
    const bool is_reference = info != nullptr && info->is_reference;
    if (!is_reference && std::find(names.begin(), names.end(), one.delegate) == names.end()) {
      names.push_back(one.delegate);
    }
  }
  for (const std::string& name : names) {
    if (Interruption::IsRequested()) continue;
    console.Progress(absl::StrCat("checking the answers of ", name));
    PF_ASSIGN_OR_RETURN(
        const PrecisionChoice choice,
        ChoosePrecision(subject.graph(), feeds, subject.outputs(), {subject.feeds()}, name, options, choice_options));
    for (const PrecisionTrial& trial : choice.trials) {
      if (trial.is_within_budget) continue;
      objections[{name, trial.precision}] = trial.reason;
    }
  }
  return objections;
}

absl::StatusOr<std::unique_ptr<Session>> NewSession(const BenchmarkSubject& subject, const Configuration& configuration,
                                                    SessionOptions options, DelegateOptions delegate_options) {
  options.num_threads = configuration.num_threads;
  delegate_options.precision = configuration.precision;
  PF_ASSIGN_OR_RETURN(options.delegate, MakeDelegates(configuration.delegate, delegate_options));
  return subject.NewSession(std::move(options));
}

std::string RatioText(const Interval& interval, double median) {
  return absl::StrFormat("%.2f (%.2f to %.2f)", median, interval.low, interval.high);
}

// Returns the table's remark on a configuration that is neither the winner nor clearly slower.
std::string Remark(const Comparison& comparison, size_t i) {
  const ComparedConfiguration& compared = comparison.configurations[i];
  if (!compared.objection.empty()) return compared.objection;
  if (static_cast<int>(i) == comparison.winner) return "the fastest";
  if (std::find(comparison.equals.begin(), comparison.equals.end(), static_cast<int>(i)) != comparison.equals.end()) {
    return "not told apart from the fastest";
  }
  return compared.result.was_dropped ? "slower; left early" : "slower";
}

void Judge(Comparison* comparison) {
  std::vector<ComparedConfiguration>& all = comparison->configurations;
  const auto key = [](const ComparedConfiguration& one) {
    const Sample rounds(one.result.rounds);
    return rounds.empty() ? std::numeric_limits<double>::infinity() : rounds.median();
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  std::vector<ContestResult> results;
  for (const ComparedConfiguration& one : all) results.push_back(one.result);
  comparison->winner = FastestOf(results, [&](int i) { return all[static_cast<size_t>(i)].objection.empty(); });
  if (comparison->winner < 0) return;
  for (size_t i = 0; i < all.size(); ++i) {
    if (static_cast<int>(i) == comparison->winner || !all[i].objection.empty()) continue;
    const Sample ratio = RatioOf(results[i], results[static_cast<size_t>(comparison->winner)]);
    if (!ratio.empty() && !all[i].result.was_dropped && ratio.MedianInterval().low <= 1) {
      comparison->equals.push_back(static_cast<int>(i));
    }
  }
}

}  // namespace

std::string Configuration::Flags() const {
  return absl::StrCat("--delegate=", delegate, " --precision=", precision, " --threads=", num_threads);
}

std::vector<Configuration> AllConfigurations(int most_threads) {
  const int most = most_threads > 0 ? most_threads : AvailableProcessors();
  std::vector<int> threads;
  for (int count = 1; count < most; count *= 2) threads.push_back(count);
  threads.push_back(most);
  std::vector<Configuration> configurations;
  std::vector<std::string> installed;
  for (const DelegateInfo& info : KnownDelegates()) {
    // A device computes the same with any number of threads; without a device there is nothing to compare.
    const bool is_installed = MakeDelegate(info.name, {}).ok();
    if (info.needs_device && !is_installed) continue;
    if (!info.is_reference && is_installed) installed.push_back(info.name);
    for (const std::string& precision : info.precisions) {
      if (info.needs_device) {
        configurations.push_back({info.name, precision, most});
        continue;
      }
      for (const int count : threads) configurations.push_back({info.name, precision, count});
    }
  }
  // All delegates together, each node where the estimate is shortest.
  if (installed.size() > 1) {
    installed.emplace_back(kReferenceDelegate);
    configurations.push_back({absl::StrJoin(installed, ","), DelegateOptions().precision, most});
  }
  return configurations;
}

absl::StatusOr<Comparison> CompareConfigurations(const BenchmarkSubject& subject,
                                                 const std::vector<Configuration>& configurations,
                                                 const SessionOptions& options, const DelegateOptions& switches,
                                                 const ContestLimits& limits, const Console& console) {
  // The search of precisions and the preparation of sessions take seconds, and there is nothing to print yet.
  std::optional<EndsAtOnce> ends_at_once(std::in_place);
  PF_ASSIGN_OR_RETURN(const Objections objections, FindObjections(subject, configurations, options, switches, console));
  Comparison comparison;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<Contestant> contestants;
  std::vector<size_t> places;  // By contestant, the index of its configuration.
  for (const Configuration& configuration : configurations) {
    if (Interruption::IsRequested()) break;
    ComparedConfiguration& compared = comparison.configurations.emplace_back();
    compared.configuration = configuration;
    const auto objection = objections.find({configuration.delegate, configuration.precision});
    if (objection != objections.end()) compared.objection = objection->second;
    console.Progress(absl::StrCat("preparing ", configuration.Flags()));
    const DelegateInfo* delegate = FindDelegateInfo(configuration.delegate);
    const bool is_reference = delegate != nullptr && delegate->is_reference;
    absl::StatusOr<std::unique_ptr<Session>> session = NewSession(subject, configuration, options, switches);
    if (!session.ok()) {
      if (is_reference) return session.status();
      compared.objection = absl::StrCat("does not run: ", session.status().message());
      continue;
    }
    if ((*session)->FullReport().delegation.partitions.empty() && !is_reference) {
      // The bodies of functions and the nodes behind branches are planned when a run reaches them.
      const absl::Status status = (*session)->Run(subject.feeds()).status();
      if (status.ok() && (*session)->FullReport().delegation.partitions.empty()) {
        compared.objection = "the delegate takes no part";
        continue;
      }
    }
    if (IsDelegateList(configuration.delegate)) {
      const std::vector<DelegationReport::Taken> partitions = (*session)->FullReport().delegation.partitions;
      const bool is_one = std::all_of(partitions.begin(), partitions.end(), [&](const DelegationReport::Taken& taken) {
        return taken.delegate == partitions[0].delegate;
      });
      if (is_one) {
        compared.objection = absl::StrCat("the estimate gives every part to ", partitions[0].delegate);
        continue;
      }
    }
    Session* pointer = sessions.emplace_back(*std::move(session)).get();
    if (is_reference && comparison.notes.empty()) {
      PF_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, pointer->Run(subject.feeds()));
      comparison.notes = NonFiniteNotes(subject.outputs(), outputs);
    }
    contestants.push_back(
        {configuration.Flags(), [pointer, &subject] { return pointer->Run(subject.feeds()).status(); }});
    places.push_back(comparison.configurations.size() - 1);
  }
  ends_at_once.reset();
  std::vector<ContestResult> results = RunInterleaved(contestants, limits, [&](int round) {
    console.Progress(absl::StrCat("comparing ", contestants.size(), " configurations, round ", round + 1));
  });
  for (size_t i = 0; i < results.size(); ++i) {
    ComparedConfiguration& compared = comparison.configurations[places[i]];
    compared.result = std::move(results[i]);
    if (!compared.result.status.ok()) {
      compared.objection = absl::StrCat("fails: ", compared.result.status.message());
    } else if (!sessions[i]->report().delegation.failure.empty()) {
      compared.objection = sessions[i]->report().delegation.failure;
    }
  }
  comparison.was_interrupted = Interruption::IsRequested();
  Judge(&comparison);
  return comparison;
}

void PrintComparison(const Comparison& comparison, const Console& console) {
  PrintWarnings(comparison.notes, console);
  const std::vector<ComparedConfiguration>& all = comparison.configurations;
  Table table({{"delegate"},
               {"precision"},
               {"threads", true},
               {"median", true},
               {"p99", true},
               {"times the fastest (95 % sure)", true},
               {""}});
  for (size_t i = 0; i < all.size(); ++i) {
    const Configuration& configuration = all[i].configuration;
    const Sample rounds(all[i].result.rounds);
    std::string ratio;
    if (comparison.winner >= 0 && !rounds.empty()) {
      const Sample ratios = RatioOf(all[i].result, all[static_cast<size_t>(comparison.winner)].result);
      if (static_cast<int>(i) != comparison.winner) ratio = RatioText(ratios.MedianInterval(), ratios.median());
    }
    table.AddRow({configuration.delegate, configuration.precision, absl::StrCat(configuration.num_threads),
                  rounds.empty() ? "" : FormatSeconds(rounds.median()),
                  rounds.empty() ? "" : FormatSeconds(Sample(all[i].result.seconds).Percentile(0.99)), ratio,
                  Printable(Remark(comparison, i))});
  }
  table.Print(console, "  ");
  if (comparison.winner < 0) {
    console.out << "no configuration runs with answers that are good enough\n";
    return;
  }
  const ComparedConfiguration& winner = all[static_cast<size_t>(comparison.winner)];
  console.out << "ship: " << winner.configuration.Flags() << "\n";
  for (const int equal : comparison.equals) {
    console.out << "  not told apart: " << all[static_cast<size_t>(equal)].configuration.Flags() << "\n";
  }
}

void WriteComparison(const Comparison& comparison, JsonWriter* json) {
  json->BeginObject();
  json->Key("interrupted").Bool(comparison.was_interrupted);
  json->Key("ship");
  comparison.winner < 0
      ? json->Null()
      : json->Text(comparison.configurations[static_cast<size_t>(comparison.winner)].configuration.Flags());
  json->Key("notes").Texts(comparison.notes);
  json->Key("configurations").BeginArray();
  for (size_t i = 0; i < comparison.configurations.size(); ++i) {
    const ComparedConfiguration& compared = comparison.configurations[i];
    json->BeginObject();
    json->Key("delegate").Text(compared.configuration.delegate);
    json->Key("precision").Text(compared.configuration.precision);
    json->Key("threads").Integer(compared.configuration.num_threads);
    json->Key("remark").Text(Remark(comparison, i));
    json->Key("rounds");
    WriteSample(Sample(compared.result.rounds), json);
    json->Key("runs");
    WriteSample(Sample(compared.result.seconds), json);
    json->Key("ratio").BeginObject();
    if (comparison.winner >= 0) {
      const Sample ratios =
          RatioOf(compared.result, comparison.configurations[static_cast<size_t>(comparison.winner)].result);
      const Interval interval = ratios.MedianInterval();
      json->Key("median").Number(ratios.median());
      json->Key("low").Number(interval.low);
      json->Key("high").Number(interval.high);
    }
    json->End();
    json->End();
  }
  json->End();
  json->End();
}

}  // namespace permafrost
