// Fuzz target: bytes as a TensorFlow Lite model. A graph that is read must be a valid GraphDef.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "graph/graph.h"
#include "io/formats/graphdef.h"
#include "io/formats/tflite/tflite.h"
#include "tests/fuzz/finding.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ModelSource source;
  source.bytes = MemorySource({bytes, nullptr});
  source.head = {bytes.substr(0, ModelSource::kEndBytes), nullptr};
  source.tail = {bytes.substr(bytes.size() - source.head.bytes.size()), nullptr};
  OpenOptions options;
  options.max_model_bytes = 1 << 20;
  const absl::StatusOr<std::unique_ptr<Graph>> graph = kTfliteFormat.read(source, options);
  CheckError(graph.status(), bytes);
  if (!graph.ok()) return 0;
  StringSink written;
  if (!WriteGraphDef(**graph, &written).ok()) Fail("an accepted graph cannot be written", bytes);
  const absl::StatusOr<std::unique_ptr<Graph>> again = ReadGraphDef(written.text(), nullptr);
  if (!again.ok()) Fail(again.status().message(), bytes);
  if ((*again)->num_nodes() != (*graph)->num_nodes()) Fail("nodes are lost", bytes);
  return 0;
}
