// Implements the checks of ports, arity, types, constants and cycles.
#include "graph/validation/validate.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/ops/op_schema.h"
#include "graph/validation/problem_list.h"

namespace permafrost {
namespace {

constexpr int kNotKnown = -1;

// Returns the fixed type of an argument or the type that its attribute holds; kInvalid if the attribute is missing or
// malformed.
DType TypeOf(const Node& node, const ArgSpec& arg) {
  if (arg.type_attr.empty()) return arg.type;
  const AttrValue* value = node.FindAttr(arg.type_attr);
  if (value == nullptr) value = DefaultAttr(node.op(), arg.type_attr);
  if (value == nullptr) return DType::kInvalid;
  const absl::StatusOr<DType> type = value->AsType();
  return type.ok() ? RemoveRef(*type) : DType::kInvalid;
}

class Validator {
 public:
  explicit Validator(const Graph& graph) : graph_(graph), num_outputs_(graph.id_limit(), kNotKnown) {}

  absl::Status Run() {
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      const OpSchema* schema = FindSchema(node->op());
      if (schema == nullptr) continue;
      num_outputs_[node->id()] =
          schema->fixed_outputs >= 0 ? schema->fixed_outputs : NumOutputs(*node).value_or(kNotKnown);
    }
    for (const Node* node = graph_.first(); node != nullptr && !IsFull(); node = node->next()) CheckNode(*node);
    for (const Endpoint& input : graph_.inputs()) CheckEndpoint(input, "input");
    for (const Endpoint& output : graph_.outputs()) CheckEndpoint(output, "output");
    if (!IsFull()) {
      const absl::Status acyclic = CheckAcyclic(graph_);
      if (!acyclic.ok()) Report(acyclic.message());
    }
    return problems_.ToStatus();
  }

 private:
  bool IsFull() const { return problems_.IsFull(); }
  void Report(absl::string_view problem) { problems_.Report(problem); }

  void CheckNode(const Node& node) {
    for (int i = 0; i < node.num_data_inputs(); ++i) {
      const TensorRef input = node.input(i);
      const int count = num_outputs_[input.node->id()];
      if (count != kNotKnown && input.port >= count) {
        Report(absl::StrCat(node.Describe(), ": input ", i, " is '", input.ToString(), "', but ",
                            input.node->Describe(), " has ", count, count == 1 ? " output" : " outputs"));
      }
    }
    if (node.op() == ops::kConst) CheckConst(node);
    const OpSchema* schema = FindSchema(node.op());
    if (schema == nullptr) return;
    const int expected = schema->fixed_inputs >= 0 ? schema->fixed_inputs : NumInputs(node).value_or(kNotKnown);
    if (const absl::Status related = CheckTypeRelations(node); !related.ok()) Report(related.message());
    if (expected == kNotKnown) return;
    if (expected != node.num_data_inputs()) {
      Report(absl::StrCat(node.Describe(), ": found ", node.num_data_inputs(),
                          node.num_data_inputs() == 1 ? " input" : " inputs", ", expected ", expected));
      return;
    }
    CheckInputTypes(node, *schema);
  }

  // REQUIRES: the node has the number of data inputs that its schema specifies.
  void CheckInputTypes(const Node& node, const OpSchema& schema) {
    int next = 0;
    for (const ArgSpec& arg : schema.inputs) {
      if (arg.is_type_list) {
        const absl::StatusOr<std::vector<DType>> types = TypeListAttr(node, arg.type_attr);
        if (!types.ok()) return;
        for (const DType type : *types) CheckInputType(node, next++, RemoveRef(type));
        continue;
      }
      int64_t count = 1;
      if (!arg.number_attr.empty()) {
        const absl::StatusOr<int64_t> number = IntAttr(node, arg.number_attr);
        if (!number.ok()) return;
        count = *number;
      }
      if (count == 0) continue;
      const DType type = TypeOf(node, arg);
      for (int64_t i = 0; i < count; ++i) CheckInputType(node, next++, type);
    }
  }

  void CheckInputType(const Node& node, int i, DType expected) {
    if (expected == DType::kInvalid || i >= node.num_data_inputs()) return;
    const DType found = OutputType(node.input(i));
    if (found == DType::kInvalid || found == expected) return;
    Report(absl::StrCat(node.Describe(), ": input ", i, " is '", node.input(i).ToString(), "' of type ",
                        DTypeName(found), ", expected ", DTypeName(expected)));
  }

  // Returns the type of an output, or kInvalid if it is unknown.
  DType OutputType(TensorRef ref) {
    const Node& node = *ref.node;
    const int count = num_outputs_[node.id()];
    if (count == kNotKnown || ref.port >= count) return DType::kInvalid;
    const OpSchema& schema = *FindSchema(node.op());
    if (schema.fixed_outputs >= 0) return TypeOf(node, schema.outputs[ref.port]);
    // If the number of outputs depends on attributes, the list of their types is computed once per node.
    const auto [entry, is_new] = output_types_.try_emplace(node.id());
    if (is_new) entry->second = OutputTypes(node).value_or(std::vector<DType>());
    const std::vector<DType>& types = entry->second;
    return static_cast<size_t>(ref.port) < types.size() ? RemoveRef(types[ref.port]) : DType::kInvalid;
  }

  void CheckConst(const Node& node) {
    const AttrValue* value = node.FindAttr("value");
    const AttrValue* dtype = node.FindAttr("dtype");
    if (value == nullptr || dtype == nullptr) {
      Report(absl::StrCat(node.Describe(), ": attr '", value == nullptr ? "value" : "dtype", "' is missing"));
      return;
    }
    DType found;
    Shape shape;
    if (const absl::Status status = value->CheckTensor(&found, &shape); !status.ok()) {
      Report(absl::StrCat(node.Describe(), ": attr 'value' ", status.message()));
      return;
    }
    const absl::StatusOr<DType> declared = dtype->AsType();
    if (!declared.ok()) {
      Report(absl::StrCat(node.Describe(), ": attr 'dtype' ", declared.status().message()));
    } else if (*declared != found) {
      Report(absl::StrCat(node.Describe(), ": attr 'dtype' is ", DTypeName(*declared), ", but attr 'value' holds ",
                          DTypeName(found)));
    }
  }

  void CheckEndpoint(const Endpoint& endpoint, absl::string_view role) {
    if (endpoint.node == nullptr) return;
    const int count = num_outputs_[endpoint.node->id()];
    // A node without outputs may be declared as an output: it runs for its side effect.
    if (count == kNotKnown || endpoint.port < count || (count == 0 && endpoint.port == 0)) return;
    Report(absl::StrCat("declared ", role, " '", endpoint.text, "': ", endpoint.node->Describe(), " has ", count,
                        count == 1 ? " output" : " outputs"));
  }

  const Graph& graph_;
  std::vector<int> num_outputs_;  // By node id.
  absl::flat_hash_map<uint32_t, std::vector<DType>> output_types_;
  ProblemList problems_;
};

}  // namespace

absl::Status Validate(const Graph& graph) { return Validator(graph).Run(); }

}  // namespace permafrost
