// A certificate at the end of a binary GraphDef: a top-level field of the message that TensorFlow does not know and
// skips. The bytes before it are the model that is certified, unchanged.
//
//   ... model ...  tag and length of field 1001  text  length of the text (8 bytes, little-endian)  "PFcertv1"
#ifndef PERMAFROST_TOOLS_CERTIFICATE_EMBEDDED_CERTIFICATE_H_
#define PERMAFROST_TOOLS_CERTIFICATE_EMBEDDED_CERTIFICATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"
#include "tools/certificate/certificate.h"

namespace permafrost {

// A file with a certificate; views of its bytes.
struct SplitModel {
  absl::string_view model;
  absl::string_view certificate;  // Text; empty without one.
};

// Finds a certificate at the end of the bytes. O(1): the end says where it begins.
SplitModel SplitCertificate(absl::string_view file);

// Returns the bytes that embed the text of a certificate behind a model.
std::string EmbeddedCertificate(absl::string_view text);

// Returns the description of a model's content without an embedded certificate, and the text of that in `certificate`,
// which may be null. Errors are those of MapFile.
absl::StatusOr<CertifiedFile> CertifyModel(FileSystem& files, const std::string& path, std::string* certificate);

// Appends a certificate to the model in a file, which is replaced atomically. InvalidArgument if the file has one.
absl::Status EmbedCertificate(FileSystem& files, const std::string& path, absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_CERTIFICATE_EMBEDDED_CERTIFICATE_H_
