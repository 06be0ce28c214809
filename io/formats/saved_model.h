// SavedModel folders and MetaGraph files: graphs with variables, and what is known of how to call them. Needs protobuf
// for their text forms only. docs/formats/saved_model.md
#ifndef PERMAFROST_IO_FORMATS_SAVED_MODEL_H_
#define PERMAFROST_IO_FORMATS_SAVED_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/dtype.h"
#include "graph/graph.h"
#include "graph/shape.h"
#include "io/file_system.h"

namespace permafrost {

// An input or output of a signature.
struct SignatureTensor {
  enum class Encoding {
    kDense,
    kSparse,     // Three tensors: values, indices, shape.
    kComposite,  // Several tensors: a RaggedTensor, say.
  };

  std::string key;   // What callers know it by.
  std::string name;  // In the graph: "serving_default_x:0". Empty unless dense.
  Encoding encoding = Encoding::kDense;
  DType dtype = DType::kInvalid;
  Shape shape = Shape::UnknownRank();
};

struct Signature {
  std::string name;
  std::string method;
  std::vector<SignatureTensor> inputs, outputs;  // Each sorted by key.
};

struct MetaGraph {
  std::vector<std::string> tags;
  std::string tensorflow_version;
  std::vector<Signature> signatures;  // Sorted by name.
  std::string restore_op;             // The node that restores variables; empty when nothing says.
  std::vector<std::string> assets;    // Names of files in the folder `assets`.
  std::unique_ptr<Graph> graph;       // Views the file; without a declared interface.
};

// True for a folder with a saved_model.pb or saved_model.pbtxt.
bool IsSavedModel(FileSystem& files, const std::string& folder);

// The meta graph of a SavedModel that has exactly these tags, in any order; without tags, the only one. NotFound: no
// such folder or file in it. InvalidArgument: no meta graph has the tags (all tags are listed), a version other than 1,
// or, with the place, a malformed file. Errors name the file.
absl::StatusOr<MetaGraph> OpenSavedModel(FileSystem& files, const std::string& folder,
                                         absl::Span<const std::string> tags);

// A MetaGraph file (model.ckpt.meta), binary or text: the content tells. Same errors.
absl::StatusOr<MetaGraph> OpenMetaGraph(FileSystem& files, const std::string& path);

// The same for bytes at hand, which the graph views while `owner` (may be null) lives. Errors do not name a file.
absl::StatusOr<MetaGraph> ReadSavedModel(FileView file, bool is_text, absl::Span<const std::string> tags);
absl::StatusOr<MetaGraph> ReadMetaGraph(FileView file, bool is_text);

// The node that restores the variables, as a file with a SaverDef names it, binary or text.
absl::StatusOr<std::string> OpenSaver(FileSystem& files, const std::string& path);

// Where a SavedModel has its checkpoint: "<folder>/variables/variables".
std::string VariablesPrefix(const std::string& folder);

// The signature of that name; with an empty name "serving_default", or else the only one that is meant to be called.
// InvalidArgument, with all names, where that does not say which.
absl::StatusOr<const Signature*> FindSignature(const MetaGraph& meta_graph, absl::string_view name);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_SAVED_MODEL_H_
