// Writes program files: plans a graph for its input shapes, and stores the result.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_WRITER_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_WRITER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace permafrost {

// Returns the bytes of a program file that computes the fetches from the feeds ("x" or "x:1"). Quantised operators are
// fused to integer kernels, and everything that depends on constants and shapes alone is computed. An unknown first
// dimension of a feed becomes 1. The same graph gives the same bytes.
//
// Errors are those of BuildProgram, and Unimplemented, with the node, for what a program file cannot express: V1
// control flow, functions, variables, tables, strings, and shapes that are known only during the run; InvalidArgument
// for an input of unknown shape or type.
absl::StatusOr<std::string> MakeProgramFile(const Graph& graph, absl::Span<const std::string> feeds,
                                            absl::Span<const std::string> fetches);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_WRITER_H_
