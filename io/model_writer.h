// Writes a model where there is no file: into memory, say.
#ifndef PERMAFROST_IO_MODEL_WRITER_H_
#define PERMAFROST_IO_MODEL_WRITER_H_

#include "absl/status/status.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "io/model_file.h"

namespace permafrost {

// What SaveModel puts into a file, EncodedSize() bytes. After an error the sink holds a part of it.
absl::Status WriteModel(const Graph& graph, const SaveOptions& options, ByteSink* sink);

}  // namespace permafrost

#endif  // PERMAFROST_IO_MODEL_WRITER_H_
