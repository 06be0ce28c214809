// The project's only use of the zstd library.
#include "io/formats/zstd.h"

#include <zstd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/status.h"
#include "io/formats/graphdef.h"

namespace permafrost {

struct CompressedSizeSink::State {
  ZSTD_CCtx* context = nullptr;
  std::string scratch;
  uint64_t size = 0;

  absl::Status Compress(absl::string_view bytes, ZSTD_EndDirective mode) {
    if (context == nullptr) return absl::ResourceExhaustedError("no memory to compress");
    ZSTD_inBuffer input = {bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer output = {scratch.data(), scratch.size(), 0};
      const size_t left = ZSTD_compressStream2(context, &output, &input, mode);
      if (ZSTD_isError(left)) return absl::InternalError(absl::StrCat("cannot compress: ", ZSTD_getErrorName(left)));
      size += output.pos;
      if (mode == ZSTD_e_end ? left == 0 : input.pos == input.size) return absl::OkStatus();
    }
  }
};

CompressedSizeSink::CompressedSizeSink(int level) : state_(std::make_unique<State>()) {
  constexpr int kFastest = 1, kSmallest = 19;  // Beyond 19 zstd needs hundreds of megabytes.
  state_->context = ZSTD_createCCtx();
  state_->scratch.resize(ZSTD_CStreamOutSize());
  if (state_->context == nullptr) return;
  ZSTD_CCtx_setParameter(state_->context, ZSTD_c_compressionLevel, std::clamp(level, kFastest, kSmallest));
}

CompressedSizeSink::~CompressedSizeSink() { ZSTD_freeCCtx(state_->context); }

absl::Status CompressedSizeSink::Append(absl::string_view bytes) { return state_->Compress(bytes, ZSTD_e_continue); }

absl::StatusOr<uint64_t> CompressedSizeSink::Finish() {
  PF_RETURN_IF_ERROR(state_->Compress({}, ZSTD_e_end));
  return state_->size;
}

absl::StatusOr<uint64_t> CompressedSize(const Graph& graph, int level) {
  CompressedSizeSink sink(level);
  PF_RETURN_IF_ERROR(WriteGraphDef(graph, &sink));
  return sink.Finish();
}

}  // namespace permafrost
