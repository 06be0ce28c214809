// Fuzz target: bytes as the files of a checkpoint. Checksums of the table are corrected first.
//
// The input is a table. It is a complete checkpoint of version 1; for a bundle, the bytes after the table's end mark
// are the shard. Opening and reading must terminate with a value or an error, and values must match the listed types
// and shapes.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/base/wire.h"
#include "io/crc32c.h"
#include "io/formats/checkpoint/checkpoint.h"
#include "io/formats/checkpoint/table_block.h"
#include "tests/io/memory_file_system.h"

namespace permafrost {
namespace {

constexpr absl::string_view kEndMark("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
constexpr size_t kFooterSize = 48;
constexpr size_t kTrailerSize = 5;

// Corrects the checksum of the block that the handle at the start of `handle` refers to, so that damage inside it is
// not rejected early. Returns the block's content, or an empty view if the handle is invalid.
absl::string_view Mend(absl::string_view* handle, std::string* table) {
  uint64_t offset = 0, size = 0;
  bool error = false;
  if (!NextPackedVarint(handle, &offset, &error) || !NextPackedVarint(handle, &size, &error)) return {};
  if (offset > table->size() || table->size() - offset < kTrailerSize || size > table->size() - offset - kTrailerSize) {
    return {};
  }
  const uint32_t crc = MaskCrc32c(Crc32c(absl::string_view(*table).substr(offset, size + 1)));
  for (int i = 0; i < 4; ++i) (*table)[offset + size + 1 + i] = static_cast<char>(crc >> (8 * i));
  return absl::string_view(*table).substr(offset, size);
}

void MendChecksums(std::string* table) {
  if (table->size() < kFooterSize) return;
  const std::string footer = table->substr(table->size() - kFooterSize);
  absl::string_view handles = footer;
  Mend(&handles, table);
  const std::string list(Mend(&handles, table));
  absl::StatusOr<TableBlockReader> blocks = TableBlockReader::Open(list);
  while (blocks.ok() && blocks->Next()) {
    absl::string_view handle = blocks->value();
    Mend(&handle, table);
  }
  // The checksum of the list of blocks is corrected last, after its content is final.
  handles = footer;
  Mend(&handles, table);
  Mend(&handles, table);
}

std::string ReadAllOf(MemoryFileSystem& files, const std::string& path) {
  OpenOptions options;
  options.max_model_bytes = 1 << 26;
  const absl::StatusOr<std::unique_ptr<VariableSource>> source = OpenCheckpoint(files, path, options);
  if (!source.ok()) return source.status().message().empty() ? "an error without a message" : "";
  for (const VariableInfo& variable : (*source)->variables()) {
    const absl::StatusOr<Tensor> value = (*source)->Read(variable.name);
    if (value.ok() && (value->dtype() != variable.dtype || value->shape() != variable.shape)) {
      return absl::StrCat("the value of '", variable.name, "' is not of the type and shape that is listed");
    }
  }
  return "";
}

std::string Try(absl::string_view input) {
  const size_t mark = input.find(kEndMark);
  const size_t end = mark == absl::string_view::npos ? input.size() : mark + kEndMark.size();
  std::string table(input.substr(0, end));
  const std::string shard(input.substr(end));
  for (const bool mended : {false, true}) {
    if (mended) MendChecksums(&table);
    MemoryFileSystem files({{"m.index", table}, {"m.data-00000-of-00001", shard}, {"old", table}});
    for (const char* path : {"m", "old"}) {
      if (std::string problem = ReadAllOf(files, path); !problem.empty()) return problem;
    }
  }
  return "";
}

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string problem = permafrost::Try(bytes);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\ninput: \"%s\"\n", problem.c_str(), absl::CHexEscape(bytes).c_str());
    std::abort();
  }
  return 0;
}
