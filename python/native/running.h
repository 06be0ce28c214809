// Python bindings of sessions and comparisons.
#ifndef PERMAFROST_PYTHON_NATIVE_RUNNING_H_
#define PERMAFROST_PYTHON_NATIVE_RUNNING_H_

#include <pybind11/pybind11.h>

namespace permafrost::python {

void BindRunning(pybind11::module_& m);

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_RUNNING_H_
