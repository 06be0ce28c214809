// Runs a tool in the process, like its own executable.
#include "python/native/tools.h"

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "io/file_system.h"
#include "python/native/errors.h"
#include "python/native/interruptible.h"
#include "python/native/text.h"
#include "tools/all_tools.h"
#include "tools/command_line/cli.h"
#include "tools/optimize_for_inference.h"
#include "tools/strip_unused.h"

namespace py = pybind11;

namespace permafrost::python {
namespace {

// Runs a command. `arguments` begin with the name of the tool, or "permafrost" for the tool with subcommands. Returns
// the exit status. Uses the streams of the process, not those of Python.
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

// Captured output of a tool.
struct Talk {
  std::ostringstream out, err;
};

// Runs a tool for a caller that is not a shell: throws its error, and returns its output as two texts.
py::tuple RunTool(const Text& name, std::vector<Text> arguments) {
  const std::vector<std::string> texts = Bytes(std::move(arguments));
  for (const Tool& tool : AllTools()) {
    if (tool.name != name.bytes) continue;
    const auto talk = std::make_shared<Talk>();
    ThrowIfError(RunInterruptibly([tool, texts, talk](const StopFlag&) {
      Console console{talk->out, talk->err};
      return tool.run(texts, RealFileSystem(), console);
    }));
    return py::make_tuple(ToPython(talk->out.str()), ToPython(talk->err.str()));
  }
  Throw(absl::NotFoundError("there is no tool '" + name.bytes + "'"));
}

}  // namespace

void BindTools(py::module_& m) {
  m.def("run_command", &RunCommand);
  m.def("run_tool", &RunTool);
  m.def("strip_call",
        [](const Text& inputs, const Text& types) { return ValueOrThrow(StripCall(inputs.bytes, types.bytes)); });
  m.def("optimize_for_inference_calls", [](const Text& inputs, const Text& types, bool toco_compatible) {
    return ValueOrThrow(OptimizeForInferenceCalls(inputs.bytes, types.bytes, toco_compatible));
  });
}

}  // namespace permafrost::python
