// The strip_unused command.
#include "tools/strip_unused.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::StripUnusedTool(), argc, argv); }
