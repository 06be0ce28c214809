// Builds checkpoints entry by entry. LevelDB itself writes the tables.
#ifndef PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_ENCODING_H_
#define PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_ENCODING_H_

#include <cstdint>
#include <map>
#include <string>

#include "graph/dtype.h"
#include "graph/shape.h"

namespace permafrost {

struct TableStyle {
  bool compress = false;
  size_t block_size = 4096;
};
std::string MakeTable(const std::map<std::string, std::string>& entries, const TableStyle& style = {});

// A BundleEntryProto, which describes a variable in an index.
struct EntryFields {
  int32_t dtype = static_cast<int32_t>(DType::kFloat);
  Shape shape;
  int64_t shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc = 0;
  std::string slices;  // Encoded, including tags.
};
std::string EncodeBundleEntry(const EntryFields& fields);

// A BundleHeaderProto, the value of the empty key.
struct HeaderFields {
  int64_t num_shards = 1;
  int64_t endianness = 0;
  int64_t min_consumer = 0;
};
std::string EncodeBundleHeader(const HeaderFields& fields);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_ENCODING_H_
