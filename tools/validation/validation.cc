// Measures how far apart the answers of two models are.
#include "tools/validation/validation.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/status.h"
#include "runtime_check/coded_feeds.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

// A model that runs: its session, and which tensors of a set it takes.
struct Model {
  std::unique_ptr<Session> session;
  std::vector<Endpoint> inputs;  // Those of the positions, in this graph.
  std::vector<size_t> positions;

  absl::StatusOr<std::vector<Tensor>> Run(const InputSet& set) const {
    std::vector<Tensor> feeds;
    for (size_t i = 0; i < positions.size(); ++i) {
      PF_ASSIGN_OR_RETURN(feeds.emplace_back(), CodedFeed(inputs[i], set[positions[i]]));
    }
    return session->Run(feeds);
  }
};

absl::StatusOr<Model> MakeModel(const Graph& graph, const std::vector<Endpoint>& inputs,
                                const std::vector<Endpoint>& outputs, const SessionOptions& options) {
  Model model;
  std::vector<std::string> feeds, fetches;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& text = inputs[i].text;
    Node* node = graph.Find(text.substr(0, text.rfind(':')));
    if (node == nullptr) continue;
    feeds.push_back(text);
    model.inputs.push_back({text, node, inputs[i].port});
    model.positions.push_back(i);
  }
  for (const Endpoint& output : outputs) fetches.push_back(output.text);
  PF_ASSIGN_OR_RETURN(model.session, Session::Create(graph, feeds, fetches, options));
  return model;
}

// Medians of as many runs, the models taking turns so that both see the same machine.
absl::Status Time(const Model& reference, const Model& candidate, const InputSet& set, int runs, Validation* result) {
  std::vector<double> seconds[2];
  for (int i = 0; i < runs; ++i) {
    for (const int which : {0, 1}) {
      const auto start = std::chrono::steady_clock::now();
      PF_RETURN_IF_ERROR((which == 0 ? reference : candidate).Run(set).status());
      seconds[which].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  }
  for (std::vector<double>& values : seconds) std::sort(values.begin(), values.end());
  result->reference_seconds = seconds[0][seconds[0].size() / 2];
  result->candidate_seconds = seconds[1][seconds[1].size() / 2];
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> JoinRows(absl::Span<const Tensor> tensors) {
  if (tensors.size() == 1) return tensors[0];
  Shape shape = tensors[0].shape();
  if (shape.rank() == 0) shape = Shape({1});
  int64_t rows = 0;
  for (const Tensor& tensor : tensors) {
    const bool fits = tensor.dtype() == tensors[0].dtype() && tensor.shape().rank() == tensors[0].shape().rank() &&
                      (tensor.shape().rank() == 0 || tensor.shape().dims().subspan(1) == shape.dims().subspan(1));
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat("answers have shapes ", tensors[0].shape().ToString(), " and ",
                                                     tensor.shape().ToString(), ", which do not fit together"));
    }
    rows += tensor.shape().rank() == 0 ? 1 : tensor.shape().dim(0);
  }
  shape.set_dim(0, rows);
  if (tensors[0].dtype() == DType::kString) {
    std::vector<std::string> all;
    for (const Tensor& tensor : tensors) all.insert(all.end(), tensor.strings().begin(), tensor.strings().end());
    return Tensor::FromStrings(std::move(shape), std::move(all));
  }
  char* data = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor joined, Tensor::Allocate(tensors[0].dtype(), std::move(shape), &data));
  for (const Tensor& tensor : tensors) {
    data = std::copy(tensor.bytes().begin(), tensor.bytes().end(), data);
  }
  return joined;
}

std::optional<double> Accuracy(const Tensor& scores, const std::vector<int64_t>& labels) {
  const Shape& shape = scores.shape();
  if (labels.empty() || shape.rank() != 2 || static_cast<size_t>(shape.dim(0)) != labels.size() || shape.dim(1) < 2) {
    return std::nullopt;
  }
  const size_t classes = static_cast<size_t>(shape.dim(1));
  size_t right = 0;
  const bool known = DispatchOn<float, double, int8_t, uint8_t, int32_t, int64_t>(scores.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const UnalignedSpan<T> elements = scores.elements<T>();
    for (size_t row = 0; row < labels.size(); ++row) {
      size_t best = 0;
      for (size_t i = 1; i < classes; ++i) {
        if (elements[row * classes + i] > elements[row * classes + best]) best = i;
      }
      right += static_cast<int64_t>(best) == labels[row] ? 1 : 0;
    }
  });
  if (!known) return std::nullopt;
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

absl::StatusOr<Validation> Validate(const Graph& reference, const Graph& candidate, const std::vector<InputSet>& sets,
                                    const std::vector<int64_t>* labels, const ValidationSettings& settings) {
  absl::StatusOr<Model> first = MakeModel(reference, reference.inputs(), reference.outputs(), settings.reference);
  if (!first.ok()) return Annotate(first.status(), "reference");
  absl::StatusOr<Model> second = MakeModel(candidate, reference.inputs(), reference.outputs(), settings.candidate);
  if (!second.ok()) return Annotate(second.status(), "candidate");
  const size_t num_outputs = reference.outputs().size();
  std::vector<std::vector<Tensor>> expected(num_outputs), actual(num_outputs);
  for (const InputSet& set : sets) {
    absl::StatusOr<std::vector<Tensor>> e = first->Run(set);
    if (!e.ok()) return Annotate(e.status(), "reference");
    absl::StatusOr<std::vector<Tensor>> a = second->Run(set);
    if (!a.ok()) return Annotate(a.status(), "candidate");
    for (size_t i = 0; i < num_outputs; ++i) {
      expected[i].push_back((*e)[i]);
      actual[i].push_back((*a)[i]);
    }
  }
  Validation result;
  result.num_runs = sets.size();
  for (size_t i = 0; i < num_outputs; ++i) {
    OutputValidation output;
    output.name = reference.outputs()[i].text;
    absl::StatusOr<Tensor> e = JoinRows(expected[i]);
    if (!e.ok()) return Annotate(e.status(), absl::StrCat("reference: output '", output.name, "'"));
    absl::StatusOr<Tensor> a = JoinRows(actual[i]);
    if (!a.ok()) return Annotate(a.status(), absl::StrCat("candidate: output '", output.name, "'"));
    output.difference = CompareTensors(*e, *a);
    if (labels != nullptr) {
      output.reference_accuracy = Accuracy(*e, *labels);
      output.candidate_accuracy = Accuracy(*a, *labels);
    }
    result.outputs.push_back(std::move(output));
  }
  if (settings.timed_runs > 0 && !sets.empty()) {
    PF_RETURN_IF_ERROR(Time(*first, *second, sets[0], settings.timed_runs, &result));
  }
  result.candidate_plan = second->session->FullReport();
  return result;
}

}  // namespace permafrost
