// The main function of a tool's own program. PERMAFROST_TOOL is the function that defines the tool (tools.bzl).
#include "tools/command_line/cli.h"

namespace permafrost {

Tool PERMAFROST_TOOL();

}  // namespace permafrost

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::PERMAFROST_TOOL(), argc, argv); }
