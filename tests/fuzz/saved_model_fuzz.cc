// Fuzz target: bytes as a SavedModel and as a MetaGraph. Accepted files must have a graph and valid signatures.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/escaping.h"
#include "io/formats/saved_model.h"

namespace permafrost {
namespace {

std::string Problem(const absl::StatusOr<MetaGraph>& meta) {
  if (!meta.ok()) return "";
  if (meta->graph == nullptr) return "there is no graph";
  for (const Signature& signature : meta->signatures) {
    const absl::StatusOr<const Signature*> found = FindSignature(*meta, signature.name);
    if (!found.ok() && signature.name != "") return found.status().ToString();
  }
  return "";
}

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const permafrost::FileView file = {absl::string_view(reinterpret_cast<const char*>(data), size), nullptr};
  for (const std::string& problem : {permafrost::Problem(permafrost::ReadSavedModel(file, false, {})),
                                     permafrost::Problem(permafrost::ReadMetaGraph(file, false))}) {
    if (problem.empty()) continue;
    std::fprintf(stderr, "%s\ninput: \"%s\"\n", problem.c_str(), absl::CHexEscape(file.bytes).c_str());
    std::abort();
  }
  return 0;
}
