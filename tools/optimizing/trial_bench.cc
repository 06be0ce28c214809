// Runs trials in child processes and reads their results.
#include "tools/optimizing/trial_bench.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "io/formats/checkpoint/checkpoint.h"
#include "io/formats/zstd.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/packing/precision_plan_bytes.h"
#include "runtime_check/precision/value_range.h"
#include "runtime_check/session.h"
#include "tools/measuring/interleaved_runs.h"
#include "tools/model/precision_plan_file.h"
#include "tools/model/precision_request.h"
#include "tools/optimizing/weight_groups.h"
#include "tools/transform/weight_rounding.h"
#include "tools/validation/scoring.h"
#include "tools/validation/validation.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

// Number of given and of random inputs with which the sensitivity of layers is measured: one input may not use a layer,
// more than a few hardly change the order.
constexpr size_t kFewSets = 2;
// Sets of inputs that choose the codes of weights: more change codes little, and each takes a run.
constexpr size_t kMostCalibrationSets = 16;

std::vector<std::string> TextsOf(absl::Span<const Endpoint> endpoints) {
  std::vector<std::string> texts;
  for (const Endpoint& endpoint : endpoints) texts.push_back(endpoint.text);
  return texts;
}

// Adds the errors of all outputs over the given or the random sets.
void AddErrors(absl::Span<const Endpoint> outputs, const std::vector<LabelledSet>& sets, bool is_random,
               const SampleOutputs& expected, const SampleOutputs& actual, AccuracyMeasure* measure) {
  std::vector<OutputError> errors(outputs.size());
  bool is_any = false;
  for (size_t s = 0; s < sets.size(); ++s) {
    if (sets[s].is_random != is_random) continue;
    is_any = true;
    for (size_t i = 0; i < outputs.size(); ++i) errors[i].Add(expected[s][i], actual[s][i]);
  }
  if (!is_any) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputError& error = errors[i];
    OutputMeasure& output = measure->outputs.emplace_back();
    output.name = is_random ? absl::StrCat(outputs[i].text, ", random inputs") : outputs[i].text;
    output.relative_rms = error.is_comparable() ? error.relative() : std::numeric_limits<double>::infinity();
    if (std::isnan(output.relative_rms)) output.relative_rms = std::numeric_limits<double>::infinity();
    output.rms = std::isnan(error.rms()) ? std::numeric_limits<double>::infinity() : error.rms();
    // The classes of noise mean nothing, and may change by rounding.
    output.class_rows = is_random ? 0 : error.class_rows();
    output.other_classes = is_random ? 0 : error.num_other_classes();
  }
}

// Compares all outputs of the sets, and scores them against the labels.
AccuracyMeasure Compare(absl::Span<const Endpoint> outputs, const std::vector<LabelledSet>& sets,
                        const SampleOutputs& expected, const SampleOutputs& actual) {
  AccuracyMeasure measure;
  AddErrors(outputs, sets, /*is_random=*/false, expected, actual, &measure);
  AddErrors(outputs, sets, /*is_random=*/true, expected, actual, &measure);
  for (size_t s = 0; s < sets.size(); ++s) {
    if (sets[s].classes.empty()) continue;
    Labels labels;
    labels.classes = sets[s].classes;
    const auto rows = static_cast<int64_t>(labels.classes.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      OutputScore score;
      score.kind = KindOfAnswers(expected[s][i], rows, labels);
      if (score.kind != OutputScore::Kind::kClasses || actual[s][i].shape() != expected[s][i].shape()) continue;
      AddAnswers(expected[s][i], actual[s][i], 0, rows, labels, &score);
      measure.labels.rows += rows;
      measure.labels.right += score.candidate.right;
      measure.labels.reference_right += score.reference.right;
      break;  // The labels are those of the first output that fits them.
    }
  }
  return measure;
}

TrialResult Failed(const absl::Status& status) {
  TrialResult result;
  result.failure = std::string(status.message());
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrialBench>> TrialBench::Create(const Graph& original, const SearchInputs& inputs,
                                                               Journal& journal, FileSystem& files,
                                                               BenchSettings settings) {
  auto bench = std::unique_ptr<TrialBench>(new TrialBench(original, inputs, journal, files, std::move(settings)));
  std::vector<size_t> few;
  for (const size_t first : {size_t{0}, inputs.num_given_search}) {
    const size_t last = first == inputs.num_given_search ? inputs.search.size() : inputs.num_given_search;
    for (size_t i = first; i < std::min(last, first + kFewSets); ++i) few.push_back(i);
  }
  for (const size_t i : few) bench->few_.push_back(inputs.search[i]);
  for (const TrialInputs group : {TrialInputs::kSearch, TrialInputs::kHeldBack, TrialInputs::kSeeded}) {
    PF_ASSIGN_OR_RETURN(bench->expected_[group], bench->RunOriginal(bench->Sets(group)));
  }
  for (const size_t i : few) bench->expected_[TrialInputs::kFew].push_back(bench->expected_[TrialInputs::kSearch][i]);
  return bench;
}

const std::vector<LabelledSet>& TrialBench::Sets(TrialInputs inputs) const {
  switch (inputs) {
    case TrialInputs::kFew:
      return few_;
    case TrialInputs::kSearch:
      return inputs_.search;
    case TrialInputs::kHeldBack:
      return inputs_.held_back;
    case TrialInputs::kSeeded:
      break;
  }
  return inputs_.seeded;
}

const SampleOutputs& TrialBench::Expected(TrialInputs inputs) const { return expected_.at(inputs); }

absl::StatusOr<SampleOutputs> TrialBench::RunOriginal(const std::vector<LabelledSet>& sets) const {
  SampleOutputs outputs;
  SessionOptions options = settings_.session;
  options.num_threads = settings_.passes_threads;
  PF_ASSIGN_OR_RETURN(const RunningModel model,
                      RunningModel::Create(original_, original_.inputs(), TextsOf(original_.outputs()), options));
  for (const LabelledSet& set : sets) {
    PF_ASSIGN_OR_RETURN(outputs.emplace_back(), model.Run(set.feeds));
  }
  return outputs;
}

absl::Status TrialBench::SetBase(const std::string& transforms) {
  base_graph_ = nullptr;
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, Transform(transforms));
  base_ = transforms;
  base_graph_ = std::move(graph);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Graph>> TrialBench::Transform(const std::string& transforms) const {
  const bool has_base = base_graph_ != nullptr && absl::StartsWith(transforms, base_) &&
                        (transforms.size() == base_.size() || transforms[base_.size()] == ' ');
  std::unique_ptr<Graph> graph = has_base ? base_graph_->Clone() : original_.Clone();
  const std::string rest = has_base ? transforms.substr(base_.size()) : transforms;
  if (rest.find_first_not_of(' ') == std::string::npos) return graph;
  PF_ASSIGN_OR_RETURN(const std::vector<PassCall> calls, ParseTransforms(rest));
  const KernelEvaluator evaluator;
  PassContext context;
  context.evaluator = &evaluator;
  context.num_threads = settings_.passes_threads;
  context.read_file = [this](absl::string_view path) -> absl::StatusOr<std::string> {
    if (path == kCalibrationName) return calibration_;
    return files_.ReadFile(std::string(path));
  };
  context.open_checkpoint = [this](absl::string_view path) { return OpenCheckpoint(files_, std::string(path)); };
  PF_RETURN_IF_ERROR(RunPipeline(&graph, calls, &context).status());
  return graph;
}

absl::StatusOr<bool> TrialBench::Calibrate(const std::string& transforms) {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, Transform(transforms));
  std::vector<InputSet> samples;
  for (const LabelledSet& set : inputs_.search) {
    if (samples.size() < kMostCalibrationSets) samples.push_back(set.feeds);
  }
  SessionOptions options = settings_.session;
  options.num_threads = settings_.passes_threads;
  options.loop_limits.is_cancelled = settings_.must_stop;
  std::string text;
  for (const auto& [bits, block] : {std::pair(8, 0), std::pair(4, 0), std::pair(4, kWeightsPerBlock)}) {
    if (settings_.must_stop()) return absl::CancelledError("stopped between trials");
    ConstantRoundingSettings rounding;
    rounding.bits = bits;
    rounding.block = block;
    rounding.num_threads = settings_.passes_threads;
    PF_ASSIGN_OR_RETURN(const std::string lines, RoundedConstantsText(*graph, samples, options, rounding));
    text += lines;
  }
  calibration_ = std::move(text);
  return !calibration_.empty();
}

absl::StatusOr<SessionOptions> TrialBench::OptionsOf(const RunChoice& run) const {
  SessionOptions options = settings_.session;
  options.num_threads = run.threads;
  PF_ASSIGN_OR_RETURN(options.delegate, MakeDelegate(run.delegate, {run.precision, PlanOf(run), nullptr}));
  return options;
}

absl::StatusOr<std::string> TrialBench::RunTrial(const TrialRequest& request) const {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, Transform(request.transforms));
  TrialResult result;
  result.nodes = static_cast<int64_t>(graph->num_nodes());
  PF_ASSIGN_OR_RETURN(result.bytes, EncodedSize(*graph, settings_.save));
  // The sensitivity of a layer needs no size.
  if (request.inputs == TrialInputs::kSearch) {
    PF_ASSIGN_OR_RETURN(result.compressed_bytes, CompressedSize(*graph));
  }
  PF_ASSIGN_OR_RETURN(const SessionOptions options, OptionsOf(request.run));
  PF_ASSIGN_OR_RETURN(const RunningModel model,
                      RunningModel::Create(*graph, original_.inputs(), TextsOf(graph->outputs()), options));
  SampleOutputs outputs;
  for (const LabelledSet& set : Sets(request.inputs)) {
    PF_ASSIGN_OR_RETURN(outputs.emplace_back(), model.Run(set.feeds));
  }
  const PlanReport report = model.session().FullReport();
  if (!report.delegation.failure.empty()) return absl::FailedPreconditionError(report.delegation.failure);
  const DelegateInfo* info = FindDelegateInfo(request.run.delegate);
  if (info != nullptr && !info->is_reference && report.delegation.partitions.empty()) {
    return absl::FailedPreconditionError("the delegate takes no part of the model");
  }
  result.memory_bytes = report.arena_bytes + report.constant_bytes;
  for (const DelegationReport::Taken& partition : report.delegation.partitions) {
    result.memory_bytes += partition.constant_bytes + partition.scratch_bytes;
  }
  result.accuracy = Compare(original_.outputs(), Sets(request.inputs), Expected(request.inputs), outputs);
  std::ostringstream text;
  JsonWriter json(text);
  WriteTrialResult(result, &json);
  return text.str();
}

void TrialBench::Keep(const std::string& key, const std::string& json) {
  const absl::Status status = journal_.Add(key, json);
  if (status.ok() || journal_failed_) return;
  journal_failed_ = true;
  settings_.note(absl::StrCat("the journal is incomplete from here on: ", status.message()));
}

absl::StatusOr<std::vector<TrialResult>> TrialBench::Measure(const std::vector<TrialRequest>& requests) {
  std::vector<TrialResult> results(requests.size());
  std::vector<IsolatedFunction> functions;
  std::vector<size_t> places;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (const std::string* known = journal_.Find(requests[i].Key()); known != nullptr) {
      PF_ASSIGN_OR_RETURN(results[i], ParseTrialResult(*known));
      continue;
    }
    functions.push_back([this, request = requests[i]] { return RunTrial(request); });
    places.push_back(i);
  }
  bool was_cancelled = false;
  RunIsolated(functions, settings_.isolation, settings_.must_stop,
              [&](size_t index, absl::StatusOr<std::string> answer) {
                const size_t place = places[index];
                if (absl::IsCancelled(answer.status())) {
                  was_cancelled = true;
                  return;
                }
                absl::StatusOr<TrialResult> parsed = answer.ok() ? ParseTrialResult(*answer) : answer.status();
                results[place] = parsed.ok() ? *std::move(parsed) : Failed(parsed.status());
                std::ostringstream text;
                JsonWriter json(text);
                WriteTrialResult(results[place], &json);
                Keep(requests[place].Key(), text.str());
                ++num_measured_;
              });
  if (was_cancelled) return absl::CancelledError("stopped between trials");
  for (size_t i = 0; i < requests.size(); ++i) {
    if (by_key_.emplace(requests[i].Key(), trials_.size()).second) trials_.emplace_back(requests[i], results[i]);
  }
  return results;
}

absl::StatusOr<TrialResult> TrialBench::Measure(const TrialRequest& request) {
  PF_ASSIGN_OR_RETURN(const std::vector<TrialResult> results, Measure(std::vector<TrialRequest>{request}));
  return results[0];
}

absl::StatusOr<std::string> TrialBench::RunContest(const std::vector<TrialRequest>& requests) const {
  std::vector<TimedTrial> times(requests.size());
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<std::unique_ptr<RunningModel>> models;
  std::vector<Contestant> contestants;
  std::vector<size_t> places;
  const InputSet& feeds = few_[0].feeds;
  for (size_t i = 0; i < requests.size(); ++i) {
    absl::StatusOr<std::unique_ptr<Graph>> graph = Transform(requests[i].transforms);
    absl::StatusOr<SessionOptions> options = OptionsOf(requests[i].run);
    absl::Status status = graph.ok() ? options.status() : graph.status();
    if (status.ok()) {
      absl::StatusOr<RunningModel> model =
          RunningModel::Create(**graph, original_.inputs(), TextsOf((*graph)->outputs()), *std::move(options));
      status = model.status();
      if (model.ok()) status = model->Run(feeds).status();
      if (status.ok()) models.push_back(std::make_unique<RunningModel>(*std::move(model)));
    }
    if (!status.ok()) {
      times[i].failure = std::string(status.message());
      continue;
    }
    graphs.push_back(*std::move(graph));
    const RunningModel* model = models.back().get();
    contestants.push_back({requests[i].run.Flags(), [model, &feeds] { return model->Run(feeds).status(); }});
    places.push_back(i);
  }
  ContestLimits limits;
  limits.max_seconds = settings_.timing_seconds;
  const std::vector<ContestResult> results = RunInterleaved(contestants, limits, [](int) {});
  for (size_t c = 0; c < results.size(); ++c) {
    TimedTrial& time = times[places[c]];
    if (!results[c].status.ok()) {
      time.failure = std::string(results[c].status.message());
      continue;
    }
    const Sample rounds(results[c].rounds);
    time.median_seconds = rounds.median();
    time.low_seconds = rounds.MedianInterval().low;
    time.high_seconds = rounds.MedianInterval().high;
    time.rounds = static_cast<int64_t>(rounds.size());
    const Sample ratio = RatioOf(results[c], results[0]);
    time.ratio = ratio.median();
    time.low_ratio = ratio.MedianInterval().low;
    time.high_ratio = ratio.MedianInterval().high;
  }
  std::ostringstream text;
  JsonWriter json(text);
  WriteTimes(times, &json);
  return text.str();
}

absl::StatusOr<std::string> TrialBench::RunJournaled(const std::string& key, const IsolatedFunction& function,
                                                     double timeout_seconds) {
  if (const std::string* known = journal_.Find(key); known != nullptr) return *known;
  IsolationLimits limits = settings_.isolation;
  limits.timeout_seconds = std::max(limits.timeout_seconds, timeout_seconds);
  absl::StatusOr<std::string> result = absl::InternalError("no result");
  RunIsolated({function}, limits, settings_.must_stop,
              [&](size_t, absl::StatusOr<std::string> answer) { result = std::move(answer); });
  if (result.ok()) Keep(key, *result);
  return result;
}

absl::StatusOr<std::vector<TimedTrial>> TrialBench::MeasureTimes(const std::vector<TrialRequest>& requests) {
  const std::string key =
      absl::StrCat("times | ", absl::StrJoin(requests, " || ", [](std::string* out, const TrialRequest& request) {
                     absl::StrAppend(out, request.run.Flags(), " | ", request.transforms);
                   }));
  PF_ASSIGN_OR_RETURN(const std::string text,
                      RunJournaled(
                          key, [&] { return RunContest(requests); }, 4 * settings_.timing_seconds));
  PF_ASSIGN_OR_RETURN(std::vector<TimedTrial> times, ParseTimes(text, requests));
  return times;
}

absl::StatusOr<std::string> TrialBench::RunPlanning(const std::string& transforms, const RunChoice& run) const {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, Transform(transforms));
  std::vector<InputSet> samples;
  for (const LabelledSet& set : inputs_.search) samples.push_back(set.feeds);
  SessionOptions options = settings_.session;
  options.num_threads = run.threads;
  PF_ASSIGN_OR_RETURN(const PrecisionChoice choice,
                      ChooseOnSamples(*graph, graph->inputs(), graph->outputs(), samples, run.delegate, run.precision,
                                      RangeMethod::kMse, options));
  if (choice.plan == nullptr) {
    return absl::FailedPreconditionError(choice.trials.empty() ? "no plan was found" : choice.trials[0].reason);
  }
  return PrecisionPlanText({"", run.delegate, run.precision, choice.plan});
}

absl::Status TrialBench::PlanPrecision(const std::string& transforms, const RunChoice& run) {
  // A search for a mixed plan takes about a minute besides its calibration (ChoiceOptions::search_seconds).
  constexpr double kPlanningSeconds = 900;
  PF_ASSIGN_OR_RETURN(const std::string text, RunJournaled(
                                                  absl::StrCat("plan | ", run.Flags(), " | ", transforms),
                                                  [&] { return RunPlanning(transforms, run); }, kPlanningSeconds));
  PF_ASSIGN_OR_RETURN(const PrecisionPlanRecord record, ParsePrecisionPlan(text));
  plans_[absl::StrCat(run.delegate, " ", run.precision)] = record.plan;
  return absl::OkStatus();
}

std::shared_ptr<const PrecisionPlan> TrialBench::PlanOf(const RunChoice& run) const {
  const auto found = plans_.find(absl::StrCat(run.delegate, " ", run.precision));
  return found == plans_.end() ? nullptr : found->second;
}

}  // namespace permafrost
