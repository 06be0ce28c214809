// Fuzz target: bytes as a text GraphDef. Accepted text must be stable when written and read again.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "io/formats/graphdef_text.h"

namespace permafrost {
namespace {

std::string RoundTrip(absl::string_view text) {
  const google::protobuf::LogSilencer no_reports;
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDefText(text);
  if (!graph.ok()) return "";
  StringSink first, second;
  if (const absl::Status status = WriteGraphDefText(**graph, &first); !status.ok()) return status.ToString();
  const absl::StatusOr<std::unique_ptr<Graph>> again = ReadGraphDefText(first.text());
  if (!again.ok()) return again.status().ToString();
  if (const absl::Status status = WriteGraphDefText(**again, &second); !status.ok()) return status.ToString();
  return first.text() == second.text() ? "" : "the text changes when it is read and written again";
}

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string problem = permafrost::RoundTrip(text);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\ninput: \"%s\"\n", problem.c_str(), absl::CHexEscape(text).c_str());
    std::abort();
  }
  return 0;
}
