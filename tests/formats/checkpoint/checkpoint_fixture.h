// Checkpoints for tests: those that TensorFlow wrote, and ones made up entry by entry.
#ifndef PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_FIXTURE_H_
#define PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_FIXTURE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace permafrost {

// The path of what make_checkpoints.py wrote.
std::string WrittenFile(absl::string_view name);

// The variables that TensorFlow put into the checkpoint `name`, by name.
std::map<std::string, Tensor> RecordedVariables(absl::string_view name);

// A new empty folder for the running test.
std::string NewFolder();
void WriteFileForTest(const std::string& path, absl::string_view bytes);

// A table that LevelDB wrote.
struct TableStyle {
  bool compress = false;
  size_t block_size = 4096;
};
std::string MakeTable(const std::map<std::string, std::string>& entries, const TableStyle& style = {});

// What the index of a bundle holds.
struct EntryFields {
  int32_t dtype = static_cast<int32_t>(DType::kFloat);
  Shape shape;
  int64_t shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc = 0;
  std::string slices;  // Encoded fields.
};
std::string EncodeBundleEntry(const EntryFields& fields);
std::string EncodeBundleHeader(int64_t num_shards, int64_t endianness = 0, int64_t min_consumer = 0);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_FIXTURE_H_
