// Copies short rows of bytes between memory with different distances of rows.
#ifndef PERMAFROST_GRAPH_BASE_ROW_COPY_H_
#define PERMAFROST_GRAPH_BASE_ROW_COPY_H_

#include <cstddef>
#include <cstdint>

namespace permafrost {

// Copies `count` rows of `bytes` bytes, which are `from_step` and `to_step` bytes apart. Rows of up to 128 bytes are
// copied without a function call for each, which would take longer than the copy. REQUIRES: source and target do not
// overlap.
void CopyByteRows(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t count, size_t bytes);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_ROW_COPY_H_
