// Functions that are to join a library: like others of it, but with other types.
#ifndef PERMAFROST_TRANSFORMS_FREEZE_FUNCTION_TWINS_H_
#define PERMAFROST_TRANSFORMS_FREEZE_FUNCTION_TWINS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/functions/function.h"
#include "graph/graph.h"

namespace permafrost {

class FunctionTwins {
 public:
  // `library` must outlive this.
  explicit FunctionTwins(const FunctionLibrary& library) : library_(library) {}

  // Takes in a function with this body; returns its name, `<original>_frozen` or one like it that is free. The
  // arguments have the names and types of the body's nodes; attributes, control outputs and, if there are as many, the
  // names of outputs are those of the original, which the library has. Attributes that speak of its arguments go.
  absl::StatusOr<std::string> Add(absl::string_view original, std::unique_ptr<Graph> body);

  // Adds them to the library of `graph`, which is the one that this was made with. Errors as FunctionLibrary::SetBody.
  absl::Status Store(Graph* graph) const;

 private:
  struct Twin {
    std::string name;
    std::string definition;  // Without nodes.
    std::unique_ptr<Graph> body;
  };

  const FunctionLibrary& library_;
  std::vector<Twin> twins_;
  absl::flat_hash_set<std::string> names_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_FUNCTION_TWINS_H_
