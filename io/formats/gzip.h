// gzip compression (RFC 1952): reading of compressed models, and the size of a model as sent by a web server. Its parts
// serve ZIP archives.
#ifndef PERMAFROST_IO_FORMATS_GZIP_H_
#define PERMAFROST_IO_FORMATS_GZIP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// Decompresses a raw deflate stream (RFC 1951) of exactly `size` bytes. Returns DataLoss if it is damaged or has
// another size. REQUIRES: the caller has checked that `size` is acceptable.
absl::StatusOr<std::string> InflateRaw(absl::string_view packed, size_t size);

// Returns the checksum of gzip and ZIP (CRC-32, RFC 1952).
uint32_t ZipChecksum(absl::string_view bytes);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_GZIP_H_
