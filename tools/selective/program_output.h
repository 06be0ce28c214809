// Makes program files, and proves that they compute what their graphs compute.
#ifndef PERMAFROST_TOOLS_SELECTIVE_PROGRAM_OUTPUT_H_
#define PERMAFROST_TOOLS_SELECTIVE_PROGRAM_OUTPUT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

// The name of the format for --to, and the extension of its files.
inline constexpr absl::string_view kProgramFormat = "program";
inline constexpr absl::string_view kProgramExtension = ".program";

// Returns the bytes of a program file for the declared interface of `graph`, after it was read back and run: its
// outputs for seeded inputs must equal those of a session bit by bit. Errors are those of MakeProgramFile and of the
// runs; Aborted for outputs that differ.
absl::StatusOr<std::string> EncodeProgram(const Graph& graph, uint64_t seed);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SELECTIVE_PROGRAM_OUTPUT_H_
