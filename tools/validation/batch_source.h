// Batches of inputs for validation.
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

// A batch of inputs, and its position among all rows.
struct Batch {
  InputSet feeds;
  int64_t first_row = 0;
  int64_t rows = 0;  // Rows that count: a model with a fixed batch size gets extra rows at the end.
};

// A source of batches. Read() may be called in any order of indices.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  virtual size_t num_batches() const = 0;
  virtual int64_t num_rows() const = 0;
  // Reads one batch. Sets *undistorted to its pictures before any distortion; it may be null. Errors name the file at
  // fault.
  virtual absl::StatusOr<Batch> Read(size_t index, std::vector<Picture>* undistorted) = 0;
  // Returns the inputs of a batch of these pictures. REQUIRES: pictures returned by Read, distorted or not.
  virtual absl::StatusOr<InputSet> FeedsOf(const std::vector<Picture>& pictures) const = 0;
};

// Returns a source of existing sets. `converter` converts the only input back to pictures; may be absent if pictures
// are never read.
std::unique_ptr<BatchSource> KeptBatches(std::vector<InputSet> sets, std::optional<PictureConverter> converter);

// Returns a source of picture files, with `rows` per batch. With `is_fixed`, the last batch repeats its last picture up
// to that size.
std::unique_ptr<BatchSource> ImageBatches(FileSystem& files, std::vector<std::string> paths, PictureConverter converter,
                                          ImageLimits limits, int64_t rows, bool is_fixed);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_BATCH_SOURCE_H_
