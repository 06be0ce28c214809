// Measures the output differences between two models.
#include "tools/validation/validation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "runtime_check/checking/coded_feeds.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

// Returns the first rows of an output that has more; other tensors unchanged.
absl::StatusOr<Tensor> FirstRows(const Tensor& tensor, int64_t fed, int64_t rows) {
  if (rows == fed || tensor.shape().rank() == 0 || tensor.shape().dim(0) != fed || tensor.dtype() == DType::kString) {
    return tensor;
  }
  Shape shape = tensor.shape();
  shape.set_dim(0, rows);
  const size_t bytes = tensor.bytes().size() / static_cast<size_t>(fed) * static_cast<size_t>(rows);
  return Tensor::FromBytes(tensor.dtype(), std::move(shape), tensor.bytes().substr(0, bytes), tensor.owner());
}

void CountNonFinite(const Tensor& tensor, NonFiniteCount* count) {
  int64_t nans = 0, infinities = 0;
  const auto look = [&](double value) {
    nans += std::isnan(value) ? 1 : 0;
    infinities += std::isinf(value) ? 1 : 0;
  };
  DispatchOn<float, double>(tensor.dtype(), [&](auto tag) {
    const auto elements = tensor.elements<typename decltype(tag)::type>();
    for (size_t i = 0; i < elements.size(); ++i) look(elements[i]);
  });
  DispatchOn<Half, BFloat16>(tensor.dtype(), [&](auto tag) {
    const auto elements = tensor.elements<typename decltype(tag)::type>();
    for (size_t i = 0; i < elements.size(); ++i) look(ToFloat(elements[i]));
  });
  count->nans += nans;
  count->infinities += infinities;
  count->runs += nans + infinities > 0 ? 1 : 0;
}

bool IsInterrupted(const ValidationSettings& settings) {
  return settings.is_interrupted != nullptr && settings.is_interrupted();
}

// One call of Validate.
class Run {
 public:
  Run(const RunningModel& reference, const RunningModel& candidate, BatchSource& source, const Labels* labels,
      const ValidationSettings& settings, Validation* result)
      : reference_(reference),
        candidate_(candidate),
        source_(source),
        labels_(labels),
        settings_(settings),
        result_(*result) {}

  absl::Status All() {
    for (const Distortion& distortion : settings_.distortions) {
      result_.distorted.push_back({distortion, std::vector<OutputScore>(result_.outputs.size())});
    }
    result_.num_batches = source_.num_batches();
    for (size_t i = 0; i < source_.num_batches(); ++i) {
      absl::Status status;
      if (!IsInterrupted(settings_)) status = OneBatch(i);
      if (IsInterrupted(settings_)) {
        // The batches completed before the interruption still count.
        result_.was_interrupted = true;
        return absl::OkStatus();
      }
      PF_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }

 private:
  struct Answers {
    std::vector<Tensor> reference, candidate;
  };

  absl::StatusOr<Answers> Ask(const InputSet& feeds, int64_t rows) {
    Answers answers;
    const int64_t fed = feeds.empty() || feeds[0].shape().rank() == 0 ? rows : feeds[0].shape().dim(0);
    const auto ask = [&](const RunningModel& model, absl::string_view name,
                         std::vector<Tensor>* tensors) -> absl::Status {
      absl::StatusOr<std::vector<Tensor>> all = model.Run(feeds);
      if (!all.ok()) return Annotate(all.status(), name);
      for (const Tensor& tensor : *all) {
        PF_ASSIGN_OR_RETURN(tensors->emplace_back(), FirstRows(tensor, fed, rows));
      }
      return absl::OkStatus();
    };
    PF_RETURN_IF_ERROR(ask(reference_, "reference", &answers.reference));
    PF_RETURN_IF_ERROR(ask(candidate_, "candidate", &answers.candidate));
    return answers;
  }

  absl::Status OneBatch(size_t index) {
    std::vector<Picture> pictures;
    PF_ASSIGN_OR_RETURN(const Batch batch, source_.Read(index, settings_.distortions.empty() ? nullptr : &pictures));
    PF_ASSIGN_OR_RETURN(const Answers answers, Ask(batch.feeds, batch.rows));
    if (index == 0 && labels_ != nullptr) PF_RETURN_IF_ERROR(SettleKinds(answers, batch.rows));
    for (size_t i = 0; i < result_.outputs.size(); ++i) {
      OutputValidation& output = result_.outputs[i];
      output.difference.Merge(CompareTensors(answers.reference[i], answers.candidate[i]));
      CountNonFinite(answers.reference[i], &output.reference_nonfinite);
      CountNonFinite(answers.candidate[i], &output.candidate_nonfinite);
      Score(answers, i, batch, &output.score);
    }
    for (DistortedScores& distorted : result_.distorted) {
      PF_RETURN_IF_ERROR(OneDistortion(batch, pictures, &distorted));
    }
    ++result_.num_runs;
    if (settings_.progress != nullptr) settings_.progress(batch.first_row + batch.rows);
    return absl::OkStatus();
  }

  absl::Status OneDistortion(const Batch& batch, const std::vector<Picture>& pictures, DistortedScores* distorted) {
    std::vector<Picture> changed;
    for (size_t i = 0; i < pictures.size(); ++i) {
      // The same seed for both models, and a different one for each picture.
      const uint64_t seed = (settings_.seed << 32) + static_cast<uint64_t>(batch.first_row) + i;
      changed.push_back(Distort(pictures[i], distorted->distortion, seed));
    }
    PF_ASSIGN_OR_RETURN(const InputSet feeds, source_.FeedsOf(changed));
    PF_ASSIGN_OR_RETURN(const Answers answers, Ask(feeds, batch.rows));
    for (size_t i = 0; i < distorted->scores.size(); ++i) {
      distorted->scores[i].kind = result_.outputs[i].score.kind;
      Score(answers, i, batch, &distorted->scores[i]);
    }
    return absl::OkStatus();
  }

  void Score(const Answers& answers, size_t i, const Batch& batch, OutputScore* score) {
    const Tensor &reference = answers.reference[i], &candidate = answers.candidate[i];
    // Outputs that cannot be compared are reported elsewhere.
    if (score->kind == OutputScore::Kind::kNone || reference.shape() != candidate.shape()) return;
    AddAnswers(reference, candidate, batch.first_row, batch.rows, *labels_, score);
  }

  // Determines which outputs fit the labels. If one output has classes, outputs with a single number are ignored.
  absl::Status SettleKinds(const Answers& answers, int64_t rows) {
    using Kind = OutputScore::Kind;
    bool any_classes = false;
    for (size_t i = 0; i < result_.outputs.size(); ++i) {
      result_.outputs[i].score.kind = KindOfAnswers(answers.reference[i], rows, *labels_);
      any_classes = any_classes || result_.outputs[i].score.kind == Kind::kClasses;
    }
    for (OutputValidation& output : result_.outputs) {
      if (any_classes && output.score.kind == Kind::kNumbers) output.score.kind = Kind::kNone;
    }
    return CheckLabelsFit(answers);
  }

  absl::Status CheckLabelsFit(const Answers& answers) const {
    std::vector<std::string> shapes;
    for (size_t i = 0; i < result_.outputs.size(); ++i) {
      if (result_.outputs[i].score.kind != OutputScore::Kind::kNone) return absl::OkStatus();
      shapes.push_back(absl::StrCat("'", result_.outputs[i].name, "' ", answers.reference[i].shape().ToString()));
    }
    std::string wanted;
    if (labels_->classes.empty()) {
      wanted = absl::StrCat(labels_->numbers_per_row, " numbers a row");
    } else {
      const auto [least, most] = std::minmax_element(labels_->classes.begin(), labels_->classes.end());
      wanted = absl::StrCat("classes from ", *least, " to ", *most);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the labels are ", wanted, ", and no output has room for them: ", absl::StrJoin(shapes, ", ")));
  }

  const RunningModel& reference_;
  const RunningModel& candidate_;
  BatchSource& source_;
  const Labels* labels_;
  const ValidationSettings& settings_;
  Validation& result_;
};

// Measures the median times of the same number of runs. The models alternate, so that both see the same state of the
// machine.
absl::Status Time(const RunningModel& reference, const RunningModel& candidate, const InputSet& set,
                  const ValidationSettings& settings, Validation* result) {
  std::vector<double> seconds[2];
  for (int i = 0; i < settings.timed_runs && !result->was_interrupted; ++i) {
    for (const int which : {0, 1}) {
      const auto start = std::chrono::steady_clock::now();
      const absl::Status status = (which == 0 ? reference : candidate).Run(set).status();
      if (absl::IsCancelled(status) && IsInterrupted(settings)) break;
      PF_RETURN_IF_ERROR(status);
      seconds[which].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    result->was_interrupted = IsInterrupted(settings);
  }
  if (seconds[0].empty() || seconds[1].empty()) return absl::OkStatus();
  for (std::vector<double>& values : seconds) std::sort(values.begin(), values.end());
  result->reference_seconds = seconds[0][seconds[0].size() / 2];
  result->candidate_seconds = seconds[1][seconds[1].size() / 2];
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunningModel> RunningModel::Create(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                  absl::Span<const std::string> fetches,
                                                  const SessionOptions& options) {
  RunningModel model;
  std::vector<std::string> feeds;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& text = inputs[i].text;
    Node* node = graph.Find(text.substr(0, text.rfind(':')));
    if (node == nullptr) continue;
    feeds.push_back(text);
    model.declared_.push_back(inputs[i]);
    model.inputs_.push_back({text, node, inputs[i].port});
    model.positions_.push_back(i);
  }
  PF_ASSIGN_OR_RETURN(model.session_, Session::Create(graph, feeds, fetches, options));
  return model;
}

absl::StatusOr<std::vector<Tensor>> RunningModel::Run(const InputSet& set) const {
  std::vector<Tensor> feeds;
  for (size_t i = 0; i < positions_.size(); ++i) {
    PF_ASSIGN_OR_RETURN(MatchedFeed matched, MatchFeed(declared_[i], inputs_[i], set[positions_[i]]));
    feeds.push_back(std::move(matched.after));
  }
  return session_->Run(feeds);
}

absl::StatusOr<Validation> Validate(const Graph& reference, const Graph& candidate, BatchSource& source,
                                    const Labels* labels, const ValidationSettings& settings) {
  Validation result;
  std::vector<std::string> fetches;
  for (const Endpoint& output : reference.outputs()) {
    fetches.push_back(output.text);
    result.outputs.emplace_back().name = output.text;
  }
  absl::StatusOr<RunningModel> first = RunningModel::Create(reference, reference.inputs(), fetches, settings.reference);
  if (!first.ok()) return Annotate(first.status(), "reference");
  absl::StatusOr<RunningModel> second =
      RunningModel::Create(candidate, reference.inputs(), fetches, settings.candidate);
  if (!second.ok()) return Annotate(second.status(), "candidate");
  PF_RETURN_IF_ERROR(Run(*first, *second, source, labels, settings, &result).All());
  if (settings.timed_runs > 0 && source.num_batches() > 0 && !result.was_interrupted) {
    PF_ASSIGN_OR_RETURN(const Batch batch, source.Read(0, nullptr));
    PF_RETURN_IF_ERROR(Time(*first, *second, batch.feeds, settings, &result));
  }
  result.candidate_plan = second->session().FullReport();
  return result;
}

}  // namespace permafrost
