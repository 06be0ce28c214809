// The validate_model command.
#include "tools/validate_model.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::ValidateModelTool(), argc, argv); }
