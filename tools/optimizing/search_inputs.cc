// Reads, checks, shuffles and splits the inputs of a search.
#include "tools/optimizing/search_inputs.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/content_hash.h"
#include "graph/base/status.h"
#include "tools/command_line/flags.h"
#include "tools/images/image_file.h"
#include "tools/validation/batch_source.h"
#include "tools/validation/calibration_inputs.h"
#include "tools/validation/label_files.h"
#include "tools/validation/labelled_images.h"

namespace permafrost {
namespace {

// Number of random inputs in each group: the first two may have different sizes (SeededInputSets).
constexpr int kSeededSets = 4;
// Below this number of inputs a note says that they are few: a share of 1 % cannot be seen on fewer than a hundred, and
// the ranges of activations still grow below some ten.
constexpr size_t kFewInputs = 10;

absl::Status CheckFinite(const InputSet& set, absl::Span<const Endpoint> inputs, size_t index) {
  for (size_t i = 0; i < set.size(); ++i) {
    if (set[i].dtype() != DType::kFloat) continue;
    const auto elements = set[i].elements<float>();
    for (size_t e = 0; e < elements.size(); ++e) {
      if (std::isfinite(elements[e])) continue;
      return absl::InvalidArgumentError(absl::StrCat("input '", inputs[i].text, "' of sample ", index + 1,
                                                     ": found NaN or infinity, expected finite numbers"));
    }
  }
  return absl::OkStatus();
}

// Returns whether the piece is a folder of pictures, and replaces a folder of arrays by the pattern of its files.
absl::StatusOr<bool> IsPictureFolder(FileSystem& files, std::string* piece) {
  const size_t start = piece->find('=') == std::string::npos ? 0 : piece->find('=') + 1;
  const std::string path = piece->substr(start);
  const absl::StatusOr<FileStat> stat = files.Stat(path);
  if (!stat.ok() || !stat->is_directory) return false;
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.ListDirectory(path));
  const bool has_arrays =
      std::any_of(names.begin(), names.end(), [](const std::string& name) { return absl::EndsWith(name, ".npy"); });
  if (!has_arrays) return true;
  absl::StrAppend(piece, "/*.npy");
  return false;
}

template <typename Item>
void KeepEvenlySpaced(size_t most, std::vector<Item>* items) {
  if (items->size() <= most) return;
  std::vector<Item> kept;
  for (size_t i = 0; i < most; ++i) kept.push_back(std::move((*items)[i * items->size() / most]));
  *items = std::move(kept);
}

// Returns how many sets of the size of the first fit the limits.
size_t MostSets(const InputSet& first, int32_t most) {
  uint64_t bytes = 1;
  for (const Tensor& tensor : first) bytes += tensor.bytes().size();
  return static_cast<size_t>(std::max<uint64_t>(
      2, std::min<uint64_t>(static_cast<uint64_t>(std::max(1, most)), kMostCalibrationBytes / bytes)));
}

absl::StatusOr<std::vector<LabelledSet>> ReadPictures(FileSystem& files, const SearchInputsRequest& request,
                                                      const std::string& piece, const Graph& model) {
  PF_ASSIGN_OR_RETURN(const Endpoint* input, OnlyInput(model.inputs(), "a folder of pictures"));
  PF_ASSIGN_OR_RETURN(PictureConverter converter, MakePictureConverter(request.image, *input));
  PF_ASSIGN_OR_RETURN(LabelledImages images,
                      FindLabelledImages(files, piece.substr(piece.find('=') + 1),
                                         {request.labels, "", request.label_offset}, request.seed));
  if (images.labels.num_rows() > 0 && images.labels.classes.empty()) {
    return absl::InvalidArgumentError("--labels: found numbers, expected classes");
  }
  const int64_t fixed = std::max<int64_t>(1, FixedBatch(model.inputs()));
  const std::unique_ptr<BatchSource> source =
      ImageBatches(files, std::move(images.paths), std::move(converter), ImageLimits(), fixed, fixed > 1);
  std::vector<LabelledSet> sets;
  const size_t count = source->num_batches();
  size_t most = count;
  for (size_t i = 0; i < std::min(count, most); ++i) {
    // Shuffled, so that the first ones represent all.
    PF_ASSIGN_OR_RETURN(Batch batch, source->Read(i, nullptr));
    LabelledSet& set = sets.emplace_back();
    set.feeds = std::move(batch.feeds);
    for (int64_t row = 0; !images.labels.classes.empty() && row < batch.rows; ++row) {
      set.classes.push_back(images.labels.classes[static_cast<size_t>(batch.first_row + row)]);
    }
    most = MostSets(sets[0].feeds, request.most_sets);
  }
  return sets;
}

absl::StatusOr<std::vector<LabelledSet>> ReadArrays(FileSystem& files, const SearchInputsRequest& request,
                                                    const std::vector<std::string>& pieces, const Graph& model) {
  PF_ASSIGN_OR_RETURN(std::vector<InputSet> read, ReadInputSets(files, pieces, model, /*any_batch=*/true));
  const int64_t fixed = FixedBatch(model.inputs());
  PF_ASSIGN_OR_RETURN(read, SplitBatches(read, std::max<int64_t>(1, fixed)));
  Labels labels;
  if (!request.labels.empty()) {
    PF_ASSIGN_OR_RETURN(labels, ReadNpyLabels(files, request.labels));
    PF_RETURN_IF_ERROR(ShiftClasses(request.label_offset, &labels));
    if (labels.classes.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--labels: '", request.labels, "' holds numbers, expected classes"));
    }
    int64_t rows = 0;
    for (const InputSet& set : read) rows += RowsOf(set);
    if (labels.num_rows() != rows) {
      return absl::InvalidArgumentError(absl::StrCat("--labels: '", request.labels, "' holds ", labels.num_rows(),
                                                     " labels, the inputs have ", rows, " rows"));
    }
  }
  std::vector<LabelledSet> sets;
  size_t row = 0;
  for (InputSet& set : read) {
    const auto rows = static_cast<size_t>(RowsOf(set));
    if (fixed == 0 || rows == static_cast<size_t>(fixed)) {
      LabelledSet& labelled = sets.emplace_back();
      for (size_t i = 0; !labels.classes.empty() && i < rows; ++i) labelled.classes.push_back(labels.classes[row + i]);
      labelled.feeds = std::move(set);
    }
    row += rows;
  }
  if (sets.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--inputs: found ", row, " rows, the model takes ", fixed, " at a time"));
  }
  return sets;
}

absl::StatusOr<std::vector<LabelledSet>> ReadGiven(FileSystem& files, const SearchInputsRequest& request,
                                                   const Graph& model) {
  std::vector<std::string> pieces;
  for (const std::string& list : request.inputs) {
    for (std::string& piece : SplitList(list)) pieces.push_back(std::move(piece));
  }
  std::vector<LabelledSet> sets;
  if (pieces.empty()) return sets;
  size_t num_folders = 0;
  for (std::string& piece : pieces) {
    PF_ASSIGN_OR_RETURN(const bool is_folder, IsPictureFolder(files, &piece));
    num_folders += is_folder ? 1 : 0;
  }
  if (num_folders > 0) {
    if (pieces.size() > 1) {
      return absl::InvalidArgumentError("--inputs: found a folder of pictures beside other inputs, expected it alone");
    }
    return ReadPictures(files, request, pieces[0], model);
  }
  PF_ASSIGN_OR_RETURN(sets, ReadArrays(files, request, pieces, model));
  KeepEvenlySpaced(MostSets(sets[0].feeds, request.most_sets), &sets);
  return sets;
}

absl::StatusOr<std::vector<LabelledSet>> Seeded(const Graph& graph, uint64_t seed) {
  PF_ASSIGN_OR_RETURN(std::vector<InputSet> made, SeededInputSets(graph, graph.inputs(), seed, kSeededSets));
  std::vector<LabelledSet> sets;
  for (InputSet& set : made) sets.push_back({std::move(set), {}, true});
  return sets;
}

std::string FingerprintOf(const SearchInputs& inputs) {
  ContentHash hash;
  for (const auto* group : {&inputs.search, &inputs.held_back, &inputs.seeded}) {
    hash.AddWord(group->size());
    for (const LabelledSet& set : *group) {
      for (const Tensor& tensor : set.feeds) {
        hash.Add(tensor.shape().ToString());
        if (tensor.dtype() != DType::kString) hash.Add(tensor.bytes());
      }
      for (const int64_t label : set.classes) hash.AddWord(static_cast<uint64_t>(label));
    }
  }
  return absl::StrFormat("%016x", hash.value());
}

}  // namespace

absl::StatusOr<SearchInputs> ReadSearchInputs(FileSystem& files, const SearchInputsRequest& request,
                                              const Graph& graph) {
  SearchInputs inputs;
  PF_ASSIGN_OR_RETURN(std::vector<LabelledSet> given, ReadGiven(files, request, graph));
  for (size_t i = 0; i < given.size(); ++i) PF_RETURN_IF_ERROR(CheckFinite(given[i].feeds, graph.inputs(), i));
  inputs.are_random = given.empty();
  inputs.has_labels = !given.empty() && !given[0].classes.empty();
  PF_ASSIGN_OR_RETURN(inputs.seeded, Seeded(graph, request.seed + 1));
  PF_ASSIGN_OR_RETURN(std::vector<LabelledSet> random_search, Seeded(graph, request.seed));
  if (given.empty()) {
    inputs.notes.push_back(
        "no inputs were given: the accuracy was measured on random numbers, which do not show how the model does on "
        "real "
        "inputs; give --inputs");
  } else {
    // std::shuffle differs between libraries; this does not.
    std::mt19937_64 random(request.seed);
    for (size_t i = given.size(); i > 1; --i) std::swap(given[i - 1], given[random() % i]);
    const size_t num_search = (given.size() + 1) / 2;
    inputs.num_given_search = num_search;
    for (size_t i = 0; i < given.size(); ++i) {
      (i < num_search ? inputs.search : inputs.held_back).push_back(std::move(given[i]));
    }
    if (inputs.held_back.empty()) {
      inputs.notes.push_back(
          "a single input was given: nothing could be held back, so the search may have adapted the model to this "
          "input "
          "(overfitting); only random inputs check it");
    } else if (num_search < kFewInputs) {
      inputs.notes.push_back(absl::StrCat("the search saw ", num_search, " inputs and ", inputs.held_back.size(),
                                          " were held back: so few may miss what other inputs show"));
    }
  }
  for (LabelledSet& set : random_search) inputs.search.push_back(std::move(set));
  inputs.fingerprint = FingerprintOf(inputs);
  return inputs;
}

}  // namespace permafrost
