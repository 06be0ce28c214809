// Dumps a checkpoint for the oracle. `dump_checkpoint PATH OUT` prints "<number of dtype> <dimensions> <bytes> <name>"
// for each variable and appends its bytes to OUT. Each string is preceded by its length (8 bytes, little-endian).
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/formats/checkpoint/checkpoint.h"

namespace permafrost {
namespace {

std::string Flat(const Tensor& value) {
  if (value.dtype() != DType::kString) return std::string(value.bytes());
  std::string flat;
  for (const std::string& text : value.strings()) {
    for (int i = 0; i < 8; ++i) flat.push_back(static_cast<char>(uint64_t{text.size()} >> (8 * i)));
    flat += text;
  }
  return flat;
}

absl::Status Dump(const std::string& path, const std::string& out) {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<VariableSource> source, OpenCheckpoint(RealFileSystem(), path));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> file, RealFileSystem().NewWriter(out));
  for (const VariableInfo& variable : source->variables()) {
    PF_ASSIGN_OR_RETURN(const Tensor value, source->Read(variable.name));
    const std::string bytes = Flat(value);
    PF_RETURN_IF_ERROR(file->Append(bytes));
    std::printf("%d [%s] %zu %s\n", static_cast<int>(variable.dtype), absl::StrJoin(variable.shape.dims(), ",").c_str(),
                bytes.size(), variable.name.c_str());
  }
  return file->Commit();
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: dump_checkpoint PATH OUT\n");
    return 2;
  }
  const absl::Status status = permafrost::Dump(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "dump_checkpoint: %s\n", std::string(status.message()).c_str());
  return 1;
}
