// Implements zstd compression. The only file of the project that uses the zstd library.
#include "io/formats/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/decompressed_bytes.h"
#include "io/formats/graphdef.h"

namespace permafrost {
namespace {

// Start of a frame (RFC 8878, 3.1.1 and 3.1.2). The low half of the first byte of a skippable frame is arbitrary.
constexpr absl::string_view kFrameMagic("\x28\xb5\x2f\xfd", 4);
constexpr absl::string_view kSkippableMagic("\x2a\x4d\x18", 3);

// Window size that decoders accept by default, as a power of 2 (ZSTD_WINDOWLOG_LIMIT_DEFAULT, and the zstd tool without
// --long).
constexpr int kMostWindowLog = 27;
// From this size on, long-distance matching finds repetitions beyond the default window of the levels.
constexpr uint64_t kLongDistanceBytes = uint64_t{8} << 20;
// Of a window of 128 MiB, how much of the bytes before it a thread's job sees: 1 / 2^(9 - 6), which is 16 MiB. zstd
// makes jobs no smaller than that, so that a model of 90 MB keeps six threads busy.
constexpr int kOverlapLog = 6;

// RFC 8878, 3.1.1.2: a block has a header of 3 bytes and at least 1 byte of content, and expands to at most 128 KiB.
constexpr uint64_t kMostBlockBytes = uint64_t{128} << 10;
constexpr uint64_t kLeastBlockSize = 4;

bool IsSkippable(absl::string_view bytes) {
  return bytes.size() >= 4 && (bytes[0] & '\xf0') == '\x50' && absl::StartsWith(bytes.substr(1), kSkippableMagic);
}

absl::Status AtByte(const absl::Status& status, uint64_t offset) {
  return Annotate(status, absl::StrCat("byte ", offset));
}

class FrameReader {
 public:
  FrameReader(absl::string_view file, bool is_secret, const OpenOptions& options)
      : file_(file), context_(ZSTD_createDCtx()), bytes_(is_secret, file.size(), options) {
    if (context_ != nullptr) ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kMostWindowLog);
  }
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;
  ~FrameReader() { ZSTD_freeDCtx(context_); }

  absl::StatusOr<FileView> Run() {
    if (context_ == nullptr) return absl::ResourceExhaustedError("no memory to decompress");
    while (at_ < file_.size()) {
      const size_t frame = at_;
      const absl::string_view rest = file_.substr(at_);
      if (IsSkippable(rest)) {
        PF_RETURN_IF_ERROR(AtByte(Skip(rest), frame));
      } else if (absl::StartsWith(rest, kFrameMagic)) {
        PF_RETURN_IF_ERROR(AtByte(Declare(rest), frame));
        PF_RETURN_IF_ERROR(AtByte(Decompress(), frame));
      } else {
        return AtByte(absl::DataLossError("found no frame, expected one or the end of the file"), frame);
      }
    }
    return bytes_.Release();
  }

 private:
  absl::Status Skip(absl::string_view rest) {
    const size_t size = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
    if (ZSTD_isError(size)) return absl::DataLossError("the file is truncated within a skippable frame");
    at_ += size;
    return absl::OkStatus();
  }

  // Reserves the size that the frame's header declares, if any and if it is plausible.
  absl::Status Declare(absl::string_view rest) {
    const unsigned long long declared = ZSTD_getFrameContentSize(rest.data(), rest.size());
    if (declared == ZSTD_CONTENTSIZE_ERROR)
      return absl::DataLossError("the header of the frame is broken or truncated");
    if (declared == ZSTD_CONTENTSIZE_UNKNOWN) return absl::OkStatus();
    PF_RETURN_IF_ERROR(bytes_.CheckDeclared(declared));
    if (declared > (rest.size() / kLeastBlockSize + 1) * kMostBlockBytes) {
      return absl::DataLossError(absl::StrCat("the frame declares ", declared, " bytes, more than the ", rest.size(),
                                              " bytes that are left can hold"));
    }
    return bytes_.Reserve(bytes_.size() + declared);
  }

  // Decompresses the frame at at_.
  absl::Status Decompress() {
    ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
    ZSTD_inBuffer input = {file_.data() + at_, file_.size() - at_, 0};
    for (;;) {
      ZSTD_outBuffer output = {bytes_.end(), bytes_.room(), 0};
      const size_t left = ZSTD_decompressStream(context_, &output, &input);
      if (ZSTD_isError(left)) return DecodingError(left, input);
      PF_RETURN_IF_ERROR(bytes_.Grow(output.pos));
      if (left == 0) break;
      if (output.pos < output.size && input.pos == input.size) {
        return absl::DataLossError("the file is truncated within the frame");
      }
      PF_RETURN_IF_ERROR(bytes_.MakeRoom());
    }
    at_ += input.pos;
    return absl::OkStatus();
  }

  absl::Status DecodingError(size_t code, const ZSTD_inBuffer& input) const {
    switch (ZSTD_getErrorCode(code)) {
      case ZSTD_error_checksum_wrong:
        return absl::DataLossError("the checksum of the frame is wrong");
      case ZSTD_error_dictionary_wrong:
        return absl::InvalidArgumentError(absl::StrCat("the frame needs dictionary ",
                                                       ZSTD_getDictID_fromFrame(input.src, input.size),
                                                       ", expected one without a dictionary"));
      case ZSTD_error_frameParameter_windowTooLarge:
        return absl::InvalidArgumentError(absl::StrCat("the frame needs a window of more than ",
                                                       1 << (kMostWindowLog - 20),
                                                       " MiB; compress it again without --ultra or --long"));
      case ZSTD_error_memory_allocation:
        return absl::ResourceExhaustedError("no memory to decompress");
      default:
        return absl::DataLossError(absl::StrCat("the frame is damaged (", ZSTD_getErrorName(code), ")"));
    }
  }

  absl::string_view file_;
  ZSTD_DCtx* context_;
  size_t at_ = 0;
  DecompressedBytes bytes_;
};

bool IsZstd(const ModelSource& source) {
  return absl::StartsWith(source.head.bytes, kFrameMagic) || IsSkippable(source.head.bytes);
}

absl::StatusOr<std::shared_ptr<const ByteSource>> OpenZstd(const ModelSource& source, const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(const FileView file, ReadAll(*source.bytes));
  const bool is_secret = source.bytes->is_secret();
  PF_ASSIGN_OR_RETURN(FileView bytes, FrameReader(file.bytes, is_secret, options).Run());
  return MemorySource(std::move(bytes), is_secret);
}

}  // namespace

const ModelWrapping kZstdWrapping{"zstd", IsZstd, OpenZstd};

struct ZstdSink::State {
  ByteSink* out = nullptr;
  ZSTD_CCtx* context = nullptr;
  std::string scratch;
  uint64_t size = 0, done = 0;
  std::function<void(uint64_t done, uint64_t size)> progress;

  absl::Status Compress(absl::string_view bytes, ZSTD_EndDirective mode) {
    if (context == nullptr) return absl::ResourceExhaustedError("no memory to compress");
    ZSTD_inBuffer input = {bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer output = {scratch.data(), scratch.size(), 0};
      const size_t left = ZSTD_compressStream2(context, &output, &input, mode);
      if (ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation) {
        return absl::ResourceExhaustedError("no memory to compress");
      }
      if (ZSTD_isError(left)) return absl::InternalError(absl::StrCat("cannot compress: ", ZSTD_getErrorName(left)));
      if (output.pos > 0) PF_RETURN_IF_ERROR(out->Append({scratch.data(), output.pos}));
      if (mode == ZSTD_e_end ? left > 0 : input.pos < input.size) continue;
      done += bytes.size();
      if (progress != nullptr && size > 0 && mode != ZSTD_e_end) progress(done, size);
      return absl::OkStatus();
    }
  }
};

ZstdSink::ZstdSink(ByteSink* out, const ZstdOptions& options, uint64_t size) : state_(std::make_unique<State>()) {
  state_->out = out;
  state_->size = size;
  state_->progress = options.progress;
  state_->context = ZSTD_createCCtx();
  state_->scratch.resize(ZSTD_CStreamOutSize());
  if (state_->context == nullptr) return;
  const auto set = [&](ZSTD_cParameter parameter, int value) {
    ZSTD_CCtx_setParameter(state_->context, parameter, value);
  };
  set(ZSTD_c_compressionLevel, std::clamp(options.level, kFastestZstdLevel, kSmallestZstdLevel));
  set(ZSTD_c_checksumFlag, 1);
  if (options.num_threads > 0) set(ZSTD_c_nbWorkers, std::min(options.num_threads, kMostZstdThreads));
  if (size > kLongDistanceBytes) {
    set(ZSTD_c_enableLongDistanceMatching, 1);
    set(ZSTD_c_windowLog, kMostWindowLog);  // zstd reduces it for small sizes.
    if (options.num_threads > 0) {
      set(ZSTD_c_overlapLog, kOverlapLog);
      set(ZSTD_c_jobSize, 1);  // zstd raises it to the overlap.
    }
  }
  if (size > 0) ZSTD_CCtx_setPledgedSrcSize(state_->context, size);
}

ZstdSink::~ZstdSink() { ZSTD_freeCCtx(state_->context); }

absl::Status ZstdSink::Append(absl::string_view bytes) { return state_->Compress(bytes, ZSTD_e_continue); }

absl::Status ZstdSink::Finish() { return state_->Compress({}, ZSTD_e_end); }

MakeFilter ZstdFilter(const ZstdOptions& options) {
  return [options](ByteSink* out, uint64_t size) -> absl::StatusOr<std::unique_ptr<FilterSink>> {
    return std::make_unique<ZstdSink>(out, options, size);
  };
}

absl::StatusOr<uint64_t> CompressedSize(const Graph& graph, int level) {
  CountingSink size;
  ZstdSink compressed(&size, level, GraphDefSize(graph));
  PF_RETURN_IF_ERROR(WriteGraphDef(graph, &compressed));
  PF_RETURN_IF_ERROR(compressed.Finish());
  return size.size();
}

}  // namespace permafrost
