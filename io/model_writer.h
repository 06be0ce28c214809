// Writes a model to a sink other than a file, such as memory.
#ifndef PERMAFROST_IO_MODEL_WRITER_H_
#define PERMAFROST_IO_MODEL_WRITER_H_

#include "absl/status/status.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "io/model_file.h"

namespace permafrost {

// Appends the bytes that SaveModel would write, EncodedSize() of them, to `sink`. After an error the sink holds a part.
absl::Status WriteModel(const Graph& graph, const SaveOptions& options, ByteSink* sink);

}  // namespace permafrost

#endif  // PERMAFROST_IO_MODEL_WRITER_H_
