// The permafrost command: every tool as a subcommand.
#include "tools/all_tools.h"

int main(int argc, char** argv) { return permafrost::SubcommandMain(permafrost::AllTools(), argc, argv); }
