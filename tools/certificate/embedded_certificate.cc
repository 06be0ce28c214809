// Finds and appends certificates in GraphDefs.
#include "tools/certificate/embedded_certificate.h"

#include <cstdint>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/wire_format/graphdef_fields.h"
#include "io/formats/age/crypto.h"

namespace permafrost {
namespace {

constexpr uint32_t kField = graphdef_fields::kCertificate;
constexpr absl::string_view kMark = "PFcertv1";
constexpr size_t kEnd = 8 + 8;  // The length and the mark.

std::string LengthBytes(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(length >> (8 * i)));
  return bytes;
}

}  // namespace

SplitModel SplitCertificate(absl::string_view file) {
  const SplitModel none = {file, ""};
  if (file.size() < kEnd || !absl::EndsWith(file, kMark)) return none;
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) {
    length |= static_cast<uint64_t>(static_cast<unsigned char>(file[file.size() - kEnd + i])) << (8 * i);
  }
  if (length > file.size()) return none;
  std::string head;
  AppendLengthPrefix(kField, length + kEnd, &head);
  const uint64_t size = head.size() + length + kEnd;
  if (size > file.size()) return none;
  const absl::string_view field = file.substr(file.size() - size);
  if (!absl::StartsWith(field, head)) return none;
  return {file.substr(0, file.size() - size), field.substr(head.size(), length)};
}

std::string EmbeddedCertificate(absl::string_view text) {
  std::string bytes;
  AppendBytesField(kField, absl::StrCat(text, LengthBytes(text.size()), kMark), &bytes);
  return bytes;
}

absl::StatusOr<CertifiedFile> CertifyModel(FileSystem& files, const std::string& path, std::string* certificate) {
  PF_ASSIGN_OR_RETURN(const FileView view, files.MapFile(path));
  const SplitModel split = SplitCertificate(view.bytes);
  if (certificate != nullptr) *certificate = std::string(split.certificate);
  return CertifiedFile{absl::BytesToHexString(age::Sha256(split.model)), split.model.size()};
}

absl::Status EmbedCertificate(FileSystem& files, const std::string& path, absl::string_view text) {
  PF_ASSIGN_OR_RETURN(const FileView view, files.MapFile(path));
  if (!SplitCertificate(view.bytes).certificate.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' has a certificate already"));
  }
  const std::string appended = EmbeddedCertificate(text);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer,
                      files.NewWriter(path, view.bytes.size() + appended.size()));
  PF_RETURN_IF_ERROR(writer->Append(view.bytes));
  PF_RETURN_IF_ERROR(writer->Append(appended));
  return writer->Commit();
}

}  // namespace permafrost
