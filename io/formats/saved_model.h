// SavedModel folders and MetaGraph files: graphs with variables and signatures. Needs protobuf only for their text
// forms. docs/formats/saved_model.md
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
    kComposite,  // Several tensors, for example a RaggedTensor.
  };

  std::string key;   // The name used by callers.
  std::string name;  // Name in the graph: "serving_default_x:0". Empty unless dense.
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
  std::string restore_op;             // The node that restores variables; empty if not specified.
  std::string table_initializer;      // The node that fills the tables; empty if there is none.
  // Names of files in folder `assets`, and of the tensors that stand for their paths.
  struct Asset {
    std::string file, tensor;
  };
  std::vector<Asset> assets;
  std::unique_ptr<Graph> graph;  // Views the file; has no declared interface.
};

// True for a folder that contains saved_model.pb or saved_model.pbtxt.
bool IsSavedModel(FileSystem& files, const std::string& folder);

// Opens the meta graph with exactly these tags, in any order, or the only one if `tags` is empty. Returns NotFound if
// the folder or its file does not exist. Returns InvalidArgument if no meta graph has the tags (with a list of all
// tags), for a version other than 1, and, with the place, for a malformed file. Errors name the file.
absl::StatusOr<MetaGraph> OpenSavedModel(FileSystem& files, const std::string& folder,
                                         absl::Span<const std::string> tags);

// Opens a MetaGraph file (model.ckpt.meta), binary or text as detected from the content. Same errors.
absl::StatusOr<MetaGraph> OpenMetaGraph(FileSystem& files, const std::string& path);

// Same, for bytes in memory, which the graph views and `owner` (may be null) keeps alive. Errors do not name a file.
absl::StatusOr<MetaGraph> ReadSavedModel(FileView file, bool is_text, absl::Span<const std::string> tags);
absl::StatusOr<MetaGraph> ReadMetaGraph(FileView file, bool is_text);

// Returns the name of the node that restores the variables, from a file with a binary or text SaverDef.
absl::StatusOr<std::string> OpenSaver(FileSystem& files, const std::string& path);

// Returns the prefix of a SavedModel's checkpoint: "<folder>/variables/variables".
std::string VariablesPrefix(const std::string& folder);

// Returns the signature of that name. If `name` is empty, returns "serving_default", or the only signature that can be
// called. Returns InvalidArgument, with all names, if there is no such signature or several to choose from.
absl::StatusOr<const Signature*> FindSignature(const MetaGraph& meta_graph, absl::string_view name);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_SAVED_MODEL_H_
