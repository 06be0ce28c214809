// What a tool feeds a model: arrays from NPY files, or seeded random numbers.
#ifndef PERMAFROST_TOOLS_MODEL_MODEL_INPUTS_H_
#define PERMAFROST_TOOLS_MODEL_MODEL_INPUTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "io/file_system.h"

namespace permafrost {

// One tensor for each declared input, in its order.
using InputSet = std::vector<Tensor>;

// The array in an NPY file. Errors name the file.
absl::StatusOr<Tensor> ReadNpyFile(FileSystem& files, const std::string& path);

// Reads what a flag such as --verify_inputs says: pieces "file.npy" or "name=file.npy", where a "*" or "?" in the last
// part of a path stands for the files that match, sorted by name. With one input, every file is a set of its own; with
// several, the files of each input are named, and the n-th files of all inputs form a set. Tensors are checked against
// the type and shape of the input: InvalidArgument with found and expected. With `any_batch` dimension 0 may be any.
absl::StatusOr<std::vector<InputSet>> ReadInputSets(FileSystem& files, absl::Span<const std::string> pieces,
                                                    absl::Span<const Endpoint> inputs, bool any_batch = false);

// Cuts every set along dimension 0 into pieces of `batch` rows, the last of which may be smaller. Scalars have no rows:
// each piece has them as they are. InvalidArgument when the tensors of a set have different numbers of rows, or none at
// all.
absl::StatusOr<std::vector<InputSet>> SplitBatches(const std::vector<InputSet>& sets, int64_t batch);

// Rows of a set: those of its first tensor that has any, 1 where all are scalars.
int64_t RowsOf(const InputSet& set);

// The number of rows that the declared shapes of the inputs fix, or 0.
int64_t FixedBatch(absl::Span<const Endpoint> inputs);

// The input of a model that has one. InvalidArgument, which says what needs it, with the names of several.
absl::StatusOr<const Endpoint*> OnlyInput(absl::Span<const Endpoint> inputs, absl::string_view who);

// Returns `count` sets of random numbers for `inputs` of `graph`, the same ones for the same seed. Dimensions that are
// not known take sizes that the graph runs with, where possible another one in the second set: ChooseInputShapes(). The
// outputs of the graph must be declared. Errors as of ChooseInputShapes and SeededInputs.
absl::StatusOr<std::vector<InputSet>> SeededInputSets(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                      uint64_t seed, int count);

// Whether `name` matches `pattern`, in which "*" stands for any text and "?" for any character.
bool MatchesPattern(absl::string_view name, absl::string_view pattern);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_MODEL_INPUTS_H_
