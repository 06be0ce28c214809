// The transform_graph command.
#include "tools/transform_graph.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::TransformGraphTool(), argc, argv); }
