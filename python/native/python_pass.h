// Passes written in Python: adapters for the pipeline, and the editor through which they change the graph.
#ifndef PERMAFROST_PYTHON_NATIVE_PYTHON_PASS_H_
#define PERMAFROST_PYTHON_NATIVE_PYTHON_PASS_H_

#include <pybind11/pybind11.h>

#include <map>
#include <string>

#include "python/native/errors.h"
#include "transforms/pass.h"

namespace permafrost::python {

// Returns the definitions of passes by name. Each pass is an object with
//   check(arguments)        raises ValueError for invalid arguments
//   run(editor, arguments)  returns the number of rewrites it made
// where `arguments` is a list of pairs of strings. Exceptions are kept in `raised`, which must outlive the definitions,
// and become the error of the pipeline. REQUIRES: the GIL.
std::map<std::string, PassDefinition> PythonPasses(const pybind11::dict& passes, RaisedExceptions* raised);

void BindPythonPass(pybind11::module_& m);

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_PYTHON_PASS_H_
