// gzip compression (RFC 1952): reading of compressed models, and the size of a model as sent by a web server.
#ifndef PERMAFROST_IO_FORMATS_GZIP_H_
#define PERMAFROST_IO_FORMATS_GZIP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "io/model_format.h"

namespace permafrost {

// Reads all members of the file, decompressed into memory. Returns DataLoss, with the offset of the member, for a
// damaged or truncated member or a wrong checksum; ResourceExhausted if the size exceeds OpenOptions::max_model_bytes
// or memory is insufficient.
extern const ModelWrapping kGzipWrapping;

// Compresses like `gzip` with its default level (6), without name and time stamp.
class GzipSink : public FilterSink {
 public:
  // Does not own `out`.
  explicit GzipSink(ByteSink* out);
  ~GzipSink() override;

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Finish() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_GZIP_H_
