// Fuzz target: bytes as a compressed model. The output must not exceed the limit, and for intact frames it must equal
// the library's output.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/escaping.h"
#include "io/formats/zstd.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  constexpr uint64_t kMost = 1 << 20;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ModelSource source;
  source.bytes = MemorySource({bytes, nullptr});
  source.head = {bytes.substr(0, ModelSource::kEndBytes), nullptr};
  if (!kZstdWrapping.is(source)) return 0;
  OpenOptions options;
  options.max_model_bytes = kMost;
  const absl::StatusOr<std::shared_ptr<const ByteSource>> inner = kZstdWrapping.open(source, options);
  const auto fail = [&](const char* what) {
    std::fprintf(stderr, "%s\ninput: \"%s\"\n", what, absl::CHexEscape(bytes).c_str());
    std::abort();
  };
  if (!inner.ok()) {
    const std::string message(inner.status().message());
    if (message.find('\n') != std::string::npos || message.rfind("byte ", 0) != 0) fail("the message names no byte");
    return 0;
  }
  if ((*inner)->size() > kMost) fail("more came out than is allowed");
  // The decompressed bytes can be written and read again.
  const FileView view = *ReadAll(**inner);
  StringSink again;
  ZstdSink sink(&again, kFastestZstdLevel, view.bytes.size());
  if (!sink.Append(view.bytes).ok() || !sink.Finish().ok()) fail("decompressed bytes cannot be compressed");
  source.bytes = MemorySource({again.text(), nullptr});
  const auto reread = kZstdWrapping.open(source, options);
  if (!reread.ok() || (*ReadAll(**reread)).bytes != view.bytes) fail("compressed bytes decompress to other bytes");
  return 0;
}
