// Lets Python edit a graph during its pass, and only then.
#include "python/native/python_pass.h"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "python/native/errors.h"
#include "python/native/interruptible.h"
#include "python/native/model.h"
#include "python/native/tensors.h"
#include "python/native/text.h"

namespace py = pybind11;

namespace permafrost::python {
namespace {

// The graph of a running pass. Python may keep the editor for longer, so the graph is detached from it at the end of
// the pass.
struct Editor {
  Graph* graph = nullptr;
  PassContext* context = nullptr;

  Graph& Get() const {
    if (graph == nullptr) Throw(absl::FailedPreconditionError("the pass has ended: its graph cannot be used any more"));
    return *graph;
  }
};

using EditorPointer = std::shared_ptr<Editor>;

// A node by its id, which is unique in the graph for ever, and its name, by which it is looked up.
struct EditedNode {
  EditorPointer editor;
  std::string name;
  uint32_t id = 0;

  Node* Get() const {
    Node* node = editor->Get().Find(name);
    if (node == nullptr || node->id() != id) {
      Throw(absl::NotFoundError(absl::StrCat("node '", name, "' was removed or renamed by the pass")));
    }
    return node;
  }
};

EditedNode ViewOf(const EditorPointer& editor, const Node* node) {
  return {editor, std::string(node->name()), node->id()};
}

// Parses "x", "x:1" or "^x".
TensorRef RefOf(const EditorPointer& editor, const std::string& text) {
  absl::string_view name = text;
  int port = 0;
  if (!name.empty() && name[0] == '^') {
    name.remove_prefix(1);
    port = kControlPort;
  } else if (const size_t colon = name.rfind(':'); colon != absl::string_view::npos) {
    if (!absl::SimpleAtoi(name.substr(colon + 1), &port) || port < 0) {
      Throw(absl::InvalidArgumentError(absl::StrCat("'", text, "' names no tensor, expected 'x', 'x:1' or '^x'")));
    }
    name = name.substr(0, colon);
  }
  Node* node = editor->Get().Find(name);
  if (node == nullptr) Throw(absl::NotFoundError(absl::StrCat("there is no node '", name, "'")));
  return {node, port};
}

void SetInputs(const EditorPointer& editor, Node* node, const std::vector<std::string>& inputs) {
  Graph& graph = editor->Get();
  // Look up all inputs before any is set.
  std::vector<TensorRef> refs;
  for (const std::string& input : inputs) refs.push_back(RefOf(editor, input));
  for (const TensorRef& ref : refs) {
    if (ref.is_control()) {
      graph.AddControlInput(node, ref.node);
    } else {
      graph.AddInput(node, ref);
    }
  }
}

Node* Position(const std::optional<EditedNode>& before) { return before.has_value() ? before->Get() : nullptr; }

EditedNode AddNode(const EditorPointer& editor, const Text& name, const Text& op, std::vector<Text> inputs,
                   const py::dict& attributes, const std::optional<EditedNode>& before) {
  std::vector<std::pair<std::string, AttrValue>> values;
  for (const auto& [key, value] : attributes) {
    const std::string text = py::handle(key).cast<Text>().bytes;
    absl::StatusOr<AttrValue> converted = AttrFromPython(value);
    if (!converted.ok()) Throw(Annotate(converted.status(), absl::StrCat("attr '", text, "'")));
    values.emplace_back(text, *std::move(converted));
  }
  std::vector<std::string> names = Bytes(std::move(inputs));
  for (const std::string& input : names) RefOf(editor, input);  // Nothing is added if an input is missing.
  Node* node = ValueOrThrow(editor->Get().AddNode(name.bytes, Op::Named(op.bytes), Position(before)));
  SetInputs(editor, node, names);
  for (auto& [key, value] : values) node->SetAttr(key, std::move(value));
  return ViewOf(editor, node);
}

EditedNode AddConstant(const EditorPointer& editor, const Text& name, py::handle array,
                       const std::optional<EditedNode>& before) {
  // Copies the array, since it may be changed later.
  const Tensor view = ValueOrThrow(TensorFromBuffer(array));
  char* data = nullptr;
  Tensor copy = ValueOrThrow(Tensor::Allocate(view.dtype(), view.shape(), &data));
  if (!view.bytes().empty()) std::memcpy(data, view.bytes().data(), view.bytes().size());
  return ViewOf(editor, ValueOrThrow(editor->Get().AddConst(name.bytes, std::move(copy), Position(before))));
}

void SetInput(const EditedNode& view, int index, const Text& input) {
  Node* node = view.Get();
  const TensorRef ref = RefOf(view.editor, input.bytes);
  if (index < 0 || index >= node->num_inputs()) {
    Throw(absl::InvalidArgumentError(
        absl::StrCat(node->Describe(), ": found input ", index, ", expected one of ", node->num_inputs())));
  }
  if (ref.is_control() != node->input(index).is_control()) {
    Throw(absl::InvalidArgumentError(
        absl::StrCat(node->Describe(), ": input ", index, ": data stays data, and control stays control")));
  }
  view.editor->Get().SetInput(node, index, ref);
}

void SetAttribute(const EditedNode& view, const Text& key, py::handle value) {
  Node* node = view.Get();
  absl::StatusOr<AttrValue> converted = AttrFromPython(value);
  if (!converted.ok()) {
    Throw(Annotate(converted.status(), absl::StrCat(node->Describe(), ": attr '", key.bytes, "'")));
  }
  node->SetAttr(key.bytes, *std::move(converted));
}

void ReplaceUses(const EditorPointer& editor, const Text& from, const Text& to) {
  const TensorRef old_ref = RefOf(editor, from.bytes), new_ref = RefOf(editor, to.bytes);
  if (old_ref.is_control() != new_ref.is_control()) {
    Throw(absl::InvalidArgumentError("data stays data, and control stays control"));
  }
  if (old_ref.is_control()) {
    editor->Get().ReplaceControlUses(old_ref.node, new_ref.node);
  } else {
    editor->Get().ReplaceUses(old_ref, new_ref);
  }
}

// Returns whether one more rewrite, of these nodes, is allowed.
bool Allow(const EditorPointer& editor, const std::vector<EditedNode>& matched) {
  std::vector<const Node*> nodes;
  for (const EditedNode& view : matched) nodes.push_back(view.Get());
  editor->Get();
  return editor->context->AllowRewrite(nodes);
}

py::list ArgumentsToPython(const std::vector<PassArgument>& arguments) {
  py::list list;
  for (const PassArgument& argument : arguments) {
    list.append(py::make_tuple(ToPython(argument.name), ToPython(argument.value)));
  }
  return list;
}

absl::StatusOr<int64_t> RunPythonPass(const Kept& pass, Graph* graph, const std::vector<PassArgument>& arguments,
                                      PassContext* context, RaisedExceptions* raised) {
  const py::gil_scoped_acquire acquire;
  const auto editor = std::make_shared<Editor>();
  editor->graph = graph;
  editor->context = context;
  absl::StatusOr<int64_t> rewrites = absl::InternalError("not run");
  try {
    rewrites = py::handle(pass.get()).attr("run")(editor, ArgumentsToPython(arguments)).cast<int64_t>();
  } catch (const py::error_already_set& error) {
    rewrites = raised->Keep(error);
  } catch (const py::cast_error&) {
    rewrites = absl::InvalidArgumentError("the pass did not return how many rewrites it made");
  }
  editor->graph = nullptr;
  return rewrites;
}

}  // namespace

std::map<std::string, PassDefinition> PythonPasses(const py::dict& passes, RaisedExceptions* raised) {
  std::map<std::string, PassDefinition> definitions;
  for (const auto& [key, object] : passes) {
    PassDefinition definition;
    definition.name = py::handle(key).cast<Text>().bytes;
    const Kept pass(py::reinterpret_borrow<py::object>(object).release().ptr());
    definition.check_arguments = [pass, raised](const std::vector<PassArgument>& arguments) -> absl::Status {
      const py::gil_scoped_acquire acquire;
      try {
        py::handle(pass.get()).attr("check")(ArgumentsToPython(arguments));
      } catch (const py::error_already_set& error) {
        return raised->Keep(error);
      }
      return absl::OkStatus();
    };
    definition.run = [pass, raised](Graph* graph, const std::vector<PassArgument>& arguments, PassContext* context) {
      return RunPythonPass(pass, graph, arguments, context, raised);
    };
    definitions.emplace(definition.name, std::move(definition));
  }
  return definitions;
}

void BindPythonPass(py::module_& m) {
  py::class_<EditedNode>(m, "EditedNode")
      .def("describe", [](const EditedNode& view) { return Describe(*view.Get()); })
      .def("attributes", [](const EditedNode& view) { return AttributesOf(*view.Get()); })
      .def_property_readonly("is_constant", [](const EditedNode& view) { return ConstValue(*view.Get()).ok(); })
      .def("constant", [](const EditedNode& view) { return ToPython(ValueOrThrow(ConstValue(*view.Get()))); })
      .def_property_readonly("num_uses", [](const EditedNode& view) { return view.Get()->uses().size(); })
      .def_property_readonly("is_endpoint",
                             [](const EditedNode& view) {
                               const Node* node = view.Get();
                               return node->graph().IsEndpoint(node);
                             })
      .def("set_op", [](const EditedNode& view, const Text& op) { view.Get()->set_op(Op::Named(op.bytes)); })
      .def("set_device", [](const EditedNode& view, const Text& device) { view.Get()->set_device(device.bytes); })
      .def("set_input", &SetInput)
      .def("set_inputs",
           [](const EditedNode& view, std::vector<Text> inputs) {
             Node* node = view.Get();
             const std::vector<std::string> names = Bytes(std::move(inputs));
             for (const std::string& name : names) RefOf(view.editor, name);
             view.editor->Get().ClearInputs(node);
             SetInputs(view.editor, node, names);
           })
      .def("set_attribute", &SetAttribute)
      .def("remove_attribute",
           [](const EditedNode& view, const Text& key) { return view.Get()->RemoveAttr(key.bytes); })
      .def("rename",
           [](EditedNode& view, const Text& name) {
             ThrowIfError(view.editor->Get().Rename(view.Get(), name.bytes));
             view.name = name.bytes;
           })
      .def("remove", [](const EditedNode& view) { ThrowIfError(view.editor->Get().RemoveNode(view.Get())); });
  py::class_<Editor, EditorPointer>(m, "Editor")
      .def("nodes",
           [](const EditorPointer& editor) {
             py::list nodes;
             for (const Node* node = editor->Get().first(); node != nullptr; node = node->next()) {
               nodes.append(ViewOf(editor, node));
             }
             return nodes;
           })
      .def("find",
           [](const EditorPointer& editor, const Text& name) -> std::optional<EditedNode> {
             const Node* node = editor->Get().Find(name.bytes);
             return node == nullptr ? std::nullopt : std::make_optional(ViewOf(editor, node));
           })
      .def("unique_name",
           [](const EditorPointer& editor, const Text& base) { return ToPython(editor->Get().UniqueName(base.bytes)); })
      .def("add_node", &AddNode)
      .def("add_constant", &AddConstant)
      .def("replace_uses", &ReplaceUses)
      .def("allow", &Allow)
      .def("note", [](const EditorPointer& editor, const Text& text) {
        editor->Get();
        editor->context->Note(text.bytes);
      });
}

}  // namespace permafrost::python
