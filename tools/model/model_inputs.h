// Inputs for running a model: arrays from NPY files, or seeded random numbers.
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

// One tensor per declared input, in the order of the inputs.
using InputSet = std::vector<Tensor>;

// Reads the array in an NPY file. Errors name the file.
absl::StatusOr<Tensor> ReadNpyFile(FileSystem& files, const std::string& path);

// Reads the inputs of `model` given by a flag such as --verify_inputs: pieces "file.npy" or "name=file.npy". A name is
// that of a declared input, or an argument of the signature of the TensorFlow Lite model that the graph was read from.
// A
// "*" or "?" in the last part of a path selects all matching files, sorted by name. With one input, every file is a
// separate set. With several inputs, the files of each input are named, and the n-th files of all inputs form a set.
// Checks tensors against the type and shape of the input: InvalidArgument with found and expected. With `any_batch`,
// dimension 0 may have any size.
absl::StatusOr<std::vector<InputSet>> ReadInputSets(FileSystem& files, absl::Span<const std::string> pieces,
                                                    const Graph& model, bool any_batch = false);

// Splits every set along dimension 0 into pieces of `batch` rows, the last of which may be smaller. Scalars have no
// rows and are copied to each piece. InvalidArgument if the tensors of a set have different numbers of rows, or none at
// all.
absl::StatusOr<std::vector<InputSet>> SplitBatches(const std::vector<InputSet>& sets, int64_t batch);

// Returns the number of rows of a set: that of its first tensor with rows, or 1 if all are scalars.
int64_t RowsOf(const InputSet& set);

// Returns the number of rows fixed by the declared shapes of the inputs, or 0.
int64_t FixedBatch(absl::Span<const Endpoint> inputs);

// Returns the only input of a model. InvalidArgument, naming the feature that needs it and the inputs, if there are
// several.
absl::StatusOr<const Endpoint*> OnlyInput(absl::Span<const Endpoint> inputs, absl::string_view who);

// Returns `count` sets of random numbers for `inputs` of `graph`, the same for the same seed. Unknown dimensions take
// sizes that the graph runs with, if possible another one in the second set: see ChooseInputShapes(). The outputs of
// the graph must be declared. Errors are those of ChooseInputShapes and SeededInputs.
absl::StatusOr<std::vector<InputSet>> SeededInputSets(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                      uint64_t seed, int count);

// Returns whether `name` matches `pattern`, where "*" stands for any text and "?" for any character.
bool MatchesPattern(absl::string_view name, absl::string_view pattern);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_MODEL_INPUTS_H_
