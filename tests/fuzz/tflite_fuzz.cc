// Fuzz target: bytes as a TensorFlow Lite model. A graph that is read must be a valid GraphDef, and what can be written
// as a TensorFlow Lite model again must be readable.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "graph/graph.h"
#include "io/formats/graphdef.h"
#include "io/formats/tflite/metadata.h"
#include "io/formats/tflite/provenance.h"
#include "io/formats/tflite/subgraph_export.h"
#include "io/formats/tflite/tflite.h"
#include "tests/fuzz/finding.h"
#include "tests/fuzz/tflite_mutator.h"

namespace permafrost {
namespace {

absl::StatusOr<std::unique_ptr<Graph>> ReadTflite(absl::string_view bytes) {
  ModelSource source;
  source.bytes = MemorySource({bytes, nullptr});
  source.head = {bytes.substr(0, ModelSource::kEndBytes), nullptr};
  source.tail = {bytes.substr(bytes.size() - source.head.bytes.size()), nullptr};
  OpenOptions options;
  options.max_model_bytes = 1 << 20;
  return kTfliteFormat.read(source, options);
}

void CheckGraphDef(const Graph& graph, absl::string_view bytes) {
  StringSink written;
  if (!WriteGraphDef(graph, &written).ok()) Fail("an accepted graph cannot be written", bytes);
  const absl::StatusOr<std::unique_ptr<Graph>> again = ReadGraphDef(written.text(), nullptr);
  if (!again.ok()) Fail(again.status().message(), bytes);
  if ((*again)->num_nodes() != graph.num_nodes()) Fail("nodes are lost", bytes);
}

void CheckFacts(const Graph& graph, absl::string_view bytes) {
  const std::shared_ptr<const TfliteSource> source = TfliteSourceOf(graph);
  if (source == nullptr) return;
  const auto facts = ReadTfliteFacts(*source);
  CheckError(facts.status(), bytes);
  CheckError(ReadLabels(*source, 1 << 16).status(), bytes);
  if (!facts.ok()) return;
  for (const TfliteSignature& signature : facts->signatures) {
    CheckError(OpenSignature(*source, signature.key).status(), bytes);
  }
}

// Writes the model with a new name for every node, so that nothing is copied as a whole.
void CheckRoundTrip(const Graph& graph, absl::string_view bytes) {
  const std::unique_ptr<Graph> copy = graph.Clone();
  for (Node* node : copy->Nodes()) {
    if (copy->IsEndpoint(node)) continue;
    if (!copy->Rename(node, copy->UniqueName("n")).ok()) Fail("a node cannot be renamed", bytes);
  }
  const auto kept = KeepOperators(copy.get());
  CheckError(kept.status(), bytes);
  if (!kept.ok()) return;
  StringSink written;
  const absl::Status status = ExportTflite(*copy, TfliteLimits(), &written);
  CheckError(status, bytes);
  if (!status.ok()) return;
  const absl::StatusOr<std::unique_ptr<Graph>> again = ReadTflite(written.text());
  if (!again.ok()) Fail(absl::StrCat("the written model: ", again.status().message()), bytes);
}

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadTflite(bytes);
  CheckError(graph.status(), bytes);
  if (!graph.ok()) return 0;
  CheckGraphDef(**graph, bytes);
  CheckFacts(**graph, bytes);
  CheckRoundTrip(**graph, bytes);
  return 0;
}

// Declared by libFuzzer.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  const absl::string_view model(reinterpret_cast<const char*>(data), size);
  std::string mutated = permafrost::MutateTflite(model, model, seed);
  if (mutated.empty() || mutated.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, mutated.data(), mutated.size());
  return mutated.size();
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2, size_t size2,
                                            uint8_t* out, size_t max_size, unsigned int seed) {
  const absl::string_view a(reinterpret_cast<const char*>(data1), size1),
      b(reinterpret_cast<const char*>(data2), size2);
  std::string mutated = permafrost::MutateTflite(a, b, seed);
  if (mutated.empty() || mutated.size() > max_size) return 0;
  std::memcpy(out, mutated.data(), mutated.size());
  return mutated.size();
}
