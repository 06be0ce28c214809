// Checks the Python package of an interpreter.
#ifndef PERMAFROST_TOOLS_DIAGNOSIS_PYTHON_CHECK_H_
#define PERMAFROST_TOOLS_DIAGNOSIS_PYTHON_CHECK_H_

#include <string>

#include "tools/diagnosis/finding.h"

namespace permafrost {

// Imports the package in a process of the interpreter, a program on the PATH or a path, for at most 20 seconds. An
// interpreter or a package that does not exist is an advice; a package that cannot be imported, or is of another
// version than this program, is a problem.
Finding CheckPythonPackage(const std::string& interpreter);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIAGNOSIS_PYTHON_CHECK_H_
