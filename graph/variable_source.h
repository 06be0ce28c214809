// Where the values of variables come from, to those who know no file format: interface only (io/ implements it).
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
  std::string name;  // As it was saved.
  DType dtype = DType::kInvalid;
  Shape shape;  // Fully known. Of the whole variable where it was saved in slices.
};

// Thread-safe.
class VariableSource {
 public:
  virtual ~VariableSource() = default;

  // All of them, sorted by name. Lives as long as the source.
  virtual absl::Span<const VariableInfo> variables() const = 0;

  // The value, a view of the source's memory where that is possible; it keeps that memory alive itself. NotFound, with
  // the nearest names, for a name that is not there; DataLoss when what was saved is damaged.
  virtual absl::StatusOr<Tensor> Read(absl::string_view name) const = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_VARIABLE_SOURCE_H_
