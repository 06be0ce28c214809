// Fuzz target: bytes as JSON. The texts that are read must survive quoting and reading.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/formats/json_value.h"
#include "tests/fuzz/finding.h"

namespace permafrost {
namespace {

void CheckTexts(const JsonValue& value, absl::string_view input) {
  if (value.kind == JsonValue::Kind::kText) {
    const std::string quoted = absl::StrCat("[", JsonQuoted(value.text), "]");
    const absl::StatusOr<JsonValue> again = ParseJson(quoted);
    if (!again.ok() || again->items[0].text != value.text) Fail("a text does not survive quoting", input);
  }
  for (const JsonValue& item : value.items) CheckTexts(item, input);
  for (const auto& [key, member] : value.members) CheckTexts(member, input);
}

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<JsonValue> value = ParseJson(bytes);
  CheckError(value.status(), bytes);
  if (value.ok()) CheckTexts(*value, bytes);
  return 0;
}
