// Facts about a TensorFlow Lite model beside its operators: descriptions, normalisation, labels, signatures.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_METADATA_H_
#define PERMAFROST_IO_FORMATS_TFLITE_METADATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "io/formats/tflite/provenance.h"

namespace permafrost {

// A file that the metadata names; its content is in the archive at the end of the model.
struct TfliteFile {
  std::string name, description;
  std::string type;  // "TENSOR_AXIS_LABELS"
};

struct TfliteTensorFacts {
  std::string name, description;
  std::vector<float> mean, std;  // The input is (value - mean) / std. One number, or one for each channel.
  std::vector<float> min, max;   // Of valid values.
  std::vector<TfliteFile> files;
};

struct TfliteSignature {
  std::string key;
  int subgraph = 0;
  std::vector<std::pair<std::string, std::string>> inputs, outputs;  // Argument names, and names of nodes.
};

struct TfliteFacts {
  std::string description;          // Of the file: the name of the converter, usually.
  std::string min_runtime_version;  // Empty if the file does not say.
  std::string name, purpose, version, author, license;
  std::vector<TfliteTensorFacts> inputs, outputs;
  std::vector<TfliteFile> files;                          // Of the whole model.
  std::vector<std::pair<std::string, uint64_t>> archive;  // Names and sizes of the files at the end.
  std::vector<TfliteSignature> signatures;
  std::vector<std::string> problems;  // Damaged parts, which were skipped.
};

// Returns the facts about the file. Damaged metadata are problems of the result, not errors.
absl::StatusOr<TfliteFacts> ReadTfliteFacts(const TfliteSource& source);

// Returns the content of the file with labels: the one that metadata call so, or else the only one in the archive.
// Returns NotFound if there is none, InvalidArgument if several could be meant; errors of the archive.
absl::StatusOr<std::string> ReadLabels(const TfliteSource& source, uint64_t max_bytes);

// Returns the graph of the subgraph of a signature. Returns InvalidArgument, with the known keys, for another key.
absl::StatusOr<std::unique_ptr<Graph>> OpenSignature(const TfliteSource& source, absl::string_view key);

// Returns the names of the graph's inputs and outputs for each argument of its signatures: pairs of argument and node.
// Empty if the graph was not read from a model with signatures.
std::vector<std::pair<std::string, std::string>> SignatureNames(const Graph& graph);

// Metadata to be written.
struct NewTfliteMetadata {
  std::string labels_name, labels;  // Name without folders, and content; empty: none.
  std::vector<float> mean, std;     // Of input 0.
};

// Returns the model with these metadata in place of its own, and an archive of the labels at its end. Everything else
// is copied. Errors of reading the model.
absl::StatusOr<std::string> WithMetadata(absl::string_view model, const NewTfliteMetadata& metadata);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_METADATA_H_
