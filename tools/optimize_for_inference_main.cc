// The optimize_for_inference command.
#include "tools/optimize_for_inference.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::OptimizeForInferenceTool(), argc, argv); }
