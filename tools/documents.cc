// Writes the manual pages and completions of all tools into a folder, for distribution packages.
#include "tools/command_line/documents.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "io/file_system.h"
#include "tools/all_tools.h"
#include "tools/command_line/cli.h"

namespace permafrost {
namespace {

struct DocumentsOptions {
  std::string folder;
};

void DefineFlags(DocumentsOptions* options, FlagTable* flags) {
  flags->AddPositional("FOLDER", &options->folder, "Existing folder to write to.", /*is_written=*/true);
}

absl::Status Write(const DocumentsOptions& options, FileSystem& files, Console&) {
  const std::vector<Tool> tools = AllTools();
  std::vector<std::pair<std::string, std::string>> documents = {{"permafrost.1", ManualPage(tools)},
                                                                {"permafrost.bash", BashCompletion(tools)},
                                                                {"_permafrost", ZshCompletion(tools)},
                                                                {"permafrost.fish", FishCompletion(tools)}};
  for (const Tool& tool : tools) documents.emplace_back(tool.name + ".1", ManualPage(tool));
  for (const auto& [name, text] : documents) {
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, files.NewWriter(options.folder + "/" + name));
    PF_RETURN_IF_ERROR(writer->Append(text));
    PF_RETURN_IF_ERROR(writer->Commit());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  return permafrost::ToolMain(
      permafrost::DefineTool<permafrost::DocumentsOptions>(
          "documents", "writes the manual pages and completions of all tools", {{"Into a folder.", "build/documents"}},
          &permafrost::DefineFlags, &permafrost::Write),
      argc, argv);
}
