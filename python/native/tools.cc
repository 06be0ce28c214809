// Runs a tool as its own executable would.
#include "python/native/tools.h"

#include <string>
#include <vector>

#include "python/native/text.h"
#include "tools/all_tools.h"
#include "tools/command_line/cli.h"

namespace py = pybind11;

namespace permafrost::python {
namespace {

// `arguments` begin with the name of the tool, "permafrost" for the one that has the others as subcommands. Returns the
// exit status. Uses the streams of the process, not those of Python.
int RunCommand(std::vector<Text> arguments) {
  std::vector<std::string> texts = Bytes(std::move(arguments));
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  const py::gil_scoped_release release;
  const std::vector<Tool> tools = AllTools();
  for (const Tool& tool : tools) {
    if (texts[0] == tool.name) return ToolMain(tool, static_cast<int>(pointers.size()), pointers.data());
  }
  return SubcommandMain(tools, static_cast<int>(pointers.size()), pointers.data());
}

}  // namespace

void BindTools(py::module_& m) { m.def("run_command", &RunCommand); }

}  // namespace permafrost::python
