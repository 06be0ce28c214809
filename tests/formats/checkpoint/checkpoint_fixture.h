// Finds the checkpoints that TensorFlow wrote for tests, and the values recorded from them.
#ifndef PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_FIXTURE_H_
#define PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_FIXTURE_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "graph/tensor.h"

namespace permafrost {

// Returns the path of a file that make_checkpoints.py wrote.
std::string WrittenFile(absl::string_view name);

// Returns the variables that TensorFlow stored in the checkpoint `name`, by name.
std::map<std::string, Tensor> RecordedVariables(absl::string_view name);

// Returns a new empty folder for the running test.
std::string NewFolder();
void WriteFileForTest(const std::string& path, absl::string_view bytes);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_FIXTURE_H_
