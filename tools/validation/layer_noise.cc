// Fetches and compares the tensors between the inputs and the outputs of two models.
#include "tools/validation/layer_noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/checking/coded_feeds.h"
#include "runtime_check/checking/compare.h"
#include "tools/difference/node_pairing.h"
#include "tools/validation/validation.h"

namespace permafrost {
namespace {

// More runs change at most the second digit of a dB.
constexpr size_t kMostBatches = 8;
constexpr int64_t kMostFetchedBytes = int64_t{1} << 30;
// A valid layer with the reference's inputs is at most this much worse than with noisy ones; beyond that it expects
// other values. Above kRoundingDb both differences are rounding.
constexpr double kWorseDb = 3;
constexpr double kRoundingDb = 60;
// Each round sets aside one of the tensors that a layer reads.
constexpr int kMostRounds = 8;
// Maximum number of printed layers.
constexpr size_t kMostPrinted = 25;
constexpr size_t kMostNamed = 4;

std::string TensorName(const Node& node, int port) {
  return port == 0 ? std::string(node.name()) : absl::StrCat(node.name(), ":", port);
}

// Return, by node id, the nodes that the inputs reach, and those that the outputs need.
std::vector<bool> ReachedFrom(const Graph& graph, const std::vector<const Node*>& inputs) {
  std::vector<bool> reached(graph.id_limit());
  std::vector<const Node*> stack = inputs;
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (reached[node->id()]) continue;
    reached[node->id()] = true;
    for (const Use& use : node->uses()) stack.push_back(use.consumer);
  }
  return reached;
}

std::vector<bool> NeededBy(const Graph& graph, const std::vector<const Node*>& outputs) {
  std::vector<bool> needed(graph.id_limit());
  std::vector<const Node*> stack = outputs;
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (needed[node->id()]) continue;
    needed[node->id()] = true;
    for (int i = 0; i < node->num_inputs(); ++i) stack.push_back(node->input(i).node);
  }
  return needed;
}

// A tensor that both models compute.
struct Pair {
  const Node* reference;
  const Node* candidate;
  int port;
  OutputDifference so_far, own;
  std::string problem;
  bool is_set_aside = false;

  std::string ReferenceName() const { return TensorName(*reference, port); }
  std::string CandidateName() const { return TensorName(*candidate, port); }
};

// The inputs of the candidate's layer when it runs alone: pairs, and inputs of the model.
struct Cut {
  std::set<size_t> pairs;
  std::set<size_t> inputs;
};

class Measurement {
 public:
  Measurement(const Graph& reference, const Graph& candidate, BatchSource& source, const LayerNoiseSettings& settings)
      : reference_(reference), candidate_(candidate), source_(source), settings_(settings) {}

  absl::StatusOr<LayerNoiseReport> Measure() {
    PF_RETURN_IF_ERROR(FindPairs());
    num_batches_ = std::min(kMostBatches, source_.num_batches());
    num_steps_ = pairs_.size() * 2;
    std::vector<size_t> all(pairs_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    PF_RETURN_IF_ERROR(InGroups(all, &Measurement::CompareSoFar));
    for (Pair& pair : pairs_) pair.is_set_aside = pair.so_far.kind != OutputDifference::Kind::kComparable;
    for (int round = 0; round < kMostRounds && !all.empty(); ++round) {
      PF_RETURN_IF_ERROR(InGroups(all, &Measurement::CompareAlone));
      if (was_interrupted_) break;
      all = SetAside(all);
      num_steps_ += all.size();
    }
    return Report();
  }

 private:
  // Measures the pairs together. ResourceExhausted if they are too large for one run, other errors if one of them
  // cannot be fetched.
  using Step = absl::Status (Measurement::*)(const std::vector<size_t>& group);

  absl::Status FindPairs() {
    std::vector<const Node*> inputs, other_inputs, outputs, other_outputs;
    for (const Endpoint& input : reference_.inputs()) {
      const Node* other = candidate_.Find(input.text.substr(0, input.text.rfind(':')));
      if (input.node != nullptr) inputs.push_back(input.node);
      if (other != nullptr) other_inputs.push_back(other);
      candidate_inputs_.push_back(other);
    }
    for (const Endpoint& output : reference_.outputs()) {
      const Node* other = candidate_.Find(output.text.substr(0, output.text.rfind(':')));
      if (other == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("candidate: there is no output '", output.text, "'"));
      }
      outputs.push_back(output.node);
      other_outputs.push_back(other);
    }
    const std::vector<bool> reached = ReachedFrom(reference_, inputs), needed = NeededBy(reference_, outputs);
    candidate_reached_ = ReachedFrom(candidate_, other_inputs);
    const std::vector<bool> candidate_needed = NeededBy(candidate_, other_outputs);
    const NodePairing pairing(candidate_, reference_, settings_.origins);
    for (const Node* node = reference_.first(); node != nullptr; node = node->next()) {
      if (!reached[node->id()] || !needed[node->id()]) continue;
      if (std::find(inputs.begin(), inputs.end(), node) != inputs.end()) continue;
      const absl::StatusOr<std::vector<DType>> types = OutputTypes(*node);
      if (!types.ok()) continue;
      const Node* other = pairing.ActualOf(*node);
      const bool is_pair = other != nullptr && candidate_reached_[other->id()] && candidate_needed[other->id()];
      const absl::StatusOr<std::vector<DType>> other_types =
          is_pair ? OutputTypes(*other) : absl::StatusOr<std::vector<DType>>(std::vector<DType>());
      for (size_t port = 0; port < types->size(); ++port) {
        const TensorRef tensor{const_cast<Node*>(node), static_cast<int>(port)};
        const DType dtype = (*types)[port];
        if (!reference_.HasDataUses(tensor) && !(port == 0 && reference_.IsOutput(node))) continue;
        if (!IsFloating(dtype)) continue;
        if (!is_pair || !other_types.ok() || port >= other_types->size() || (*other_types)[port] != dtype) {
          ++num_unpaired_;
          continue;
        }
        by_candidate_[{other, static_cast<int>(port)}] = pairs_.size();
        pairs_.push_back({node, other, static_cast<int>(port), {}, {}, "", false});
      }
    }
    return absl::OkStatus();
  }

  bool IsInterrupted() {
    if (settings_.is_interrupted != nullptr && settings_.is_interrupted()) was_interrupted_ = true;
    return was_interrupted_;
  }

  void Progress(size_t steps) {
    steps_done_ += steps;
    if (settings_.progress != nullptr) settings_.progress(steps_done_, num_steps_);
  }

  // Halves groups until each can be measured.
  absl::Status InGroups(const std::vector<size_t>& group, Step step) {
    if (group.empty() || IsInterrupted()) return absl::OkStatus();
    const bool is_delegated = settings_.candidate.delegate != nullptr;
    absl::Status status = is_delegated && group.size() > 1 ? absl::ResourceExhaustedError("") : (this->*step)(group);
    if (status.ok()) {
      Progress(group.size());
      return absl::OkStatus();
    }
    if (IsInterrupted()) return absl::OkStatus();
    if (group.size() == 1) {
      pairs_[group[0]].problem = std::string(status.message());
      return source_status_;
    }
    PF_RETURN_IF_ERROR(source_status_);
    const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
    PF_RETURN_IF_ERROR(InGroups({group.begin(), middle}, step));
    return InGroups({middle, group.end()}, step);
  }

  absl::StatusOr<InputSet> Feeds(size_t batch) {
    // The first batches are cached, since each group reads them.
    if (feeds_.size() <= batch) {
      absl::StatusOr<Batch> read = source_.Read(batch, nullptr);
      if (!read.ok()) return source_status_ = read.status();
      feeds_.push_back(std::move(read->feeds));
    }
    return feeds_[batch];
  }

  // Runs a model that fetches these tensors; ResourceExhausted if they are too large to be held at once.
  absl::StatusOr<std::vector<Tensor>> FirstRun(const RunningModel& model, const InputSet& feeds, size_t num_fetches) {
    PF_ASSIGN_OR_RETURN(std::vector<Tensor> tensors, model.Run(feeds));
    int64_t bytes = 0;
    for (const Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.bytes().size());
    if (bytes > kMostFetchedBytes && num_fetches > 1) return absl::ResourceExhaustedError("");
    return tensors;
  }

  absl::Status CompareSoFar(const std::vector<size_t>& group) {
    std::vector<std::string> names, other_names;
    for (const size_t i : group) {
      names.push_back(pairs_[i].ReferenceName());
      other_names.push_back(pairs_[i].CandidateName());
    }
    PF_ASSIGN_OR_RETURN(const RunningModel reference,
                        RunningModel::Create(reference_, reference_.inputs(), names, settings_.reference));
    PF_ASSIGN_OR_RETURN(const RunningModel candidate,
                        RunningModel::Create(candidate_, reference_.inputs(), other_names, settings_.candidate));
    for (const size_t i : group) pairs_[i].so_far = {};
    for (size_t batch = 0; batch < num_batches_ && !(batch > 0 && IsInterrupted()); ++batch) {
      PF_ASSIGN_OR_RETURN(const InputSet feeds, Feeds(batch));
      PF_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, FirstRun(reference, feeds, names.size()));
      PF_ASSIGN_OR_RETURN(const std::vector<Tensor> actual, candidate.Run(feeds));
      for (size_t k = 0; k < group.size(); ++k) {
        pairs_[group[k]].so_far.Merge(CompareTensors(expected[k], actual[k]));
      }
      num_runs_ = std::max(num_runs_, batch + 1);
    }
    return absl::OkStatus();
  }

  // Sets aside pairs with different contents, which arise when a pass moves a factor from one layer to the next. If a
  // layer is worse with the reference's tensors than with the candidate's, sets aside the noisiest tensor that it
  // reads. Returns the pairs that read the tensors set aside.
  std::vector<size_t> SetAside(const std::vector<size_t>& measured) {
    std::set<size_t> wrong;
    for (const size_t i : measured) {
      const Pair& pair = pairs_[i];
      if (pair.is_set_aside || pair.own.num_elements == 0 || pair.own.sqnr_db > kRoundingDb ||
          pair.own.sqnr_db > pair.so_far.sqnr_db - kWorseDb) {
        continue;
      }
      const Pair* worst = nullptr;
      for (const size_t input : CutBefore(*pair.candidate).pairs) {
        const Pair& read = pairs_[input];
        const bool is_noisier = read.so_far.sqnr_db < pair.so_far.sqnr_db - kWorseDb;
        if (is_noisier && (worst == nullptr || read.so_far.sqnr_db < worst->so_far.sqnr_db)) worst = &read;
      }
      if (worst != nullptr) wrong.insert(static_cast<size_t>(worst - pairs_.data()));
    }
    std::vector<size_t> again;
    for (size_t i = 0; i < pairs_.size() && !wrong.empty(); ++i) {
      const Cut cut = CutBefore(*pairs_[i].candidate);
      const bool reads_wrong =
          std::any_of(wrong.begin(), wrong.end(), [&](size_t pair) { return cut.pairs.count(pair) > 0; });
      if (reads_wrong && wrong.count(i) == 0) again.push_back(i);
    }
    for (const size_t i : wrong) pairs_[i].is_set_aside = true;
    return again;
  }

  // Returns the part of the candidate that computes a tensor from known ones.
  Cut CutBefore(const Node& layer) const {
    Cut cut;
    std::set<const Node*> seen = {&layer};
    std::vector<const Node*> stack = {&layer};
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      for (int i = 0; i < node->num_inputs(); ++i) {
        const TensorRef input = node->input(i);
        if (!candidate_reached_[input.node->id()]) continue;
        const auto known = by_candidate_.find({input.node, std::max(0, static_cast<int>(input.port))});
        if (known != by_candidate_.end() && !pairs_[known->second].is_set_aside) {
          cut.pairs.insert(known->second);
          continue;
        }
        const auto fed = std::find(candidate_inputs_.begin(), candidate_inputs_.end(), input.node);
        if (fed != candidate_inputs_.end()) {
          cut.inputs.insert(static_cast<size_t>(fed - candidate_inputs_.begin()));
        } else if (seen.insert(input.node).second) {
          stack.push_back(input.node);
        }
      }
    }
    return cut;
  }

  struct Alone {
    size_t pair;
    std::vector<size_t> reads;  // Indices in the fetches of the reference.
    std::vector<size_t> inputs;
    std::unique_ptr<Session> session;
  };

  absl::StatusOr<Alone> MakeAlone(size_t index, std::vector<std::string>* names, std::map<size_t, size_t>* places) {
    Alone alone{index, {}, {}, nullptr};
    const Cut cut = CutBefore(*pairs_[index].candidate);
    std::vector<std::string> feeds;
    for (const size_t pair : cut.pairs) {
      feeds.push_back(pairs_[pair].CandidateName());
      alone.reads.push_back(PlaceOf(pair, names, places));
    }
    for (const size_t input : cut.inputs) {
      feeds.push_back(reference_.inputs()[input].text);
      alone.inputs.push_back(input);
    }
    PlaceOf(index, names, places);
    PF_ASSIGN_OR_RETURN(alone.session,
                        Session::Create(candidate_, feeds, {pairs_[index].CandidateName()}, settings_.candidate));
    return alone;
  }

  size_t PlaceOf(size_t pair, std::vector<std::string>* names, std::map<size_t, size_t>* places) const {
    const auto [place, is_new] = places->emplace(pair, names->size());
    if (is_new) names->push_back(pairs_[pair].ReferenceName());
    return place->second;
  }

  absl::Status CompareAlone(const std::vector<size_t>& group) {
    std::vector<std::string> names;
    std::map<size_t, size_t> places;
    std::vector<Alone> layers;
    for (const size_t i : group) {
      if (pairs_[i].is_set_aside || !pairs_[i].problem.empty()) continue;
      PF_ASSIGN_OR_RETURN(Alone alone, MakeAlone(i, &names, &places));
      layers.push_back(std::move(alone));
    }
    if (layers.empty()) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(const RunningModel reference,
                        RunningModel::Create(reference_, reference_.inputs(), names, settings_.reference));
    for (const Alone& alone : layers) pairs_[alone.pair].own = {};
    for (size_t batch = 0; batch < num_batches_ && !(batch > 0 && IsInterrupted()); ++batch) {
      PF_ASSIGN_OR_RETURN(const InputSet inputs, Feeds(batch));
      PF_ASSIGN_OR_RETURN(const std::vector<Tensor> known, FirstRun(reference, inputs, layers.size()));
      for (const Alone& alone : layers) {
        std::vector<Tensor> feeds;
        for (const size_t place : alone.reads) feeds.push_back(known[place]);
        for (const size_t input : alone.inputs) {
          const Endpoint& declared = reference_.inputs()[input];
          const Endpoint endpoint{declared.text, const_cast<Node*>(candidate_inputs_[input]), declared.port};
          PF_ASSIGN_OR_RETURN(MatchedFeed matched, MatchFeed(declared, endpoint, inputs[input]));
          feeds.push_back(std::move(matched.after));
        }
        PF_ASSIGN_OR_RETURN(const std::vector<Tensor> actual, alone.session->Run(feeds));
        pairs_[alone.pair].own.Merge(CompareTensors(known[places[alone.pair]], actual[0]));
      }
    }
    return absl::OkStatus();
  }

  LayerNoiseReport Report() const {
    LayerNoiseReport report;
    report.num_unpaired = num_unpaired_;
    report.num_runs = num_runs_;
    report.was_interrupted = was_interrupted_;
    for (const Pair& pair : pairs_) {
      if (pair.so_far.num_elements == 0 && pair.problem.empty() && !pair.is_set_aside) continue;
      LayerNoise layer;
      layer.reference = pair.ReferenceName();
      layer.candidate = pair.CandidateName();
      layer.op = std::string(pair.reference->op().name());
      layer.elements = pair.so_far.num_elements;
      layer.sqnr_db = pair.so_far.sqnr_db;
      if (pair.own.num_elements > 0) layer.own_sqnr_db = pair.own.sqnr_db;
      layer.nonfinite_mismatches = pair.so_far.num_nonfinite_mismatches;
      layer.problem = pair.so_far.mismatch.empty() ? pair.problem : pair.so_far.mismatch;
      (pair.is_set_aside ? report.set_aside : report.layers).push_back(std::move(layer));
    }
    std::stable_sort(report.layers.begin(), report.layers.end(), [](const LayerNoise& a, const LayerNoise& b) {
      if (a.own_sqnr_db.has_value() != b.own_sqnr_db.has_value()) return a.own_sqnr_db.has_value();
      if (a.own_sqnr_db.has_value() && *a.own_sqnr_db != *b.own_sqnr_db) return *a.own_sqnr_db < *b.own_sqnr_db;
      return a.sqnr_db < b.sqnr_db;
    });
    return report;
  }

  const Graph& reference_;
  const Graph& candidate_;
  BatchSource& source_;
  const LayerNoiseSettings& settings_;
  std::vector<Pair> pairs_;
  std::map<std::pair<const Node*, int>, size_t> by_candidate_;
  std::vector<const Node*> candidate_inputs_;  // By input of the reference; null if the candidate lacks it.
  std::vector<bool> candidate_reached_;
  std::vector<InputSet> feeds_;
  absl::Status source_status_;  // Error of reading inputs, which smaller groups cannot avoid.
  size_t num_batches_ = 0, num_runs_ = 0, num_steps_ = 0, steps_done_ = 0;
  int64_t num_unpaired_ = 0;
  bool was_interrupted_ = false;
};

std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string Decibels(double value) { return std::isinf(value) ? "exact" : absl::StrFormat("%.1f", value); }

void WriteLayers(absl::string_view key, const std::vector<LayerNoise>& layers, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const LayerNoise& layer : layers) {
    json->BeginObject().Key("reference").Text(layer.reference).Key("candidate").Text(layer.candidate);
    json->Key("op").Text(layer.op).Key("elements").Integer(layer.elements);
    json->Key("sqnr_db").Number(layer.sqnr_db);
    json->Key("own_sqnr_db");
    layer.own_sqnr_db.has_value() ? json->Number(*layer.own_sqnr_db) : json->Null();
    json->Key("is_exact").Bool(layer.elements > 0 && std::isinf(layer.sqnr_db) && layer.sqnr_db > 0);
    json->Key("own_is_exact").Bool(layer.own_sqnr_db.has_value() && std::isinf(*layer.own_sqnr_db));
    json->Key("nonfinite_mismatches").Integer(layer.nonfinite_mismatches);
    json->Key("problem").Text(layer.problem).End();
  }
  json->End();
}

}  // namespace

absl::StatusOr<LayerNoiseReport> MeasureLayerNoise(const Graph& reference, const Graph& candidate, BatchSource& source,
                                                   const LayerNoiseSettings& settings) {
  return Measurement(reference, candidate, source, settings).Measure();
}

void PrintLayerNoise(const LayerNoiseReport& report, const Console& console) {
  console.out << "signal to noise by layer in dB, " << report.num_runs << " run" << (report.num_runs == 1 ? "" : "s")
              << (report.was_interrupted ? ", interrupted" : "") << ", the noisiest by itself first\n";
  Table table({{"layer"}, {"op"}, {"alone", true}, {"so far", true}, {""}});
  size_t num_exact = 0, num_shown = 0, num_more = 0;
  for (const LayerNoise& layer : report.layers) {
    if (layer.own_sqnr_db.has_value() && std::isinf(*layer.own_sqnr_db) && layer.nonfinite_mismatches == 0) {
      ++num_exact;
      continue;
    }
    if (num_shown == kMostPrinted) {
      ++num_more;
      continue;
    }
    ++num_shown;
    std::string note = Printable(layer.problem);
    if (layer.nonfinite_mismatches > 0) note = absl::StrCat(layer.nonfinite_mismatches, " not finite in one of them");
    table.AddRow({Printable(layer.reference), Printable(layer.op),
                  layer.own_sqnr_db.has_value() ? Decibels(*layer.own_sqnr_db) : "?",
                  layer.elements > 0 ? Decibels(layer.sqnr_db) : "?", note});
  }
  if (!table.empty()) table.Print(console, "  ");
  if (num_more > 0) console.out << "  and " << num_more << " quieter layers (--json has all)\n";
  if (num_exact > 0)
    console.out << "  exact by themselves: " << Counted(static_cast<int64_t>(num_exact), "layer") << "\n";
  if (report.num_unpaired > 0) {
    console.out << "  only in the reference: " << Counted(report.num_unpaired, "tensor") << "\n";
  }
  if (report.set_aside.empty()) return;
  std::vector<std::string> names;
  for (const LayerNoise& layer : report.set_aside) {
    if (names.size() < kMostNamed) names.push_back(absl::StrCat("'", Printable(layer.reference), "'"));
  }
  if (names.size() < report.set_aside.size()) names.emplace_back("...");
  console.out << "  left out: " << Counted(static_cast<int64_t>(report.set_aside.size()), "tensor")
              << " of the same name and other content, such as a factor that moved to the next layer: "
              << absl::StrJoin(names, ", ") << "\n";
}

void WriteLayerNoise(const LayerNoiseReport& report, JsonWriter* json) {
  json->BeginObject();
  json->Key("runs").Count(report.num_runs);
  json->Key("was_interrupted").Bool(report.was_interrupted);
  json->Key("unpaired").Integer(report.num_unpaired);
  WriteLayers("layers", report.layers, json);
  WriteLayers("set_aside", report.set_aside, json);
  json->End();
}

}  // namespace permafrost
