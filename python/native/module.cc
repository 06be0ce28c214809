// The extension module permafrost._native. Only the modules in python/permafrost use it; they check the arguments of
// users. python/permafrost/_native.pyi lists its contents.
#include <pybind11/pybind11.h>

#include "python/native/interruptible.h"
#include "python/native/model.h"
#include "python/native/python_pass.h"
#include "python/native/running.h"
#include "python/native/tensors.h"
#include "python/native/tools.h"
#include "python/native/transforming.h"
#include "tools/command_line/cli.h"

PYBIND11_MODULE(_native, m) {
  using namespace permafrost::python;
  m.attr("VERSION") = std::string(permafrost::kVersion);
  BindTensors(m);
  BindModel(m);
  BindPythonPass(m);
  BindTransforming(m);
  BindRunning(m);
  BindTools(m);
  pybind11::module_::import("atexit").attr("register")(pybind11::cpp_function(&AwaitAbandonedWork));
}
