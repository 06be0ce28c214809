// Finds the folder of large models beside the workspace, for the tests that use it when it is there.
#ifndef PERMAFROST_TESTS_SHARED_MODELS_H_
#define PERMAFROST_TESTS_SHARED_MODELS_H_

#include <string>
#include <vector>

namespace permafrost {

// The folder `shared` that has a folder `models`: $PERMAFROST_SHARED, or the one beside the workspace, or beside any
// folder that the workspace is in. Empty when there is none: then the test skips itself.
// A test that calls this lists //tests/models/digits in its data: the real place of that file leads to the workspace.
std::string SharedFolder();

struct SharedModel {
  std::string name;    // "inception_v3"
  std::string folder;  // Where model.pb and spec.json are.
  std::string path;    // Of model.pb.
};

// Every model of the folder, by name; empty when there is no folder.
std::vector<SharedModel> SharedModels();

// The path of a file that the test lists in its data, given from the top folder of the workspace.
std::string DataFile(const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_SHARED_MODELS_H_
