// Replaces the extension of a model's name.
#include "tools/command_line/certificate_path.h"

#include "absl/strings/str_cat.h"

namespace permafrost {

std::string CertificatePath(const std::string& model) {
  const size_t name = model.rfind('/') == std::string::npos ? 0 : model.rfind('/') + 1;
  const size_t dot = model.rfind('.');
  return absl::StrCat(dot == std::string::npos || dot <= name ? model : model.substr(0, dot), ".certificate.json");
}

}  // namespace permafrost
