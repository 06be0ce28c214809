// Implements zstd compression. The only file of the project that uses the zstd library.
#include "io/formats/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/graphdef.h"
#include "io/locked_memory.h"

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

// A buffer that grows with the data found. Unused capacity only takes address space, and large blocks grow by remapping
// pages; both are properties of the C library. Decrypted data are kept in LockedMemory, which grows by copying.
class GrowingBytes {
 public:
  explicit GrowingBytes(bool is_secret) : is_secret_(is_secret) {}
  GrowingBytes(const GrowingBytes&) = delete;
  GrowingBytes& operator=(const GrowingBytes&) = delete;
  ~GrowingBytes() { std::free(open_); }

  absl::Status Reserve(uint64_t capacity) {
    if (capacity <= capacity_) return absl::OkStatus();
    if (is_secret_) {
      PF_ASSIGN_OR_RETURN(LockedMemory grown, LockedMemory::Allocate(static_cast<size_t>(capacity)));
      if (size_ > 0) std::memcpy(grown.data(), data_, size_);
      locked_ = std::move(grown);
      data_ = locked_.data();
    } else {
      void* grown = std::realloc(open_, static_cast<size_t>(capacity));
      if (grown == nullptr) {
        return absl::ResourceExhaustedError(
            absl::StrCat("no memory for the ", capacity, " bytes that it decompresses to"));
      }
      open_ = data_ = static_cast<char*>(grown);
    }
    capacity_ = static_cast<size_t>(capacity);
    return absl::OkStatus();
  }

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  char* end() { return data_ + size_; }
  void Grow(size_t bytes) { size_ += bytes; }
  // False if the bytes should be locked in memory and are not.
  bool is_kept() const { return locked_.is_locked(); }

  // Returns the bytes and releases unused capacity.
  FileView Release() {
    if (data_ == nullptr) return {};
    if (is_secret_) {
      auto kept = std::make_shared<const LockedMemory>(std::move(locked_));
      return {kept->bytes().substr(0, size_), kept};
    }
    if (void* trimmed = std::realloc(open_, std::max<size_t>(size_, 1)); trimmed != nullptr) {
      open_ = static_cast<char*>(trimmed);
    }
    std::shared_ptr<const void> owner(open_, [](const void* data) { std::free(const_cast<void*>(data)); });
    const absl::string_view bytes(open_, size_);
    open_ = nullptr;
    return {bytes, std::move(owner)};
  }

 private:
  const bool is_secret_;
  char* data_ = nullptr;  // Address of the bytes in either kind of memory.
  char* open_ = nullptr;  // From malloc.
  LockedMemory locked_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

absl::Status AtByte(const absl::Status& status, uint64_t offset) {
  return Annotate(status, absl::StrCat("byte ", offset));
}

class FrameReader {
 public:
  FrameReader(absl::string_view file, bool is_secret, const OpenOptions& options)
      : file_(file), options_(options), most_(options.max_model_bytes), context_(ZSTD_createDCtx()), bytes_(is_secret) {
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
    PF_RETURN_IF_ERROR(CheckKept());
    return bytes_.Release();
  }

 private:
  absl::Status CheckKept() const {
    if (bytes_.is_kept()) return absl::OkStatus();
    const std::string text =
        absl::StrCat("the ", bytes_.size(),
                     " decompressed bytes of the encrypted model cannot be locked in memory and may be swapped: the "
                     "system allows less (ulimit -l)");
    if (options_.require_locked_memory) return absl::ResourceExhaustedError(text);
    if (options_.tell != nullptr) options_.tell(text);
    return absl::OkStatus();
  }

  absl::Status Skip(absl::string_view rest) {
    const size_t size = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
    if (ZSTD_isError(size)) return absl::DataLossError("the file is truncated within a skippable frame");
    at_ += size;
    return absl::OkStatus();
  }

  absl::Status TooLarge(absl::string_view verb, uint64_t bytes) const {
    return absl::ResourceExhaustedError(
        absl::StrCat("the model ", verb, " ", bytes, " bytes, expected at most ", most_, " (max_model_bytes)"));
  }

  // Reserves the size that the frame's header declares, if any and if it is plausible.
  absl::Status Declare(absl::string_view rest) {
    const unsigned long long declared = ZSTD_getFrameContentSize(rest.data(), rest.size());
    if (declared == ZSTD_CONTENTSIZE_ERROR)
      return absl::DataLossError("the header of the frame is broken or truncated");
    if (declared == ZSTD_CONTENTSIZE_UNKNOWN) return absl::OkStatus();
    if (declared > most_ - bytes_.size()) {
      const uint64_t room = std::numeric_limits<uint64_t>::max() - bytes_.size();
      return TooLarge("declares", bytes_.size() + std::min<uint64_t>(declared, room));
    }
    if (declared > (rest.size() / kLeastBlockSize + 1) * kMostBlockBytes) {
      return absl::DataLossError(absl::StrCat("the frame declares ", declared, " bytes, more than the ", rest.size(),
                                              " bytes that are left can hold"));
    }
    return bytes_.Reserve(bytes_.size() + declared);
  }

  absl::Status MakeRoom() {
    constexpr uint64_t kFirst = uint64_t{1} << 20;
    if (bytes_.size() < bytes_.capacity()) return absl::OkStatus();
    const uint64_t wanted = std::max(kFirst, 2 * static_cast<uint64_t>(bytes_.capacity()));
    // One byte above the limit distinguishes a model of exactly that size from a larger one.
    const uint64_t limit = most_ == std::numeric_limits<uint64_t>::max() ? most_ : most_ + 1;
    return bytes_.Reserve(std::min(wanted, limit));
  }

  // Decompresses the frame at at_.
  absl::Status Decompress() {
    ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
    ZSTD_inBuffer input = {file_.data() + at_, file_.size() - at_, 0};
    for (;;) {
      ZSTD_outBuffer output = {bytes_.end(), bytes_.capacity() - bytes_.size(), 0};
      const size_t left = ZSTD_decompressStream(context_, &output, &input);
      if (ZSTD_isError(left)) return DecodingError(left, input);
      bytes_.Grow(output.pos);
      if (bytes_.size() > most_) return TooLarge("has more than", most_);
      if (left == 0) break;
      if (output.pos < output.size && input.pos == input.size) {
        return absl::DataLossError("the file is truncated within the frame");
      }
      PF_RETURN_IF_ERROR(MakeRoom());
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
  const OpenOptions& options_;
  uint64_t most_;
  ZSTD_DCtx* context_;
  size_t at_ = 0;
  GrowingBytes bytes_;
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
