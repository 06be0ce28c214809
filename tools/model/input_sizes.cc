// Tests sizes with shape inference, then with a run.
#include "tools/model/input_sizes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"
#include "runtime_check/checking/seeded_inputs.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

// Usual image sizes, small ones first, since the reference kernels take seconds for large ones. 299, 320 and 384 are
// those of Inception, of detectors and of large classifiers.
constexpr int64_t kImageSizes[] = {64, 96, 128, 160, 192, 224, 256, 299, 320, 384, 512, 32, 16};
// Channel counts of pictures.
constexpr int64_t kChannels[] = {3, 1, 4, 2};
// Lengths of sequences and vectors; 16000 samples are one second of speech.
constexpr int64_t kLengths[] = {16, 24, 32, 64, 128, 256, 8, 4, 2, 1, 3, 512, 1000, 1024, 16000};
// Ranks to try for an input of unknown rank: ids and features first, then pictures.
constexpr int kRanks[] = {2, 4, 3, 1, 0, 5};

// Limits of the effort.
constexpr size_t kMaxVisited = 64;        // Nodes behind an input that are searched for constants.
constexpr size_t kMaxFromConstants = 96;  // Sizes taken from those constants.
constexpr int64_t kMaxElements = 16;      // Elements of an integer constant that may be a shape.
constexpr size_t kMaxKept = 8;            // Sizes kept for a dimension.
constexpr int64_t kMaxInferences = 400;
constexpr int64_t kMaxInferredNodes = 4'000'000;  // About two seconds of shape inference.
constexpr int kMaxRuns = 12;

// An unknown dimension and the sizes that the graph accepts for it.
struct OpenDim {
  size_t input;
  int dim;
  std::vector<int64_t> sizes;
};

class Search {
 public:
  Search(const Graph& graph, absl::Span<const Endpoint> inputs) : graph_(graph), inputs_(inputs) {}

  absl::StatusOr<std::vector<InputShapes>> Run(int count) {
    bool only_batch = true;
    for (const Endpoint& input : inputs_) {
      shapes_.push_back(DeclaredShape(input));
      const Shape& shape = shapes_.back();
      only_batch = only_batch && shape.has_rank();
      for (int dim = 1; shape.has_rank() && dim < shape.rank(); ++dim) {
        only_batch = only_batch && shape.dim(dim) != kUnknownDim;
      }
    }
    PF_RETURN_IF_ERROR(SettleRanks());
    FindOpenDims();
    if (open_.empty()) return std::vector<InputShapes>{Named(shapes_)};
    for (OpenDim& open : open_) KeepPossibleSizes(&open);
    std::vector<InputShapes> choices = Choices(only_batch ? 1 : count, /*runs=*/!only_batch);
    if (!choices.empty()) return choices;
    // The run itself reports errors of the graph.
    if (only_batch) return std::vector<InputShapes>{{}};
    return NoChoice();
  }

 private:
  static Shape DeclaredShape(const Endpoint& input) {
    if (input.node == nullptr) return Shape::UnknownRank();
    Shape shape = ShapeAttr(*input.node, "shape").value_or(Shape::UnknownRank());
    if (shape.IsFullyKnown() || input.node->op() != ops::kPlaceholderWithDefault || input.node->num_inputs() == 0) {
      return shape;
    }
    const absl::StatusOr<Tensor> value = ConstValue(*input.node->input(0).node);
    return value.ok() ? value->shape() : shape;
  }

  InputShapes Named(const std::vector<Shape>& shapes) const {
    InputShapes named;
    for (size_t i = 0; i < inputs_.size(); ++i) named[inputs_[i].text] = shapes[i];
    return named;
  }

  bool IsPossible(const std::vector<Shape>& shapes) {
    if (num_inferences_ >= kMaxInferences) return false;
    if (num_inferences_ * static_cast<int64_t>(graph_.num_nodes()) >= kMaxInferredNodes) return false;
    ++num_inferences_;
    ShapeInferenceOptions options;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].node != nullptr) options.fed[std::string(inputs_[i].node->name())] = shapes[i];
    }
    const absl::StatusOr<ShapeMap> inferred = InferShapes(graph_, options);
    if (!inferred.ok()) reason_ = std::string(inferred.status().message());
    return inferred.ok();
  }

  absl::Status SettleRanks() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (shapes_[i].has_rank()) continue;
      bool is_settled = false;
      for (const int rank : kRanks) {
        shapes_[i] = Shape(std::vector<int64_t>(static_cast<size_t>(rank), kUnknownDim));
        is_settled = IsPossible(shapes_);
        if (is_settled) break;
      }
      if (!is_settled) {
        shapes_[i] = Shape::UnknownRank();
        return NoChoice().status();
      }
    }
    return absl::OkStatus();
  }

  void FindOpenDims() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      for (int dim = 0; dim < shapes_[i].rank(); ++dim) {
        if (shapes_[i].dim(dim) == kUnknownDim) open_.push_back({i, dim, {}});
      }
    }
  }

  // Returns the sizes of constants near the input, nearest first.
  const std::vector<int64_t>& SizesOfConstants(size_t input) {
    if (of_constants_.size() <= input) of_constants_.resize(inputs_.size());
    std::vector<int64_t>& sizes = of_constants_[input];
    if (!sizes.empty() || inputs_[input].node == nullptr) return sizes;
    absl::flat_hash_set<int64_t> known;
    const auto add = [&](int64_t size) {
      if (size > 0 && sizes.size() < kMaxFromConstants && known.insert(size).second) sizes.push_back(size);
    };
    // A flattened picture has as many elements as a weight has rows, so the roots are added, too.
    const auto add_with_roots = [&](int64_t size) {
      add(size);
      for (const int64_t channels : kChannels) {
        const auto root = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(size / channels))));
        if (root > 1 && root * root * channels == size) add(root);
      }
    };
    std::vector<const Node*> open = {inputs_[input].node};
    absl::flat_hash_set<const Node*> seen(open.begin(), open.end());
    for (size_t next = 0; next < open.size(); ++next) {
      for (int i = 0; i < open[next]->num_inputs(); ++i) {
        const Node* constant = open[next]->input(i).node;
        // Weights may be behind an Identity, a Dequantize or a Cast.
        for (int hops = 0; hops < 3 && constant->op() != ops::kConst && constant->num_inputs() > 0; ++hops) {
          constant = constant->input(0).node;
        }
        if (constant->op() != ops::kConst) continue;
        const absl::StatusOr<Tensor> value = ConstValue(*constant);
        if (!value.ok()) continue;
        for (const int64_t size : value->shape().dims()) add_with_roots(size);
        if (value->dtype() != DType::kInt32 || value->num_elements() > kMaxElements) continue;
        const auto elements = value->elements<int32_t>();
        int64_t product = 1;
        for (size_t k = 0; k < elements.size(); ++k) {
          add(elements[k]);
          if (elements[k] > 0 && product < INT32_MAX) product *= elements[k];
        }
        add_with_roots(product);
      }
      for (const Use& use : open[next]->uses()) {
        if (open.size() < kMaxVisited && seen.insert(use.consumer).second) open.push_back(use.consumer);
      }
    }
    return sizes;
  }

  std::vector<int64_t> Candidates(const OpenDim& open) {
    const int rank = shapes_[open.input].rank();
    std::vector<int64_t> sizes;
    const auto append = [&](absl::Span<const int64_t> more) {
      for (const int64_t size : more) {
        if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
      }
    };
    if (open.dim == 0) append({1});
    if (rank == 4 && open.dim == 3) append(kChannels);
    if (open.dim > 0) append(rank == 4 ? absl::MakeConstSpan(kImageSizes) : absl::MakeConstSpan(kLengths));
    append(SizesOfConstants(open.input));
    return sizes;
  }

  // Keeps the sizes that shape inference accepts while all other open dimensions are unknown.
  void KeepPossibleSizes(OpenDim* open) {
    std::vector<Shape> shapes = shapes_;
    for (const int64_t size : Candidates(*open)) {
      shapes[open->input].set_dim(open->dim, size);
      if (!IsPossible(shapes)) continue;
      open->sizes.push_back(size);
      if (open->dim == 0 || open->sizes.size() == kMaxKept) return;
    }
  }

  // Returns the shapes of a choice, given the index of the size of each open dimension.
  std::vector<Shape> ShapesOf(const std::vector<size_t>& places) const {
    std::vector<Shape> shapes = shapes_;
    for (size_t i = 0; i < open_.size(); ++i) {
      const std::vector<int64_t>& sizes = open_[i].sizes;
      shapes[open_[i].input].set_dim(open_[i].dim, sizes[std::min(places[i], sizes.size() - 1)]);
    }
    return shapes;
  }

  std::vector<InputShapes> Choices(int count, bool runs) {
    std::vector<InputShapes> choices;
    for (const OpenDim& open : open_) {
      if (open.sizes.empty()) return choices;
    }
    std::vector<std::vector<Shape>> tried;
    const auto consider = [&](const std::vector<size_t>& places) {
      std::vector<Shape> shapes = ShapesOf(places);
      if (std::find(tried.begin(), tried.end(), shapes) != tried.end()) return;
      tried.push_back(shapes);
      if (!IsPossible(shapes) || (runs && !Runs(Named(shapes)))) return;
      choices.push_back(Named(shapes));
    };
    const auto is_enough = [&] { return static_cast<int>(choices.size()) >= count || num_runs_ >= kMaxRuns; };
    // First all dimensions of a kind change together, since the lengths of several inputs usually have to agree.
    for (size_t k = 0; k < kMaxKept && !is_enough(); ++k) {
      consider(std::vector<size_t>(open_.size(), k));
    }
    if (!choices.empty()) return choices;
    // Then each dimension changes separately, like the digits of a number.
    std::vector<size_t> places(open_.size(), 0);
    while (!is_enough() && num_inferences_ < kMaxInferences) {
      size_t digit = 0;
      while (digit < places.size() && ++places[digit] >= open_[digit].sizes.size()) places[digit++] = 0;
      if (digit == places.size()) break;
      consider(places);
    }
    return choices;
  }

  // Returns whether the graph runs on inputs of these shapes. If a kernel is missing, no shapes would help.
  bool Runs(const InputShapes& shapes) {
    ++num_runs_;
    const absl::StatusOr<std::vector<Tensor>> feeds = SeededInputs(inputs_, shapes, /*seed=*/1);
    absl::Status status = feeds.status();
    if (status.ok()) status = RunOnce(*feeds);
    if (status.ok() || absl::IsUnimplemented(status)) return true;
    reason_ = std::string(status.message());
    return false;
  }

  // Text that nodes print during a trial is discarded.
  absl::Status RunOnce(const std::vector<Tensor>& feeds) {
    if (session_ == nullptr) {
      std::vector<std::string> fed, fetched;
      for (const Endpoint& input : inputs_) fed.push_back(input.text);
      for (const Endpoint& output : graph_.outputs()) fetched.push_back(output.text);
      SessionOptions options;
      options.print = [](absl::string_view, absl::string_view) {};
      PF_ASSIGN_OR_RETURN(session_, Session::Create(graph_, fed, fetched, options));
    }
    return session_->Run(feeds).status();
  }

  absl::StatusOr<std::vector<InputShapes>> NoChoice() const {
    std::vector<std::string> texts;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!DeclaredShape(inputs_[i]).IsFullyKnown()) {
        texts.push_back(absl::StrCat("'", inputs_[i].text, "' ", DeclaredShape(inputs_[i]).ToString()));
      }
    }
    return absl::InvalidArgumentError(absl::StrCat("found no sizes for the unknown dimensions of ",
                                                   absl::StrJoin(texts, ", "), " with which the graph runs (", reason_,
                                                   "); give real inputs with --verify_inputs"));
  }

  const Graph& graph_;
  const absl::Span<const Endpoint> inputs_;
  std::vector<Shape> shapes_;  // By input, with unknown dimensions.
  std::vector<OpenDim> open_;
  std::vector<std::vector<int64_t>> of_constants_;  // By input.
  std::unique_ptr<Session> session_;
  std::string reason_;  // Why the last trial failed.
  int64_t num_inferences_ = 0;
  int num_runs_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<InputShapes>> ChooseInputShapes(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                           int count) {
  const bool is_known = std::all_of(inputs.begin(), inputs.end(), [](const Endpoint& input) {
    if (input.node == nullptr) return true;
    const absl::StatusOr<Shape> shape = ShapeAttr(*input.node, "shape");
    return shape.ok() && shape->IsFullyKnown();
  });
  if (is_known) return std::vector<InputShapes>{{}};
  return Search(graph, inputs).Run(count);
}

}  // namespace permafrost
