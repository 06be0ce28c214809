// Fuzz target: bytes as an encrypted file. An accepted header must be canonical, and an opened file must have its
// original content.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/formats/age/file_builder.h"

namespace permafrost::age {
namespace {

// The content of all files in the corpus that the test's key opens.
constexpr absl::string_view kContent = "frozen plain content";

std::string Problem(const std::string& bytes) {
  const absl::StatusOr<AgeFile> file = InspectAge(SourceOf(bytes));
  if (!file.ok()) return "";
  const std::string written = absl::StrCat(AuthenticatedText(file->header.stanzas), MacLine(file->header.mac));
  const absl::StatusOr<FileView> whole = ReadAll(*file->bytes);
  if (!whole.ok()) return "the file cannot be read back";
  if (whole->bytes.substr(0, file->header.size) != written) return "the header is not canonical";
  if (file->layout.plain_bytes > bytes.size()) return "the content is larger than the file";
  // Passphrases are skipped because each takes seconds; their stanzas were parsed above.
  OpenOptions options;
  options.keys = KeysInMemory(kTestIdentity);
  const absl::StatusOr<std::shared_ptr<const ByteSource>> source = DecryptAge(*file, options);
  if (!source.ok()) return "";
  const absl::StatusOr<FileView> content = ReadAll(**source);
  if (content.ok() && content->bytes != kContent) return "the file opens with content that was never encrypted";
  return "";
}

}  // namespace
}  // namespace permafrost::age

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string problem = permafrost::age::Problem(bytes);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\ninput: \"%s\"\n", problem.c_str(), absl::CHexEscape(bytes).c_str());
    std::abort();
  }
  return 0;
}
