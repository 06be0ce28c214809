// Copies of library functions with other argument types, to be added to the library.
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

  // Adds a function with this body and returns its name: `<original>_frozen`, or a similar name that is free. Its
  // arguments have the names and types of the body's nodes. Attributes, control outputs and, if their number is equal,
  // the names of outputs are those of the original, which must be in the library. Attributes about its arguments are
  // dropped.
  absl::StatusOr<std::string> Add(absl::string_view original, std::unique_ptr<Graph> body);

  // Adds the functions to the library of `graph`, which must be the library given to the constructor. Returns the
  // errors of FunctionLibrary::SetBody.
  absl::Status Store(Graph* graph) const;

 private:
  struct Twin {
    std::string name;
    std::string definition;  // Excludes nodes.
    std::unique_ptr<Graph> body;
  };

  const FunctionLibrary& library_;
  std::vector<Twin> twins_;
  absl::flat_hash_set<std::string> names_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_FUNCTION_TWINS_H_
