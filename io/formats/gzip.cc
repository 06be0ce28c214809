// Implements gzip compression. The only file of the project that uses zlib.
#include "io/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/decompressed_bytes.h"

namespace permafrost {
namespace {

constexpr int kLevel = 6;             // Z_DEFAULT_COMPRESSION, and the gzip tool's default.
constexpr int kGzipWindow = 15 + 16;  // 32 KiB, the maximum; adding 16 selects gzip's header and checksum.
constexpr int kMemoryLevel = 8;       // zlib's default.
constexpr size_t kScratch = 64 << 10;
constexpr size_t kMostAtOnce = 1 << 30;  // zlib uses 32-bit sizes.
// Start of a member: two bytes of identification, and the only compression method (RFC 1952, 2.3.1).
constexpr absl::string_view kMemberMagic("\x1f\x8b\x08", 3);

bool IsGzip(const ModelSource& source) { return absl::StartsWith(source.head.bytes, kMemberMagic); }

// Decompresses the member that starts at *at, and advances *at to its end.
absl::Status ReadMember(absl::string_view file, z_stream* stream, size_t* at, DecompressedBytes* bytes) {
  for (;;) {
    PF_RETURN_IF_ERROR(bytes->MakeRoom());
    stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data() + *at));
    stream->avail_in = static_cast<uInt>(std::min(file.size() - *at, kMostAtOnce));
    stream->next_out = reinterpret_cast<Bytef*>(bytes->end());
    stream->avail_out = static_cast<uInt>(std::min(bytes->room(), kMostAtOnce));
    const uInt given = stream->avail_in, room = stream->avail_out;
    const int result = inflate(stream, Z_NO_FLUSH);
    const uInt taken = given - stream->avail_in, made = room - stream->avail_out;
    *at += taken;
    PF_RETURN_IF_ERROR(bytes->Grow(made));
    if (result == Z_STREAM_END) return absl::OkStatus();
    if (result == Z_MEM_ERROR) return absl::ResourceExhaustedError("no memory to decompress");
    if (result != Z_OK && result != Z_BUF_ERROR) {
      return absl::DataLossError(absl::StrCat("the member is damaged (",
                                              stream->msg != nullptr ? stream->msg : "no further information", ")"));
    }
    if (taken == 0 && made == 0) return absl::DataLossError("the file is truncated within the member");
  }
}

absl::StatusOr<std::shared_ptr<const ByteSource>> OpenGzip(const ModelSource& source, const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(const FileView file, ReadAll(*source.bytes));
  const bool is_secret = source.bytes->is_secret();
  DecompressedBytes bytes(is_secret, file.bytes.size(), options);
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return absl::ResourceExhaustedError("no memory to decompress");
  const absl::Cleanup end_stream = [&] { inflateEnd(&stream); };
  for (size_t at = 0; at < file.bytes.size();) {
    // The gzip tool ignores zeros after the last member, which padding of tapes leaves.
    if (file.bytes.find_first_not_of('\0', at) == absl::string_view::npos) break;
    const size_t start = at;
    if (!absl::StartsWith(file.bytes.substr(at), kMemberMagic)) {
      return Annotate(absl::DataLossError("found no member, expected one or the end of the file"),
                      absl::StrCat("byte ", start));
    }
    inflateReset(&stream);
    PF_RETURN_IF_ERROR(Annotate(ReadMember(file.bytes, &stream, &at, &bytes), absl::StrCat("byte ", start)));
  }
  PF_ASSIGN_OR_RETURN(FileView view, bytes.Release());
  return MemorySource(std::move(view), is_secret);
}

}  // namespace

const ModelWrapping kGzipWrapping{"gzip", IsGzip, OpenGzip};

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

absl::StatusOr<std::string> InflateRaw(absl::string_view packed, size_t size) {
  constexpr int kRawWindow = -15;  // 32 KiB; negative selects a stream without header and checksum.
  if (packed.size() > kMostAtOnce || size > kMostAtOnce) {
    return absl::ResourceExhaustedError(absl::StrCat("found ", size, " bytes, expected at most ", kMostAtOnce));
  }
  z_stream stream = {};
  if (inflateInit2(&stream, kRawWindow) != Z_OK) return absl::ResourceExhaustedError("no memory to decompress");
  const absl::Cleanup end_stream = [&] { inflateEnd(&stream); };
  std::string bytes(size, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(size);
  if (inflate(&stream, Z_FINISH) != Z_STREAM_END || stream.avail_out != 0) {
    return absl::DataLossError(absl::StrCat("the compressed content is damaged, expected ", size, " bytes"));
  }
  return bytes;
}

uint32_t ZipChecksum(absl::string_view bytes) {
  uLong checksum = crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size(); at += kMostAtOnce) {
    const absl::string_view part = bytes.substr(at, kMostAtOnce);
    checksum = crc32(checksum, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
  }
  return static_cast<uint32_t>(checksum);
}

}  // namespace permafrost
