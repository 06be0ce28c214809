// Python bindings of the passes.
#ifndef PERMAFROST_PYTHON_NATIVE_TRANSFORMING_H_
#define PERMAFROST_PYTHON_NATIVE_TRANSFORMING_H_

#include <pybind11/pybind11.h>

namespace permafrost::python {

void BindTransforming(pybind11::module_& m);

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_TRANSFORMING_H_
