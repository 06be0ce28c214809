// The convert_model command.
#include "tools/convert_model.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::ConvertModelTool(), argc, argv); }
