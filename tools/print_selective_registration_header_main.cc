// The print_selective_registration_header command.
#include "tools/print_selective_registration_header.h"

int main(int argc, char** argv) {
  return permafrost::ToolMain(permafrost::PrintSelectiveRegistrationHeaderTool(), argc, argv);
}
