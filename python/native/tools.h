// Python bindings of the command line tools, which run inside the process.
#ifndef PERMAFROST_PYTHON_NATIVE_TOOLS_H_
#define PERMAFROST_PYTHON_NATIVE_TOOLS_H_

#include <pybind11/pybind11.h>

namespace permafrost::python {

void BindTools(pybind11::module_& m);

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_TOOLS_H_
