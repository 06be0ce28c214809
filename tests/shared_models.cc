// Finds the models, first by the environment variable, then in the parent folders of the workspace.
#include "tests/shared_models.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace permafrost {
namespace {

namespace fs = std::filesystem;

bool HasModels(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder / "models", error);
}

// Returns the folder `shared` beside `place` or beside one of its parent folders.
std::string FindUpwards(fs::path place) {
  for (; place.has_relative_path(); place = place.parent_path()) {
    const fs::path candidate = place.parent_path() / "shared";
    if (HasModels(candidate)) return candidate.string();
  }
  return "";
}

}  // namespace

std::string DataFile(const std::string& path) {
  const char* root = std::getenv("TEST_SRCDIR");
  const char* workspace = std::getenv("TEST_WORKSPACE");
  if (root == nullptr || workspace == nullptr) return path;  // Run manually, from the top folder.
  return (fs::path(root) / workspace / path).string();
}

std::string SharedFolder() {
  if (const char* given = std::getenv("PERMAFROST_SHARED"); given != nullptr) return HasModels(given) ? given : "";
  std::error_code error;
  // A runfile is a link, possibly through a sandbox, to the file in the workspace.
  const fs::path real = fs::canonical(DataFile("tests/models/digits/digits.pb"), error);
  return error ? "" : FindUpwards(real.parent_path());
}

std::vector<SharedModel> SharedModels() {
  std::vector<SharedModel> models;
  const std::string shared = SharedFolder();
  if (shared.empty()) return models;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(shared) / "models", error)) {
    const fs::path model = entry.path() / "model.pb";
    if (fs::exists(model, error)) models.push_back({entry.path().filename(), entry.path(), model});
  }
  std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return models;
}

}  // namespace permafrost
