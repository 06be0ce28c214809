// Provenance of a graph that was read from a TensorFlow Lite model: which operators of the file are still in it.
//
// Nothing is recorded in nodes. The file is imported once more when a graph is written, and an operator is kept if the
// graph has the nodes that its import makes: the same ops, attributes and constants, connected in the same way, with no
// other reader of an inner value. So an edit by a pass can be missed neither by the pass nor by the writer.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_PROVENANCE_H_
#define PERMAFROST_IO_FORMATS_TFLITE_PROVENANCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/graph_source.h"
#include "io/file_system.h"
#include "io/formats/tflite/container.h"

namespace permafrost {

// The file that a graph was read from.
class TfliteSource : public GraphSource {
 public:
  // `entry` is the subgraph that became the graph.
  TfliteSource(FileView file, uint64_t max_decoded_bytes, int entry)
      : file_(std::move(file)), max_decoded_bytes_(max_decoded_bytes), entry_(entry) {}

  absl::string_view format() const override;
  const FileView& file() const { return file_; }
  int entry() const { return entry_; }
  // Returns the same file with another entry.
  std::shared_ptr<const TfliteSource> WithEntry(int entry) const {
    return std::make_shared<TfliteSource>(file_, max_decoded_bytes_, entry);
  }
  absl::StatusOr<TfliteContainer> Open() const { return TfliteContainer::Open(file_, max_decoded_bytes_); }

 private:
  FileView file_;
  uint64_t max_decoded_bytes_;
  int entry_;
};

// Returns the file that a graph was read from, or null if it was no TensorFlow Lite model.
std::shared_ptr<const TfliteSource> TfliteSourceOf(const Graph& graph);

// The result of KeepOperators.
struct KeptOperators {
  int kept = 0, total = 0;  // Operators of the file.
};

// True if the graph, its functions and its interface are those that reading its source makes.
absl::StatusOr<bool> IsUnchanged(const Graph& graph, const TfliteSource& source);

// Replaces the nodes of each operator of the source that is still in the graph by a node that carries the operator. A
// graph without a source is left alone.
absl::StatusOr<KeptOperators> KeepOperators(Graph* graph);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_PROVENANCE_H_
