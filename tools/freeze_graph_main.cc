// The freeze_graph command.
#include "tools/freeze_graph.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::FreezeGraphTool(), argc, argv); }
