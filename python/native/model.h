// A model as Python holds it: a graph that nobody edits any more, and what is known of its interface.
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
  // OK once inputs and outputs are declared; else why they are in doubt, which is the error of whatever needs them.
  absl::Status interface;
  std::vector<std::string> notes;
};

// Declares the interface of `graph`, or finds it, and keeps the doubt where there is one.
Model MakeModel(std::unique_ptr<Graph> graph, const std::optional<std::string>& inputs,
                const std::optional<std::string>& outputs);

// The names as flags take them: joined by commas. Absent for None.
std::optional<std::string> NamesFromPython(pybind11::handle names);

// An attribute's value as Python sees it, and back. REQUIRES: the GIL.
pybind11::object ToPython(const AttrValue& value);
absl::StatusOr<AttrValue> AttrFromPython(pybind11::handle object);

// What a node says of itself: a tuple of name, op, device and inputs.
pybind11::tuple Describe(const Node& node);
pybind11::dict AttributesOf(const Node& node);

// The graph as a binary GraphDef, written straight into the object. REQUIRES: the GIL.
pybind11::bytes GraphBytes(const Graph& graph);

void BindModel(pybind11::module_& m);

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_MODEL_H_
