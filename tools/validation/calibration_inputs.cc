// Sorts pieces into arrays and pictures, and reads as many sets as needed.
#include "tools/validation/calibration_inputs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "tools/command_line/flags.h"
#include "tools/images/image_file.h"
#include "tools/validation/batch_source.h"
#include "tools/validation/labelled_images.h"

namespace permafrost {
namespace {

// Shuffles pictures, so that the first ones cover all classes.
constexpr uint64_t kOrderSeed = 1;

bool HasArrayName(const std::string& name) { return absl::EndsWith(name, ".npy"); }

// "[INPUT=]PATH".
struct Piece {
  std::string prefix;  // "INPUT=", or empty.
  std::string path;
};

Piece PieceOf(const std::string& text) {
  const size_t end = text.find('=') == std::string::npos ? 0 : text.find('=') + 1;
  return {text.substr(0, end), text.substr(end)};
}

// Returns whether the folder holds arrays. InvalidArgument if it holds pictures, too.
absl::StatusOr<bool> HoldsArrays(FileSystem& files, const std::string& folder) {
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.ListDirectory(folder));
  const auto arrays = std::count_if(names.begin(), names.end(), &HasArrayName);
  const auto pictures = std::count_if(names.begin(), names.end(), &HasImageName);
  if (arrays > 0 && pictures > 0) {
    return absl::InvalidArgumentError(absl::StrCat("folder '", folder, "' holds ", arrays, " NPY files and ", pictures,
                                                   " pictures, expected either"));
  }
  return arrays > 0;
}

uint64_t BytesOf(const InputSet& set) {
  uint64_t bytes = 0;
  for (const Tensor& tensor : set) bytes += tensor.bytes().size();
  return std::max<uint64_t>(bytes, 1);
}

// Returns how many of `count` sets of this size are kept.
size_t NumKept(const InputSet& set, size_t count) {
  const auto fitting = static_cast<size_t>(std::max<uint64_t>(1, kMostCalibrationBytes / BytesOf(set)));
  return std::min({count, kMostCalibrationSets, fitting});
}

// Removes sets with fewer rows than the model fixes.
absl::Status DropIncomplete(int64_t fixed, std::vector<InputSet>* sets) {
  const auto is_short = [&](const InputSet& set) { return RowsOf(set) != fixed; };
  const int64_t rows = sets->empty() ? 0 : RowsOf(sets->back());
  sets->erase(std::remove_if(sets->begin(), sets->end(), is_short), sets->end());
  if (!sets->empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found ", rows, " rows, the model takes ", fixed, " at a time"));
}

absl::StatusOr<std::vector<InputSet>> ReadArrays(FileSystem& files, const std::vector<std::string>& pieces,
                                                 const Graph& model) {
  PF_ASSIGN_OR_RETURN(std::vector<InputSet> sets, ReadInputSets(files, pieces, model, /*any_batch=*/true));
  const int64_t fixed = FixedBatch(model.inputs());
  PF_ASSIGN_OR_RETURN(sets, SplitBatches(sets, std::max<int64_t>(1, fixed)));
  if (fixed > 0) PF_RETURN_IF_ERROR(DropIncomplete(fixed, &sets));
  if (sets.empty()) return sets;
  std::vector<InputSet> kept;
  const size_t count = NumKept(sets[0], sets.size());
  for (size_t i = 0; i < count; ++i) kept.push_back(sets[i * sets.size() / count]);
  return kept;
}

absl::StatusOr<std::vector<InputSet>> ReadPictures(FileSystem& files, const std::string& folder,
                                                   const ImageFlags& image, const ImageLimits& limits,
                                                   const Graph& model) {
  PF_ASSIGN_OR_RETURN(const Endpoint* input, OnlyInput(model.inputs(), "a folder of pictures"));
  PF_ASSIGN_OR_RETURN(PictureConverter converter, MakePictureConverter(image, *input));
  PF_ASSIGN_OR_RETURN(LabelledImages images, FindLabelledImages(files, folder, {}, kOrderSeed));
  const int64_t fixed = FixedBatch(model.inputs());
  const std::unique_ptr<BatchSource> source = ImageBatches(files, std::move(images.paths), std::move(converter), limits,
                                                           std::max<int64_t>(1, fixed), fixed > 0);
  std::vector<InputSet> sets;
  for (size_t i = 0; i == 0 || i < NumKept(sets[0], source->num_batches()); ++i) {
    PF_ASSIGN_OR_RETURN(Batch batch, source->Read(i, nullptr));
    sets.push_back(std::move(batch.feeds));
  }
  return sets;
}

absl::StatusOr<std::vector<InputSet>> ReadAll(FileSystem& files, absl::Span<const std::string> lists,
                                              const ImageFlags& image, const ImageLimits& limits, const Graph& model) {
  std::vector<std::string> arrays;
  std::vector<InputSet> sets;
  for (const std::string& list : lists) {
    for (const std::string& text : SplitList(list)) {
      const Piece piece = PieceOf(text);
      const absl::StatusOr<FileStat> stat = files.Stat(piece.path);
      if (!stat.ok() || !stat->is_directory) {
        arrays.push_back(text);
        continue;
      }
      PF_ASSIGN_OR_RETURN(const bool holds_arrays, HoldsArrays(files, piece.path));
      if (holds_arrays) {
        arrays.push_back(absl::StrCat(piece.prefix, piece.path, "/*.npy"));
        continue;
      }
      PF_ASSIGN_OR_RETURN(std::vector<InputSet> pictures, ReadPictures(files, piece.path, image, limits, model));
      for (InputSet& set : pictures) sets.push_back(std::move(set));
    }
  }
  if (arrays.empty()) return sets;
  PF_ASSIGN_OR_RETURN(std::vector<InputSet> read, ReadArrays(files, arrays, model));
  for (InputSet& set : read) sets.push_back(std::move(set));
  return sets;
}

}  // namespace

absl::StatusOr<std::vector<InputSet>> ReadCalibrationInputs(FileSystem& files, absl::Span<const std::string> lists,
                                                            const ImageFlags& image, const ImageLimits& limits,
                                                            const Graph& model) {
  absl::StatusOr<std::vector<InputSet>> sets = ReadAll(files, lists, image, limits, model);
  PF_RETURN_IF_ERROR(Annotate(sets.status(), "--calibration_inputs"));
  if (!sets->empty()) sets->resize(NumKept(sets->front(), sets->size()));
  return sets;
}

}  // namespace permafrost
