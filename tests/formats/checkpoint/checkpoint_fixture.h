// Finds the checkpoints that TensorFlow wrote for tests, and what was put into them.
#ifndef PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_FIXTURE_H_
#define PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_FIXTURE_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "graph/tensor.h"

namespace permafrost {

// The path of what make_checkpoints.py wrote.
std::string WrittenFile(absl::string_view name);

// The variables that TensorFlow put into the checkpoint `name`, by name.
std::map<std::string, Tensor> RecordedVariables(absl::string_view name);

// A new empty folder for the running test.
std::string NewFolder();
void WriteFileForTest(const std::string& path, absl::string_view bytes);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FORMATS_CHECKPOINT_CHECKPOINT_FIXTURE_H_
