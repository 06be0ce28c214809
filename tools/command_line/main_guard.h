// Runs the body of main(), so that an allocation that fails outside the tool itself is an error, too.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_MAIN_GUARD_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_MAIN_GUARD_H_

namespace permafrost {

// Returns the result of `run`, or 255, after an error line, if it throws. Allocates nothing.
//
// Meanwhile a reserve of address space is held, which is released when operator new fails for the first time. A small
// allocation then succeeds, and what a large one leaves half done can be unwound: not all code of the libraries
// survives a std::bad_alloc (Abseil's hash tables are invalid after a growth that throws, absl::StrFormat ends the
// process).
int GuardMain(int (*run)(int argc, char** argv), int argc, char** argv);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_MAIN_GUARD_H_
