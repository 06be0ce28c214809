// Implements the search for test checkpoints and their recorded values.
#include "tests/formats/checkpoint/checkpoint_fixture.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/graphdef.h"
#include "tests/shared_models.h"

namespace permafrost {
std::string WrittenFile(absl::string_view name) {
  return DataFile(absl::StrCat("tests/formats/checkpoint/written/", name));
}

std::map<std::string, Tensor> RecordedVariables(absl::string_view name) {
  std::map<std::string, Tensor> variables;
  const absl::StatusOr<FileView> file = RealFileSystem().MapFile(WrittenFile(absl::StrCat(name, ".expected.pb")));
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return variables;
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(file->bytes, file->owner);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return variables;
  for (const Node* node = (*graph)->first(); node != nullptr; node = node->next()) {
    const absl::StatusOr<std::string> variable = StringAttr(*node, "_name");
    const absl::StatusOr<Tensor> value = ConstValue(*node);
    EXPECT_TRUE(variable.ok() && value.ok()) << node->name();
    if (variable.ok() && value.ok()) variables[*variable] = *value;
  }
  return variables;
}

std::string NewFolder() {
  std::string pattern = absl::StrCat(::testing::TempDir(), "/checkpoint_XXXXXX");
  EXPECT_NE(mkdtemp(&pattern[0]), nullptr);
  return pattern;
}

void WriteFileForTest(const std::string& path, absl::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.good()) << path;
}

}  // namespace permafrost
