// Reads the bodies of functions node by node, without instantiating them, since their attributes are unknown.
#include "tools/selective/model_nodes.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/functions/function.h"
#include "graph/wire_format/graphdef_fields.h"
#include "graph/wire_format/node_def.h"

namespace permafrost {

absl::Status VisitNodes(const Graph& graph, absl::FunctionRef<absl::Status(const ModelNode&)> visit) {
  PF_ASSIGN_OR_RETURN(const FunctionLibrary library, FunctionLibrary::Of(graph));
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    PF_RETURN_IF_ERROR(visit({node->name(), node->op().name(), node->device(), node->attrs(), "",
                              !node->op().is_known() && library.Find(node->op().name()) != nullptr}));
  }
  for (const Function* function : library.functions()) {
    Graph unread_fields;
    NodeDefReader reader(graph.Memory());
    std::vector<absl::string_view> inputs;
    const absl::Status status = ForEachField(function->encoded(), [&](const WireField& field) {
      if (!IsMessage(field, graphdef_fields::kBodyNode)) return absl::OkStatus();
      inputs.clear();
      PF_RETURN_IF_ERROR(reader.Read(field.bytes, &unread_fields, &inputs));
      return visit({reader.name(), reader.op(), reader.device(), *reader.attrs(), function->name(),
                    library.Find(reader.op()) != nullptr});
    });
    PF_RETURN_IF_ERROR(Annotate(status, absl::StrCat("function ", Quoted(function->name()))));
  }
  return absl::OkStatus();
}

std::string Describe(const ModelNode& node) {
  return absl::StrCat("node ", Quoted(node.name),
                      node.function.empty() ? "" : absl::StrCat(" of function ", Quoted(node.function)));
}

}  // namespace permafrost
