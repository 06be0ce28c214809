// What models are fed while they are validated, one batch after the other.
#ifndef PERMAFROST_TOOLS_VALIDATION_BATCH_SOURCE_H_
#define PERMAFROST_TOOLS_VALIDATION_BATCH_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "tools/images/distortion.h"
#include "tools/images/preprocessing.h"
#include "tools/model/model_inputs.h"

namespace permafrost {

struct Batch {
  InputSet feeds;
  int64_t first_row = 0;
  int64_t rows = 0;  // That count: a model of a fixed batch is fed more at the end.
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  virtual size_t num_batches() const = 0;
  virtual int64_t num_rows() const = 0;
  // `undistorted` may be null: who wants no distortions leaves it out. Errors name the file at fault.
  virtual absl::StatusOr<Batch> Read(size_t index, std::vector<Picture>* undistorted) = 0;
  // The feeds of a batch of these pictures. REQUIRES: pictures as Read gave them, distorted or not.
  virtual absl::StatusOr<InputSet> FeedsOf(const std::vector<Picture>& pictures) const = 0;
};

// Sets that are there already. `converter` says how to see pictures in the only input; absent: nobody will ask.
std::unique_ptr<BatchSource> KeptBatches(std::vector<InputSet> sets, std::optional<PictureConverter> converter);

// Picture files, `rows` at a time. With `is_fixed` the last batch repeats its last picture until it is as large.
std::unique_ptr<BatchSource> ImageBatches(FileSystem& files, std::vector<std::string> paths, PictureConverter converter,
                                          ImageLimits limits, int64_t rows, bool is_fixed);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_BATCH_SOURCE_H_
