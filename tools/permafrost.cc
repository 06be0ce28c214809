// The permafrost command: every tool as a subcommand.
#include "tools/all_tools.h"
#include "tools/command_line/main_guard.h"

namespace {

int Run(int argc, char** argv) { return permafrost::SubcommandMain(permafrost::AllTools(), argc, argv); }

}  // namespace

int main(int argc, char** argv) { return permafrost::GuardMain(&Run, argc, argv); }
