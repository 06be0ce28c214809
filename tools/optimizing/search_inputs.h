// Inputs of a search: read from files, or random; split into a half that the search sees and a half that is held back.
#ifndef PERMAFROST_TOOLS_OPTIMIZING_SEARCH_INPUTS_H_
#define PERMAFROST_TOOLS_OPTIMIZING_SEARCH_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "io/file_system.h"
#include "tools/model/model_inputs.h"
#include "tools/validation/image_flags.h"

namespace permafrost {

// Tensors for one run, with the classes of their rows; no classes without labels.
struct LabelledSet {
  InputSet feeds;
  std::vector<int64_t> classes;
  bool is_random = false;
};

struct SearchInputs {
  // The inputs of the search end with random ones, which are judged apart: weights that matter little for the few
  // inputs given may matter for others. `seeded` are other random ones, with which the result is checked.
  std::vector<LabelledSet> search, held_back, seeded;
  size_t num_given_search = 0;  // Number of inputs of the search that were given.
  bool are_random = false;      // No inputs were given: all groups are random.
  bool has_labels = false;
  // Limits of what the inputs can show, one line each.
  std::vector<std::string> notes;
  std::string fingerprint;  // Of all tensors and labels, 16 hexadecimal digits.
};

struct SearchInputsRequest {
  std::vector<std::string> inputs;  // Each a comma separated list of "[INPUT=]PATH": NPY files, or folders.
  std::string labels;               // An NPY file, or for pictures a list (LabelPlaces::list).
  int32_t label_offset = 0;
  int32_t most_sets = 200;  // If there are more, this many are taken, evenly spaced.
  uint64_t seed = 1;        // Shuffles before the split, and seeds the random inputs.
  ImageFlags image;
};

// Reads the inputs. Each set has as many rows as the model fixes, or one. A folder with a subfolder of pictures for
// each class has labels. Errors are those of ReadInputSets, ReadNpyLabels, FindLabelledImages and SeededInputSets;
// InvalidArgument for NaN or infinity in an input, for labels that do not match the rows and for labels that are no
// classes. The outputs of the graph must be declared.
absl::StatusOr<SearchInputs> ReadSearchInputs(FileSystem& files, const SearchInputsRequest& request,
                                              const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZING_SEARCH_INPUTS_H_
