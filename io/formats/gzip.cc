// Implements GzipSink. The only file of the project that uses zlib.
#include "io/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr int kLevel = 6;             // Z_DEFAULT_COMPRESSION, and the gzip tool's default.
constexpr int kGzipWindow = 15 + 16;  // 32 KiB, the maximum; adding 16 selects gzip's header and checksum.
constexpr int kMemoryLevel = 8;       // zlib's default.
constexpr size_t kScratch = 64 << 10;
constexpr size_t kMostAtOnce = 1 << 30;  // zlib uses 32-bit sizes.

}  // namespace

struct GzipSink::State {
  ByteSink* out = nullptr;
  z_stream stream = {};
  bool is_ready = false;
  std::string scratch;

  absl::Status Compress(absl::string_view bytes, int flush) {
    if (!is_ready) return absl::ResourceExhaustedError("no memory to compress");
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    for (;;) {
      stream.next_out = reinterpret_cast<Bytef*>(scratch.data());
      stream.avail_out = static_cast<uInt>(scratch.size());
      const int result = deflate(&stream, flush);
      if (result == Z_STREAM_ERROR) return absl::InternalError("cannot compress: zlib reports an inconsistent state");
      const size_t made = scratch.size() - stream.avail_out;
      if (made > 0) PF_RETURN_IF_ERROR(out->Append({scratch.data(), made}));
      if (flush == Z_FINISH ? result == Z_STREAM_END : stream.avail_out > 0) return absl::OkStatus();
    }
  }
};

GzipSink::GzipSink(ByteSink* out) : state_(std::make_unique<State>()) {
  state_->out = out;
  state_->scratch.resize(kScratch);
  state_->is_ready =
      deflateInit2(&state_->stream, kLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK;
}

GzipSink::~GzipSink() {
  if (state_->is_ready) deflateEnd(&state_->stream);
}

absl::Status GzipSink::Append(absl::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kMostAtOnce, bytes.size()))) {
    PF_RETURN_IF_ERROR(state_->Compress(bytes.substr(0, kMostAtOnce), Z_NO_FLUSH));
  }
  return absl::OkStatus();
}

absl::Status GzipSink::Finish() { return state_->Compress({}, Z_FINISH); }

}  // namespace permafrost
