// The convert_graphdef_memmapped_format command.
#include "tools/convert_graphdef_memmapped_format.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::ConvertMemmappedTool(), argc, argv); }
