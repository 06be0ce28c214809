// Fuzz target: bytes as a transform string. What is parsed must print as a string that parses to the same calls.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/fuzz/finding.h"
#include "transforms/pipeline/pipeline.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto text_of = [](const std::vector<PassCall>& calls) {
    return absl::StrJoin(calls, " ", [](std::string* out, const PassCall& call) { out->append(call.ToString()); });
  };
  const absl::StatusOr<std::vector<PassCall>> calls = ParsePipeline(bytes);
  if (absl::IsInternal(calls.status()) || absl::IsUnknown(calls.status())) Fail(calls.status().ToString(), bytes);
  if (calls.ok()) {
    const std::string text = text_of(*calls);
    const absl::StatusOr<std::vector<PassCall>> again = ParsePipeline(text);
    if (!again.ok() || text_of(*again) != text) Fail("the calls do not survive printing", bytes);
  }
  const absl::Status checked = ParseTransforms(bytes).status();
  if (absl::IsInternal(checked) || absl::IsUnknown(checked)) Fail(checked.ToString(), bytes);
  return 0;
}
