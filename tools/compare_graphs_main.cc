// The compare_graphs command.
#include "tools/compare_graphs.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::CompareGraphsTool(), argc, argv); }
