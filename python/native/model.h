// A model as Python holds it: an immutable graph and its interface.
#ifndef PERMAFROST_PYTHON_NATIVE_MODEL_H_
#define PERMAFROST_PYTHON_NATIVE_MODEL_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost::python {

struct Model {
  std::shared_ptr<const Graph> graph;
  // OK once inputs and outputs are declared. Otherwise the reason why they are in doubt, returned as an error by every
  // operation that needs them.
  absl::Status interface;
  std::vector<std::string> notes;
};

// Declares the interface of `graph`, or finds it. Keeps the error in `interface` if the inputs or outputs are in doubt.
Model MakeModel(std::unique_ptr<Graph> graph, const std::optional<std::string>& inputs,
                const std::optional<std::string>& outputs);

// Returns the names as flags take them: joined by commas. Absent for None.
std::optional<std::string> NamesFromPython(pybind11::handle names);

// Convert an attribute's value to Python and back. REQUIRES: the GIL.
pybind11::object ToPython(const AttrValue& value);
absl::StatusOr<AttrValue> AttrFromPython(pybind11::handle object);

// Returns a tuple of the node's name, op, device and inputs.
pybind11::tuple Describe(const Node& node);
pybind11::dict AttributesOf(const Node& node);

// Returns the graph as a binary GraphDef, serialised straight into the bytes object. REQUIRES: the GIL.
pybind11::bytes GraphBytes(const Graph& graph);

void BindModel(pybind11::module_& m);

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_MODEL_H_
