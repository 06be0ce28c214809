// Finds the folder of large models beside the workspace, for tests that use it if it exists.
#ifndef PERMAFROST_TESTS_SHARED_MODELS_H_
#define PERMAFROST_TESTS_SHARED_MODELS_H_

#include <string>
#include <vector>

namespace permafrost {

// Returns the folder `shared` that contains a folder `models`: $PERMAFROST_SHARED, or the one beside the workspace or
// beside one of its parent folders. Returns an empty string if there is none; the test is then skipped. A test that
// calls this lists //tests/models/digits in its data, because the real path of that file leads to the workspace.
std::string SharedFolder();

struct SharedModel {
  std::string name;    // "inception_v3"
  std::string folder;  // Folder of model.pb and spec.json.
  std::string path;    // Path of model.pb.
};

// Returns every model of the folder, by name; empty if there is no folder.
std::vector<SharedModel> SharedModels();

// Returns the path of a file in the test's data, given relative to the top folder of the workspace.
std::string DataFile(const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_SHARED_MODELS_H_
