// Passes that are written in Python: how the pipeline sees them, and how they see the graph.
#ifndef PERMAFROST_PYTHON_NATIVE_PYTHON_PASS_H_
#define PERMAFROST_PYTHON_NATIVE_PYTHON_PASS_H_

#include <pybind11/pybind11.h>

#include <map>
#include <string>

#include "python/native/errors.h"
#include "transforms/pass.h"

namespace permafrost::python {

// The definitions of passes by name: each is an object with
//   check(arguments)        raises ValueError for arguments that it does not take
//   run(editor, arguments)  returns how many rewrites it made
// where arguments is a list of pairs of texts. What they raise goes into `raised`, which must live as long as the
// definitions, and is the error of the pipeline. REQUIRES: the GIL.
std::map<std::string, PassDefinition> PythonPasses(const pybind11::dict& passes, RaisedExceptions* raised);

void BindPythonPass(pybind11::module_& m);

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_PYTHON_PASS_H_
