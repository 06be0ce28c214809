// The summarize_graph command.
#include "tools/summarize_graph.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::SummarizeGraphTool(), argc, argv); }
