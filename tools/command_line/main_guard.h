// Runs the body of main(), so that an allocation that fails outside the tool itself is an error, too.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_MAIN_GUARD_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_MAIN_GUARD_H_

namespace permafrost {

// Returns the result of `run`, or 255, after an error line, if it throws. Allocates nothing.
int GuardMain(int (*run)(int argc, char** argv), int argc, char** argv);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_MAIN_GUARD_H_
