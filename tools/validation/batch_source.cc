// Batches from memory and from picture files.
#include "tools/validation/batch_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "tools/images/image_file.h"

namespace permafrost {
namespace {

class Kept final : public BatchSource {
 public:
  Kept(std::vector<InputSet> sets, std::optional<PictureConverter> converter)
      : sets_(std::move(sets)), converter_(std::move(converter)) {
    for (const InputSet& set : sets_) {
      first_rows_.push_back(num_rows_);
      num_rows_ += RowsOf(set);
    }
  }

  size_t num_batches() const override { return sets_.size(); }
  int64_t num_rows() const override { return num_rows_; }

  absl::StatusOr<Batch> Read(size_t index, std::vector<Picture>* undistorted) override {
    if (undistorted != nullptr) {
      PF_ASSIGN_OR_RETURN(*undistorted, converter_->ToPictures(sets_[index][0]));
    }
    return Batch{sets_[index], first_rows_[index], RowsOf(sets_[index])};
  }

  absl::StatusOr<InputSet> FeedsOf(const std::vector<Picture>& pictures) const override {
    PF_ASSIGN_OR_RETURN(Tensor tensor, converter_->ToTensor(pictures));
    return InputSet{std::move(tensor)};
  }

 private:
  std::vector<InputSet> sets_;
  std::optional<PictureConverter> converter_;
  std::vector<int64_t> first_rows_;
  int64_t num_rows_ = 0;
};

class FromFiles final : public BatchSource {
 public:
  FromFiles(FileSystem& files, std::vector<std::string> paths, PictureConverter converter, ImageLimits limits,
            int64_t rows, bool is_fixed)
      : files_(files),
        paths_(std::move(paths)),
        converter_(std::move(converter)),
        limits_(limits),
        rows_(static_cast<size_t>(rows)),
        is_fixed_(is_fixed) {}

  size_t num_batches() const override { return (paths_.size() + rows_ - 1) / rows_; }
  int64_t num_rows() const override { return static_cast<int64_t>(paths_.size()); }

  absl::StatusOr<Batch> Read(size_t index, std::vector<Picture>* undistorted) override {
    const size_t start = index * rows_, end = std::min(paths_.size(), start + rows_);
    std::vector<Picture> pictures;
    for (size_t i = start; i < end; ++i) {
      PF_ASSIGN_OR_RETURN(const Image image, ReadImageFile(files_, paths_[i], limits_));
      pictures.push_back(converter_.Fit(image));
    }
    Batch batch;
    PF_ASSIGN_OR_RETURN(batch.feeds, FeedsOf(pictures));
    batch.first_row = static_cast<int64_t>(start);
    batch.rows = static_cast<int64_t>(end - start);
    if (undistorted != nullptr) *undistorted = std::move(pictures);
    return batch;
  }

  absl::StatusOr<InputSet> FeedsOf(const std::vector<Picture>& pictures) const override {
    std::vector<Picture> filled;
    const std::vector<Picture>* all = &pictures;
    if (is_fixed_ && pictures.size() < rows_) {
      filled = pictures;
      filled.resize(rows_, pictures.back());
      all = &filled;
    }
    PF_ASSIGN_OR_RETURN(Tensor tensor, converter_.ToTensor(*all));
    return InputSet{std::move(tensor)};
  }

 private:
  FileSystem& files_;
  std::vector<std::string> paths_;
  PictureConverter converter_;
  ImageLimits limits_;
  size_t rows_;
  bool is_fixed_;
};

}  // namespace

std::unique_ptr<BatchSource> KeptBatches(std::vector<InputSet> sets, std::optional<PictureConverter> converter) {
  return std::make_unique<Kept>(std::move(sets), std::move(converter));
}

std::unique_ptr<BatchSource> ImageBatches(FileSystem& files, std::vector<std::string> paths, PictureConverter converter,
                                          ImageLimits limits, int64_t rows, bool is_fixed) {
  return std::make_unique<FromFiles>(files, std::move(paths), std::move(converter), limits, rows, is_fixed);
}

}  // namespace permafrost
