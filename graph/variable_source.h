// Interface for reading the values of variables without knowing the file format. Implemented in io/.
#ifndef PERMAFROST_GRAPH_VARIABLE_SOURCE_H_
#define PERMAFROST_GRAPH_VARIABLE_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace permafrost {

struct VariableInfo {
  std::string name;  // As saved.
  DType dtype = DType::kInvalid;
  Shape shape;  // Fully known; the shape of the whole variable if it was saved in slices.
};

// A source of variable values. Thread-safe.
class VariableSource {
 public:
  virtual ~VariableSource() = default;

  // Returns all variables, sorted by name. Valid as long as the source exists.
  virtual absl::Span<const VariableInfo> variables() const = 0;

  // Returns the value, as a view of the source's memory if possible; the tensor keeps that memory alive. Returns
  // NotFound, with the nearest names, for an unknown name, and DataLoss if the saved data are damaged.
  virtual absl::StatusOr<Tensor> Read(absl::string_view name) const = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_VARIABLE_SOURCE_H_
