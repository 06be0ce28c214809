// The main function of a tool's own program. PERMAFROST_TOOL is the function that defines the tool (tools.bzl).
#include "tools/command_line/cli.h"
#include "tools/command_line/main_guard.h"

namespace permafrost {

Tool PERMAFROST_TOOL();

}  // namespace permafrost

namespace {

int Run(int argc, char** argv) { return permafrost::ToolMain(permafrost::PERMAFROST_TOOL(), argc, argv); }

}  // namespace

int main(int argc, char** argv) { return permafrost::GuardMain(&Run, argc, argv); }
