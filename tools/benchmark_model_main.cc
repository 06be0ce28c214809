// The benchmark_model command.
#include "tools/benchmark/benchmark_model.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::BenchmarkModelTool(), argc, argv); }
