// Leads a tensor through V1 control flow, so that a node that reads it is prepared during the run.
#ifndef PERMAFROST_TESTS_KERNELS_THROUGH_MERGE_H_
#define PERMAFROST_TESTS_KERNELS_THROUGH_MERGE_H_

#include "absl/strings/str_cat.h"
#include "graph/graph.h"

namespace permafrost {

// Adds a Switch of `source` by `choice`, a scalar of type bool, whose branches a Merge joins. Returns the output of the
// Merge. `i` makes the names of the nodes unique.
inline TensorRef ThroughMerge(Graph* graph, size_t i, TensorRef source, TensorRef choice, DType dtype) {
  Node* branches = *graph->AddNode(absl::StrCat("switch", i), ops::kSwitch);
  branches->SetAttr("T", AttrValue::Type(dtype));
  graph->AddInput(branches, source);
  graph->AddInput(branches, choice);
  Node* merge = *graph->AddNode(absl::StrCat("merge", i), ops::kMerge);
  merge->SetAttr("T", AttrValue::Type(dtype));
  merge->SetAttr("N", AttrValue::Int(2));
  graph->AddInput(merge, {branches, 0});
  graph->AddInput(merge, {branches, 1});
  return {merge, 0};
}

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_KERNELS_THROUGH_MERGE_H_
