// Adds the default values of attributes that nodes omit.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/ops/op_schema.h"
#include "transforms/pass.h"
#include "transforms/rewrites/function_library.h"

namespace permafrost {
namespace {

struct Params {
  bool skip_unknown = false;
};

// Attributes with defaults, by op and by function.
class Defaults {
 public:
  explicit Defaults(FunctionLibrary functions) : functions_(std::move(functions)) {}

  bool has_functions() const { return !functions_.empty(); }

  // Calls f(name, value) for each attribute of `op` that has a default; returns false if the op is unknown. A function
  // of the library takes precedence over an op of the same name, as in TensorFlow.
  template <typename F>
  bool ForEach(absl::string_view op, F f) const {
    if (const Function* function = functions_.Find(op); function != nullptr) {
      ForEachOf(function->signature().attrs, f);
      return true;
    }
    return ForEachOfSchema(FindSchema(Op::Named(op)), f);
  }

  // Calls f for the op of a graph node, in the same way.
  template <typename F>
  bool ForEach(const Node& node, F f) const {
    return functions_.empty() ? ForEachOfSchema(FindSchema(node.op()), f) : ForEach(node.op().name(), f);
  }

 private:
  template <typename F>
  static void ForEachOf(const std::vector<AttrSpec>& attrs, F f) {
    for (const AttrSpec& spec : attrs) {
      if (spec.has_default) f(spec.name, spec.default_value);
    }
  }

  template <typename F>
  static bool ForEachOfSchema(const OpSchema* schema, F f) {
    if (schema == nullptr) return false;
    ForEachOf(schema->attrs, f);
    return true;
  }

  FunctionLibrary functions_;
};

// Adds missing attributes in the bodies of functions. Nodes of unknown ops are unchanged, as in TensorFlow, which does
// not process bodies at all.
absl::StatusOr<int64_t> AddInFunctions(Graph* graph, const Defaults& defaults) {
  return AddAttrsInFunctions(graph, [&](const FunctionNode& node) {
    std::vector<NamedAttr> missing;
    defaults.ForEach(node.op, [&](const std::string& name, const AttrValue& value) {
      if (std::find(node.attrs.begin(), node.attrs.end(), name) == node.attrs.end()) missing.push_back({name, value});
    });
    return missing;
  });
}

absl::Status UnknownOp(const Node& node) {
  return absl::NotFoundError(absl::StrCat(node.Describe(),
                                          ": the op is neither in the table of ops nor a function of the graph; "
                                          "skip_unknown=true leaves such nodes as they are"));
}

absl::StatusOr<int64_t> Add(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(FunctionLibrary functions, FunctionLibrary::Of(*graph));
  const Defaults defaults(std::move(functions));
  std::map<absl::string_view, int64_t> skipped;
  int64_t changed = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    std::vector<std::pair<std::string, const AttrValue*>> missing;
    const bool is_known = defaults.ForEach(*node, [&](const std::string& name, const AttrValue& value) {
      if (!node->HasAttr(name)) missing.emplace_back(name, &value);
    });
    if (!missing.empty() && context->AllowRewrite(*node)) {
      for (const auto& [name, value] : missing) node->SetAttr(name, *value);
      ++changed;
    }
    if (is_known) continue;
    if (!params.skip_unknown) return UnknownOp(*node);
    context->MissIfWanted(*node, "the op is neither in the table of ops nor a function of the graph");
    ++skipped[node->op().name()];
  }
  int64_t in_functions = 0;
  // The bodies of functions are one step, which has no nodes of the graph to name.
  if (defaults.has_functions() && context->AllowRewrite(absl::Span<const Node* const>())) {
    PF_ASSIGN_OR_RETURN(in_functions, AddInFunctions(graph, defaults));
  }
  context->Note(absl::StrCat("added attributes to ", changed, " nodes",
                             in_functions == 0 ? "" : absl::StrCat(" and to ", in_functions, " in function bodies")));
  if (!skipped.empty()) {
    context->Note(absl::StrCat("left nodes of unknown ops unchanged: ",
                               absl::StrJoin(skipped, ", ", [](std::string* out, const auto& entry) {
                                 absl::StrAppend(out, entry.second, " ", entry.first);
                               })));
  }
  return changed + in_functions;
}

}  // namespace

// Gives every node, also in function bodies, the attributes that it lacks and for which its op has a default.
//
//   LRN(x)   =>   LRN(x) {depth_radius: 5, bias: 1, alpha: 1, beta: 0.5, T: float}
//
// Existing values are kept. A node whose op is neither in the op table nor in the function library of the graph is an
// error, unless skip_unknown is true. In a function body, such a node is left unchanged.
DEFINE_PASS(add_default_attributes) {
  return Pass<Params>("Writes default attribute values out explicitly.")
      .Why(
          "Readers that do not know the defaults of an op, such as older TensorFlow versions and converters, can then "
          "read the graph.")
      .Param("skip_unknown", &Params::skip_unknown, "Leave nodes of unknown ops unchanged instead of failing.")
      .Numerics(Exact())
      .Idempotent()
      .Run(Add);
}

}  // namespace permafrost
