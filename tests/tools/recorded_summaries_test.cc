// Compares summarize_graph with the recorded output of TensorFlow's tool for the models beside the workspace, byte for
// byte.
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_replace.h"
#include "tests/shared_models.h"
#include "tools/summarize_graph.h"

namespace permafrost {
namespace {

TEST(RecordedSummaries, AreOursLineByLine) {
  const std::vector<SharedModel> models = SharedModels();
  if (models.empty()) GTEST_SKIP() << "no models beside the workspace";
  for (const SharedModel& model : models) {
    SCOPED_TRACE(model.name);
    const auto recorded =
        RealFileSystem().ReadFile(SharedFolder() + "/oracle/recorded/" + model.name + ".summarize_graph.txt");
    ASSERT_TRUE(recorded.ok()) << recorded.status();
    SummarizeGraphOptions options;
    options.in_graph = model.path;
    std::ostringstream out, err;
    Console console{out, err};
    ASSERT_TRUE(SummarizeGraph(options, RealFileSystem(), console).ok());
    // The only difference: TensorFlow's tool does not end the line about devices.
    std::string expected = absl::StrReplaceAll(*recorded, {{"'Op types used:", "'\nOp types used:"}});
    expected = absl::StrReplaceAll(expected, {{"--graph=" + model.name + "/model.pb", "--graph=" + model.path}});
    EXPECT_EQ(out.str().substr(0, expected.size()), expected);
  }
}

}  // namespace
}  // namespace permafrost
