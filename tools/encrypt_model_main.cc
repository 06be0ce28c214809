// The encrypt_model command.
#include "tools/encrypt_model.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::EncryptModelTool(), argc, argv); }
