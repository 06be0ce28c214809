// Encodes and writes the entries (tensorflow/core/util/test_log.proto: BenchmarkEntries, BenchmarkEntry).
#include "tools/measuring/benchmark_entries.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "io/little_endian.h"

namespace permafrost {
namespace {

void AppendDouble(uint32_t number, double value, std::string* out) {
  AppendTag(number, WireType::kFixed64, out);
  AppendLittleEndian64(absl::bit_cast<uint64_t>(value), out);
}

}  // namespace

std::string EncodeBenchmarkEntry(const BenchmarkEntry& entry) {
  const auto iterations = static_cast<double>(std::max<int64_t>(1, entry.iterations));
  std::string fields;
  AppendBytesField(1, entry.name, &fields);
  AppendVarintField(2, static_cast<uint64_t>(entry.iterations), &fields);
  AppendDouble(3, -1.0 / iterations, &fields);  // CPU time, which is not measured.
  AppendDouble(4, entry.total_seconds / iterations, &fields);
  AppendDouble(5, entry.throughput, &fields);
  std::string message;
  AppendBytesField(1, fields, &message);
  return message;
}

std::string BenchmarkEntryPath(const std::string& prefix, const std::string& name) {
  return absl::StrCat(prefix, absl::StrReplaceAll(name, {{"/", "__"}}));
}

absl::Status WriteBenchmarkEntries(const std::string& prefix, const std::vector<BenchmarkEntry>& entries,
                                   FileSystem& files) {
  for (const BenchmarkEntry& entry : entries) {
    const std::string path = BenchmarkEntryPath(prefix, entry.name);
    if (files.Exists(path)) {
      return absl::AlreadyExistsError(absl::StrCat("--output_prefix: '", path, "' is there already"));
    }
  }
  for (const BenchmarkEntry& entry : entries) {
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer,
                        files.NewWriter(BenchmarkEntryPath(prefix, entry.name)));
    PF_RETURN_IF_ERROR(writer->Append(EncodeBenchmarkEntry(entry)));
    PF_RETURN_IF_ERROR(writer->Commit());
  }
  return absl::OkStatus();
}

}  // namespace permafrost
