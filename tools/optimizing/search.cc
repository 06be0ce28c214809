// Proposes trials and decides by their results.
#include "tools/optimizing/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "tools/command_line/console.h"

namespace permafrost {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Maximum number of groups of weights: two trials each are about half of the time of a search.
constexpr size_t kMostGroups = 128;
// Folding changes outputs by rounding only. A model for which it takes more of the budget than this is not folded.
constexpr double kFoldingShare = 0.25;
// Number of trials after the bisection that look for further steps: few if half of the time is over. Each accepts or
// halves a group of steps; few find most of what is worth finding, since the steps that save the most come first.
constexpr int kFewRefinements = 14, kMostRefinements = 60;
// If the result exceeds the budget on inputs that are held back, the search is repeated with this part of its budget.
constexpr double kTightening = 0.6;
// Error in eight bits of a group that was not measured. That of a bad one, so that its steps come late.
constexpr double kUnknownError = 0.1;
constexpr int kMostTightenings = 6;

// Codings whose error is measured for each group alone.
constexpr Coding kMeasuredCodings[] = {Coding::kFourBits, Coding::kFourBitBlocks, Coding::kEightBits};

// One reduction of a group.
struct Step {
  size_t group = 0;
  Coding to = Coding::kFloat;
  bool is_half_remainder = false;  // Small constants become float16 instead.
  double cost = 0;                 // Noise power per byte saved.
};

bool HasClasses(const AccuracyMeasure& measure) {
  return measure.labels.rows > 0 || std::any_of(measure.outputs.begin(), measure.outputs.end(),
                                                [](const OutputMeasure& output) { return output.class_rows > 0; });
}

class Search {
 public:
  Search(const Graph& original, TrialBench& bench, const SearchSettings& settings)
      : original_(original), bench_(bench), settings_(settings), budget_(settings.budget) {}

  absl::StatusOr<SearchOutcome> Run() {
    const absl::Status status = Decide();
    if (!status.ok() && !absl::IsCancelled(status)) return status;
    outcome_.was_interrupted = absl::IsCancelled(status);
    settings_.begin_checks();
    if (outcome_.was_interrupted && !outcome_.best.has_value()) PF_RETURN_IF_ERROR(KeepFolded());
    PF_RETURN_IF_ERROR(Finish());
    return std::move(outcome_);
  }

 private:
  absl::Status Decide() {
    PF_RETURN_IF_ERROR(ChooseBase());
    PF_RETURN_IF_ERROR(MeasureRuns());
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> folded, bench_.Transform(outcome_.base));
    outcome_.groups = FindWeightGroups(*folded, kMostGroups);
    outcome_.sensitivities.resize(outcome_.groups.size());
    if (settings_.minimize == Objective::kSize) return MinimizeSize();
    for (const RunChoice& run : ordered_runs_) {
      if (LatencyShare(budget_, SecondsOf(run), baseline_seconds_) > 1) continue;
      PF_ASSIGN_OR_RETURN(const bool is_found, SettleOn(run));
      if (is_found) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // --- The base ---

  absl::Status ChooseBase() {
    Progress("measuring the original");
    const RunChoice reference = {kReferenceDelegate, "f32", settings_.threads};
    PF_ASSIGN_OR_RETURN(outcome_.original, bench_.Measure({"", reference, TrialInputs::kSearch}));
    if (!outcome_.original.failure.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("the model does not run: ", outcome_.original.failure));
    }
    if (budget_.max_accuracy_drop.has_value() && !HasClasses(outcome_.original.accuracy)) {
      return absl::InvalidArgumentError(
          "--max_accuracy_drop: found neither labels nor an output of class probabilities, expected either; "
          "--max_error "
          "limits the error of other outputs");
    }
    std::vector<std::string> bases;
    bool has_calls = false;
    for (const Node* node : original_.Nodes()) {
      has_calls = has_calls || node->op() == ops::kPartitionedCall || node->op() == ops::kStatefulPartitionedCall;
    }
    for (const char* inlining : {"inline_partitionedcall ", ""}) {
      if (*inlining != '\0' && !has_calls) continue;
      if (settings_.shortens_names) {
        bases.push_back(absl::StrCat(inlining, "optimize_for_deployment sort_by_execution_order obfuscate_names"));
      }
      bases.push_back(absl::StrCat(inlining, "optimize_for_deployment"));
    }
    bases.insert(bases.end(), {"optimize_for_inference", "strip_unused_nodes", "remove_device"});
    for (const std::string& base : bases) {
      Progress(absl::StrCat("folding with ", base));
      PF_ASSIGN_OR_RETURN(const TrialResult result, bench_.Measure({base, reference, TrialInputs::kSearch}));
      const double share = result.failure.empty() ? AccuracyShare(budget_, result.accuracy) : kInfinity;
      if (share > kFoldingShare) {
        Note(absl::StrCat("passes '", base, "' are not used: ",
                          result.failure.empty() ? absl::StrCat("they change an output by ",
                                                                FormatNumber(result.accuracy.worst_relative_rms()))
                                                 : result.failure));
        continue;
      }
      outcome_.base = base;
      return bench_.SetBase(base);
    }
    return absl::FailedPreconditionError("no pass keeps the outputs of the model: see the notes");
  }

  // --- Ways to run ---

  absl::Status MeasureRuns() {
    std::vector<RunChoice> usable, floats;
    for (const std::string& name : settings_.delegates) {
      const DelegateInfo* info = FindDelegateInfo(name);
      if (info == nullptr) return absl::InvalidArgumentError(absl::StrCat("no delegate is named '", name, "'"));
      for (const std::string& precision : info->AllPrecisions()) {
        const std::vector<std::string>& wanted = settings_.precisions;
        if (!wanted.empty() && precision != info->precisions[0] &&
            std::find(wanted.begin(), wanted.end(), precision) == wanted.end()) {
          continue;
        }
        const RunChoice run = {name, precision, settings_.threads};
        Progress(absl::StrCat("trying ", run.Flags()));
        if (info->NeedsPlan(precision)) {
          const absl::Status planned = bench_.PlanPrecision(outcome_.base, run);
          if (absl::IsCancelled(planned)) return planned;
          if (!planned.ok()) {
            Note(absl::StrCat(run.Flags(), " is not used: ", planned.message()));
            continue;
          }
        }
        PF_ASSIGN_OR_RETURN(const TrialResult result, bench_.Measure({outcome_.base, run, TrialInputs::kSearch}));
        if (!result.failure.empty()) {
          Note(absl::StrCat(run.Flags(), " is not used: ", result.failure));
          continue;
        }
        memory_[run.Flags()] = result.memory_bytes;
        const bool is_float = precision == info->precisions[0];
        if (is_float) floats.push_back(run);
        if (AccuracyShare(budget_, result.accuracy) <= 1) usable.push_back(run);
      }
    }
    if (floats.empty()) return absl::FailedPreconditionError("no delegate runs the model in float");
    return TimeRuns(usable, floats);
  }

  absl::Status TimeRuns(const std::vector<RunChoice>& usable, const std::vector<RunChoice>& floats) {
    Progress("timing ways to run the model");
    std::vector<TrialRequest> contest;
    for (const RunChoice& run : floats) contest.push_back({"", run, TrialInputs::kFew});
    for (const RunChoice& run : usable) contest.push_back({outcome_.base, run, TrialInputs::kFew});
    PF_ASSIGN_OR_RETURN(outcome_.run_times, bench_.MeasureTimes(contest));
    baseline_seconds_ = kInfinity;
    double least = kInfinity;
    for (const TimedTrial& time : outcome_.run_times) {
      if (!time.failure.empty() || time.rounds == 0) continue;
      if (time.request.transforms.empty()) {
        if (time.median_seconds < baseline_seconds_) {
          baseline_seconds_ = time.median_seconds;
          outcome_.baseline = time.request.run;
        }
        continue;
      }
      seconds_[time.request.run.Flags()] = time.median_seconds;
      ordered_runs_.push_back(time.request.run);
      const bool is_float = std::find(floats.begin(), floats.end(), time.request.run) != floats.end();
      if (is_float && time.median_seconds < least) {
        least = time.median_seconds;
        fastest_float_ = time.request.run;
      }
    }
    if (ordered_runs_.empty() || !std::isfinite(least)) {
      return absl::FailedPreconditionError("no way to run the model was within the limits and could be timed");
    }
    const auto key = [this](const RunChoice& run) {
      return settings_.minimize == Objective::kMemory ? static_cast<double>(memory_[run.Flags()]) : SecondsOf(run);
    };
    std::stable_sort(ordered_runs_.begin(), ordered_runs_.end(),
                     [&](const RunChoice& a, const RunChoice& b) { return key(a) < key(b); });
    return absl::OkStatus();
  }

  double SecondsOf(const RunChoice& run) const {
    const auto found = seconds_.find(run.Flags());
    return found == seconds_.end() ? kInfinity : found->second;
  }

  // --- Weights ---

  absl::Status MeasureSensitivities() {
    if (has_sensitivities_) return absl::OkStatus();
    std::vector<std::pair<size_t, Coding>> parts;
    std::vector<TrialRequest> requests;
    for (size_t i = 0; i < outcome_.groups.size(); ++i) {
      for (const Coding coding : kMeasuredCodings) {
        Storage storage = AllIn(Coding::kFloat);
        storage.codings[i] = coding;
        parts.emplace_back(i, coding);
        requests.push_back({TransformsOf(outcome_.base, outcome_.groups, storage), fastest_float_, TrialInputs::kFew});
      }
    }
    const auto start = std::chrono::steady_clock::now();
    // Pieces, between which progress is shown.
    const size_t piece = static_cast<size_t>(std::max(2, 2 * settings_.jobs));
    for (size_t first = 0; first < requests.size(); first += piece) {
      // The largest groups come first; the rest of the time is for whole models.
      if (first > 0 && settings_.is_half_over()) {
        Note(absl::StrCat("the sensitivity of ", (requests.size() - first) / std::size(kMeasuredCodings),
                          " of the smaller groups of weights was not measured, for lack of time"));
        break;
      }
      const size_t count = std::min(piece, requests.size() - first);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      Progress(absl::StrCat("measuring the sensitivity of weights: ", first, " of ", requests.size(),
                            first == 0 ? ""
                                       : absl::StrCat(", ",
                                                      FormatSeconds(seconds / static_cast<double>(first) *
                                                                    static_cast<double>(requests.size() - first)),
                                                      " left")));
      PF_ASSIGN_OR_RETURN(const std::vector<TrialResult> results,
                          bench_.Measure({requests.begin() + static_cast<ptrdiff_t>(first),
                                          requests.begin() + static_cast<ptrdiff_t>(first + count)}));
      for (size_t i = 0; i < count; ++i) {
        const auto& [group, coding] = parts[first + i];
        GroupSensitivity& sensitivity = outcome_.sensitivities[group];
        const double error = results[i].failure.empty() ? results[i].accuracy.worst_relative_rms() : kInfinity;
        (coding == Coding::kFourBits        ? sensitivity.in_four
         : coding == Coding::kFourBitBlocks ? sensitivity.in_blocks
                                            : sensitivity.in_eight) = error;
      }
    }
    has_sensitivities_ = true;
    OrderSteps();
    return absl::OkStatus();
  }

  // Orders the steps by noise power per saved byte. A step of a group to fewer bits comes after those to more.
  void OrderSteps() {
    // Rounding to sixteen bits instead of eight has 1/256 of the error.
    constexpr double kSixteenBitNoise = 1.0 / 65536;
    for (size_t i = 0; i < outcome_.groups.size(); ++i) {
      const WeightGroup& group = outcome_.groups[i];
      // Groups that were not measured are small: they have sixteen bits if anything has.
      const double four = outcome_.sensitivities[i].in_four.value_or(kInfinity);
      const double blocks = outcome_.sensitivities[i].in_blocks.value_or(kInfinity);
      const double eight = outcome_.sensitivities[i].in_eight.value_or(kUnknownError);
      const double noise[] = {four * four, blocks * blocks, eight * eight, eight * eight * kSixteenBitNoise, 0};
      double least_cost = 0;
      Coding wider = Coding::kFloat;
      for (const Coding to : {Coding::kSixteenBits, Coding::kEightBits, Coding::kFourBitBlocks, Coding::kFourBits}) {
        // Blocks that are no more accurate than channels, such as those of depthwise convolutions, only cost bytes.
        if (to == Coding::kFourBitBlocks && !(blocks < four)) continue;
        const double saved = EstimatedBytes(group, wider) - EstimatedBytes(group, to);
        if (saved <= 0) {
          if (to == Coding::kFourBitBlocks) continue;
          break;
        }
        const double added = std::max(0.0, noise[static_cast<int>(to)] - noise[static_cast<int>(wider)]);
        if (!std::isfinite(added)) break;
        least_cost = std::max(least_cost, added / saved);
        steps_.push_back({i, to, false, least_cost});
        wider = to;
      }
    }
    steps_.push_back({0, Coding::kFloat, true, 0});
    std::stable_sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) { return a.cost < b.cost; });
  }

  // Returns the storage with the same coding for all groups.
  Storage AllIn(Coding coding) const {
    Storage storage;
    storage.codings.assign(outcome_.groups.size(), coding);
    storage.is_calibrated = outcome_.is_calibrated;
    return storage;
  }

  // Finds out whether codes that are chosen by inputs are better.
  absl::Status Calibrate() {
    if (was_calibrated_) return absl::OkStatus();
    was_calibrated_ = true;
    Progress("choosing the codes of weights by inputs");
    const absl::StatusOr<bool> has_codes = bench_.Calibrate(outcome_.base);
    if (absl::IsCancelled(has_codes.status())) return has_codes.status();
    if (!has_codes.ok() || !*has_codes) {
      Note(absl::StrCat("codes of weights are not chosen by inputs: ",
                        has_codes.ok() ? "no weights are read in a way that allows it" : has_codes.status().message()));
      return absl::OkStatus();
    }
    // Four bits show differences that rounding of activations would hide in eight.
    double errors[2] = {kInfinity, kInfinity};
    for (const bool is_calibrated : {false, true}) {
      Storage storage = AllIn(Coding::kFourBits);
      storage.is_calibrated = is_calibrated;
      PF_ASSIGN_OR_RETURN(const TrialResult result,
                          bench_.Measure({TransformsOf(outcome_.base, outcome_.groups, storage), fastest_float_,
                                          TrialInputs::kSearch}));
      if (result.failure.empty()) errors[is_calibrated ? 1 : 0] = result.accuracy.worst_relative_rms();
    }
    outcome_.is_calibrated = errors[1] < errors[0];
    if (!outcome_.is_calibrated) Note("codes of weights that are chosen by inputs were not better than others");
    return absl::OkStatus();
  }

  Storage StorageOf(const std::vector<bool>& is_applied) const {
    Storage storage = AllIn(Coding::kFloat);
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!is_applied[i]) continue;
      if (steps_[i].is_half_remainder) {
        storage.has_half_remainder = true;
      } else {
        storage.codings[steps_[i].group] = std::min(storage.codings[steps_[i].group], steps_[i].to);
      }
    }
    return storage;
  }

  // Measures a storage with a way to run. Returns whether its accuracy takes at most `limit` of the budget.
  absl::StatusOr<bool> Fits(const Storage& storage, const RunChoice& run, double limit) {
    SearchedModel model = {TransformsOf(outcome_.base, outcome_.groups, storage), run, {}, storage};
    PF_ASSIGN_OR_RETURN(model.result, bench_.Measure({model.transforms, run, TrialInputs::kSearch}));
    if (!model.result.failure.empty()) return false;
    const bool fits = AccuracyShare(budget_, model.result.accuracy) <= limit;
    if (fits) KeepIfBest(std::move(model), limit);
    return fits;
  }

  // Keeps the smallest model for the current way to run.
  void KeepIfBest(SearchedModel model, double limit) {
    Progress(absl::StrCat(FormatBytes(model.result.bytes), " with an error of ",
                          FormatNumber(100 * model.result.accuracy.worst_relative_rms()), " % fits"));
    std::optional<SearchedModel>& kept = limit < 1 ? tightened_ : smallest_;
    if (!kept.has_value() || model.result.bytes < kept->result.bytes) kept = std::move(model);
  }

  // Finds the smallest file that takes at most `limit` of the accuracy budget with this way to run, and keeps it in
  // smallest_, or in tightened_ for a limit below 1.
  absl::Status FindSmallest(const RunChoice& run, double limit) {
    (limit < 1 ? tightened_ : smallest_).reset();
    PF_ASSIGN_OR_RETURN(const bool fits_as_it_is, Fits(AfterSteps(0), run, limit));
    if (!fits_as_it_is) return absl::OkStatus();
    // Even before sensitivities are known, a search that is stopped has a model with eight bits.
    PF_RETURN_IF_ERROR(Calibrate());
    Storage eight = AllIn(Coding::kEightBits);
    eight.has_half_remainder = true;
    PF_ASSIGN_OR_RETURN(const bool fits_in_eight, Fits(eight, run, limit));
    if (!fits_in_eight) {
      Storage sixteen = eight;
      sixteen.codings.assign(outcome_.groups.size(), Coding::kSixteenBits);
      PF_RETURN_IF_ERROR(Fits(sixteen, run, limit).status());
    }
    PF_RETURN_IF_ERROR(MeasureSensitivities());
    size_t fitting = 0, exceeding = steps_.size() + 1;
    while (exceeding - fitting > 1) {
      // All steps first: many models take four bits everywhere.
      const size_t count = exceeding > steps_.size() ? steps_.size() : (fitting + exceeding) / 2;
      PF_ASSIGN_OR_RETURN(const bool fits, Fits(AfterSteps(count), run, limit));
      if (fits) {
        fitting = count;
      } else {
        exceeding = count;
      }
      if (fitting == steps_.size()) return absl::OkStatus();
    }
    return Refine(run, limit, fitting);
  }

  // Returns the storage after the first `count` steps.
  Storage AfterSteps(size_t count) const {
    std::vector<bool> is_applied(steps_.size(), false);
    std::fill(is_applied.begin(), is_applied.begin() + static_cast<ptrdiff_t>(count), true);
    return StorageOf(is_applied);
  }

  // Tries to add steps behind the first `count`, by halving groups of them.
  absl::Status Refine(const RunChoice& run, double limit, size_t count) {
    std::vector<bool> is_applied(steps_.size(), false);
    std::fill(is_applied.begin(), is_applied.begin() + static_cast<ptrdiff_t>(count), true);
    // Half-open ranges of steps that were not tried, the next one last. The step at `count` does not fit.
    std::vector<std::pair<size_t, size_t>> open;
    if (count + 1 < steps_.size()) open.emplace_back(count + 1, steps_.size());
    for (int trial = 0; trial < kMostRefinements && !open.empty(); ++trial) {
      if (trial >= kFewRefinements && settings_.is_half_over()) break;
      const auto [first, last] = open.back();
      open.pop_back();
      std::vector<bool> tried = is_applied;
      for (size_t i = first; i < last; ++i) tried[i] = true;
      PF_ASSIGN_OR_RETURN(const bool fits, Fits(StorageOf(tried), run, limit));
      if (fits) {
        is_applied = std::move(tried);
      } else if (last - first > 1) {
        const size_t middle = first + (last - first) / 2;
        open.emplace_back(middle, last);
        open.emplace_back(first, middle);
      }
    }
    return absl::OkStatus();
  }

  // --- Decisions ---

  // Finds the smallest model with this way to run, and makes it the result if it is within all limits.
  absl::StatusOr<bool> SettleOn(const RunChoice& run) {
    const absl::Status status = FindSmallest(run, 1);
    const bool is_found = smallest_.has_value() && SizeShare(budget_, smallest_->result.bytes) <= 1;
    if (is_found) outcome_.best = smallest_;
    if (!status.ok()) return status;
    return is_found;
  }

  absl::Status MinimizeSize() {
    // The exact arithmetic leaves the most of the budget to the weights.
    std::vector<RunChoice> runs = ordered_runs_;
    std::stable_partition(runs.begin(), runs.end(), [this](const RunChoice& run) { return run == fastest_float_; });
    for (const RunChoice& run : runs) {
      if (LatencyShare(budget_, SecondsOf(run), baseline_seconds_) > 1) continue;
      PF_ASSIGN_OR_RETURN(const bool is_found, SettleOn(run));
      if (is_found) break;
    }
    if (!outcome_.best.has_value()) return absl::OkStatus();
    // The same file may also run faster.
    for (const RunChoice& run : ordered_runs_) {
      if (SecondsOf(run) >= SecondsOf(outcome_.best->run)) break;
      PF_ASSIGN_OR_RETURN(const bool fits, Fits(outcome_.best->storage, run, 1));
      if (!fits) continue;
      outcome_.best->run = run;
      PF_ASSIGN_OR_RETURN(outcome_.best->result,
                          bench_.Measure({outcome_.best->transforms, run, TrialInputs::kSearch}));
      break;
    }
    return absl::OkStatus();
  }

  // --- Checks of the result ---

  absl::Status Finish() {
    PF_RETURN_IF_ERROR(CheckResult());
    if (outcome_.best.has_value()) PF_RETURN_IF_ERROR(TimeResult());
    if (!outcome_.best.has_value()) FindNearestMiss();
    return absl::OkStatus();
  }

  // Makes the folded model in float the result of a search that was stopped, if it is within the budget.
  absl::Status KeepFolded() {
    if (outcome_.base.empty()) return absl::OkStatus();
    const RunChoice reference = {kReferenceDelegate, "f32", settings_.threads};
    SearchedModel folded = {outcome_.base, outcome_.run_times.empty() ? reference : fastest_float_, {}, {}};
    folded.storage = AllIn(Coding::kFloat);
    PF_ASSIGN_OR_RETURN(folded.result, bench_.Measure({folded.transforms, folded.run, TrialInputs::kSearch}));
    if (!folded.result.failure.empty() || AccuracyShare(budget_, folded.result.accuracy) > 1 ||
        SizeShare(budget_, folded.result.bytes) > 1) {
      return absl::OkStatus();
    }
    Note("the search ended before a smaller model was found: this is the folded model in float");
    if (outcome_.run_times.empty()) outcome_.baseline = reference;
    outcome_.best = std::move(folded);
    return absl::OkStatus();
  }

  // Measures the checks of a model. Returns the largest share of the budget.
  absl::StatusOr<double> MeasureChecks(const SearchedModel& model, std::vector<HeldBackCheck>* checks) {
    checks->clear();
    double worst = 0;
    for (const TrialInputs inputs : {TrialInputs::kHeldBack, TrialInputs::kSeeded}) {
      if (!(inputs == TrialInputs::kHeldBack ? settings_.has_held_back : settings_.has_seeded)) continue;
      Progress(absl::StrCat("checking the result on ", NameOf(inputs), " inputs"));
      PF_ASSIGN_OR_RETURN(const TrialResult result, bench_.Measure({model.transforms, model.run, inputs}));
      if (!result.failure.empty()) {
        Note(absl::StrCat("the result fails on ", NameOf(inputs), " inputs: ", result.failure));
        return kInfinity;
      }
      HeldBackCheck& check = checks->emplace_back();
      check.inputs = inputs;
      check.accuracy = result.accuracy;
      check.share = AccuracyShare(budget_, result.accuracy);
      worst = std::max(worst, check.share);
    }
    return worst;
  }

  absl::Status CheckResult() {
    if (!outcome_.best.has_value()) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(double worst, MeasureChecks(*outcome_.best, &outcome_.checks));
    double limit = 1;
    if (outcome_.was_interrupted && worst > 1) {
      Note("the best model so far exceeds the budget on other inputs; the folded model in float is kept instead");
      SearchedModel folded = {outcome_.base, fastest_float_, {}, AfterSteps(0)};
      PF_ASSIGN_OR_RETURN(folded.result, bench_.Measure({folded.transforms, folded.run, TrialInputs::kSearch}));
      PF_ASSIGN_OR_RETURN(worst, MeasureChecks(folded, &outcome_.checks));
      outcome_.best = std::move(folded);
    }
    for (int i = 0; i < kMostTightenings && worst > 1 && !outcome_.was_interrupted; ++i) {
      limit *= kTightening;
      Note(absl::StrCat("on other inputs the error was ", FormatNumber(worst),
                        " times the budget: the search went on with ", FormatNumber(100 * limit), " % of the budget"));
      // If the arithmetic of this way to run is at fault, no storage helps.
      const RunChoice run = i < kMostTightenings / 2 ? outcome_.best->run : fastest_float_;
      PF_RETURN_IF_ERROR(FindSmallest(run, limit));
      if (!tightened_.has_value()) continue;
      PF_ASSIGN_OR_RETURN(worst, MeasureChecks(*tightened_, &outcome_.checks));
      if (worst <= 1) outcome_.best = tightened_;
    }
    if (worst <= 1 && SizeShare(budget_, outcome_.best->result.bytes) <= 1) return absl::OkStatus();
    rejected_ = outcome_.best;
    outcome_.best.reset();
    outcome_.checks.clear();
    return absl::OkStatus();
  }

  // Times the result in turn with the original. A result that is slower than in float is run in float.
  absl::Status TimeResult() {
    Progress("timing the result in turn with the original");
    SearchedModel& best = *outcome_.best;
    std::vector<TrialRequest> contest = {{"", outcome_.baseline, TrialInputs::kFew},
                                         {best.transforms, best.run, TrialInputs::kFew}};
    const bool has_other = !(best.run == fastest_float_);
    if (has_other) contest.push_back({best.transforms, fastest_float_, TrialInputs::kFew});
    PF_ASSIGN_OR_RETURN(outcome_.final_times, bench_.MeasureTimes(contest));
    const std::vector<TimedTrial>& times = outcome_.final_times;
    const auto ran = [](const TimedTrial& time) { return time.failure.empty() && time.rounds > 0; };
    if (settings_.minimize == Objective::kLatency && has_other && ran(times[1]) && ran(times[2]) &&
        times[2].median_seconds < times[1].median_seconds) {
      SearchedModel other = best;
      other.run = fastest_float_;
      PF_ASSIGN_OR_RETURN(other.result, bench_.Measure({other.transforms, other.run, TrialInputs::kSearch}));
      std::vector<HeldBackCheck> checks;
      PF_ASSIGN_OR_RETURN(const double worst, MeasureChecks(other, &checks));
      if (worst <= 1 && AccuracyShare(budget_, other.result.accuracy) <= 1) {
        Note(absl::StrCat(best.run.Flags(), " was not faster than ", other.run.Flags(), " in the last measurement"));
        best = std::move(other);
        outcome_.checks = std::move(checks);
      }
    }
    if (!budget_.max_latency.has_value()) return absl::OkStatus();
    for (const TimedTrial& time : times) {
      if (time.request.transforms.empty() || !(time.request.run == best.run) || !ran(time)) continue;
      if (LatencyShare(budget_, time.median_seconds, ran(times[0]) ? times[0].median_seconds : baseline_seconds_) <=
          1) {
        continue;
      }
      Note(absl::StrCat("in the last measurement the result took ", FormatSeconds(time.median_seconds),
                        ", more than --max_latency"));
      rejected_ = best;
      outcome_.best.reset();
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  void FindNearestMiss() {
    double least = kInfinity;
    for (const auto& [request, result] : bench_.trials()) {
      if (request.inputs != TrialInputs::kSearch || !result.failure.empty()) continue;
      NearestMiss miss;
      miss.model = {request.transforms, request.run, result, {}};
      miss.accuracy_share = AccuracyShare(budget_, result.accuracy);
      miss.size_share = SizeShare(budget_, result.bytes);
      if (budget_.max_latency.has_value()) {
        miss.latency_share = LatencyShare(budget_, SecondsOf(request.run), baseline_seconds_);
      }
      const double most = std::max({miss.accuracy_share, miss.size_share, miss.latency_share});
      // Those within the budget failed on inputs that were held back, or in the last measurement of the time.
      if (most <= 1 || most >= least) continue;
      least = most;
      outcome_.nearest = std::move(miss);
    }
    if (outcome_.nearest.has_value() || !rejected_.has_value()) return;
    outcome_.nearest = NearestMiss{*rejected_, AccuracyShare(budget_, rejected_->result.accuracy),
                                   SizeShare(budget_, rejected_->result.bytes),
                                   LatencyShare(budget_, SecondsOf(rejected_->run), baseline_seconds_)};
  }

  void Progress(const std::string& line) const { settings_.progress(line); }
  void Note(std::string note) {
    if (std::find(outcome_.notes.begin(), outcome_.notes.end(), note) == outcome_.notes.end()) {
      outcome_.notes.push_back(std::move(note));
    }
  }

  const Graph& original_;
  TrialBench& bench_;
  const SearchSettings& settings_;
  const OptimizationBudget& budget_;
  SearchOutcome outcome_;
  std::vector<RunChoice> ordered_runs_;  // Within the accuracy budget, the best by the objective first.
  RunChoice fastest_float_;
  std::map<std::string, double> seconds_;  // By RunChoice::Flags.
  std::map<std::string, int64_t> memory_;
  double baseline_seconds_ = 0;
  bool has_sensitivities_ = false, was_calibrated_ = false;
  std::vector<Step> steps_;
  std::optional<SearchedModel> smallest_, tightened_;
  std::optional<SearchedModel> rejected_;  // Within the budget in the search, but not in the checks.
};

}  // namespace

absl::StatusOr<SearchOutcome> SearchModel(const Graph& original, TrialBench& bench, const SearchSettings& settings) {
  return Search(original, bench, settings).Run();
}

}  // namespace permafrost
