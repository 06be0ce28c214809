// Fuzz target: bytes as a binary GraphDef, compared with protobuf's parser.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/escaping.h"
#include "tests/formats/differential.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string disagreement = permafrost::CompareWithProtobuf(bytes);
  if (!disagreement.empty()) {
    std::fprintf(stderr, "%s\ninput: \"%s\"\n", disagreement.c_str(), absl::CHexEscape(bytes).c_str());
    std::abort();
  }
  return 0;
}
