// Fuzz target: bytes as an encrypted file. A header that is taken has that one spelling only, and what opens is what
// was encrypted.
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

// What all files of the corpus that the test's key opens hold.
constexpr absl::string_view kContent = "frozen plain content";

std::string Problem(const std::string& bytes) {
  const absl::StatusOr<AgeFile> file = InspectAge(SourceOf(bytes));
  if (!file.ok()) return "";
  const std::string written = absl::StrCat(AuthenticatedText(file->header.stanzas), MacLine(file->header.mac));
  const absl::StatusOr<FileView> whole = ReadAll(*file->bytes);
  if (!whole.ok()) return "the file cannot be read back";
  if (whole->bytes.substr(0, file->header.size) != written) return "the header has another spelling than this";
  if (file->layout.plain_bytes > bytes.size()) return "the content is larger than the file";
  // Passphrases cost seconds each; their stanzas were read above.
  OpenOptions options;
  options.keys = KeysInMemory(kTestIdentity);
  const absl::StatusOr<std::shared_ptr<const ByteSource>> source = DecryptAge(*file, options);
  if (!source.ok()) return "";
  const absl::StatusOr<FileView> content = ReadAll(**source);
  if (content.ok() && content->bytes != kContent) return "it opens to something that nobody encrypted";
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
