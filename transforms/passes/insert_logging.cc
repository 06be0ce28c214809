// Adds Print nodes, so that values can be read at run time.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

struct Params {
  std::vector<std::string> op;
  std::vector<std::string> prefix;
  std::string message;
  bool show_name = false;
  bool show_op = false;
  int32_t first_n = -1;
  int32_t summarize = 1024;
};

constexpr absl::string_view kSuffix = "__print__";

bool IsMerge(const Node& node) { return node.op() == ops::kMerge || node.op() == ops::kRefMerge; }

// Returns the used outputs. A node with control uses alone counts as used at output 0.
std::set<int> UsedPorts(const Node& node) {
  std::set<int> ports;
  for (const Use& use : node.uses()) ports.insert(std::max(0, use.consumer->input(use.index).port));
  return ports;
}

// Returns why a Print cannot follow the node; empty if it can. `types` are those of its outputs.
std::string Objection(const Node& node, const std::vector<DType>& types, std::set<int> ports) {
  if (types.empty()) return "has no outputs to print";
  if (node.op() == ops::kNextIteration || node.op() == ops::kRefNextIteration) {
    return "closes a loop, which has to read it directly";
  }
  ports.insert(0);  // Passed on by the Print.
  for (const int port : ports) {
    if (static_cast<size_t>(port) >= types.size()) {
      return absl::StrCat("has ", types.size(), " outputs, but output ", port, " is used");
    }
    if (IsRef(types[port])) return absl::StrCat("output ", port, " is a reference");
    if (types[port] == DType::kResource || types[port] == DType::kVariant) {
      return absl::StrCat("output ", port, " has the type ", DTypeName(types[port]), ", which cannot be printed");
    }
  }
  return "";
}

std::string MessageOf(const Node& node, const Params& params) {
  std::string message;
  if (params.show_op) absl::StrAppend(&message, ";", node.op().name(), ";");
  if (params.show_name) absl::StrAppend(&message, ";", node.name(), kSuffix, ";");
  absl::StrAppend(&message, params.message);
  return message;
}

// Redirects the readers of output 0 to the Print. If there are none, the readers of the other outputs wait for the
// Print, which would not run otherwise.
void Connect(Graph* graph, Node* node, Node* print) {
  const bool is_read = graph->HasDataUses({node, 0});
  std::set<std::pair<uint32_t, Node*>> waiting;  // By id, so that the order is reproducible.
  if (!is_read) {
    for (const Use& use : node->uses()) {
      // A Merge would wait for both of its branches.
      if (!IsMerge(*use.consumer)) waiting.insert({use.consumer->id(), use.consumer});
    }
  }
  graph->ReplaceUses({node, 0}, {print, 0});
  for (const auto& [id, consumer] : waiting) graph->AddControlInput(consumer, print);
}

absl::Status InsertPrint(Graph* graph, Node* node, const std::vector<DType>& types, const std::set<int>& ports,
                         const Params& params) {
  std::vector<DType> printed;
  for (const int port : ports) printed.push_back(types[port]);
  PF_ASSIGN_OR_RETURN(
      Node * print, graph->AddNode(graph->UniqueName(absl::StrCat(node->name(), kSuffix)), ops::kPrint, node->next()));
  print->set_device(node->device());
  print->SetAttr("T", AttrValue::Type(types[0]));
  print->SetAttr("U", AttrValue::TypeList(printed));
  print->SetAttr("message", AttrValue::String(MessageOf(*node, params)));
  print->SetAttr("first_n", AttrValue::Int(params.first_n));
  print->SetAttr("summarize", AttrValue::Int(params.summarize));
  Connect(graph, node, print);
  graph->AddInput(print, {node, 0});
  for (const int port : ports) graph->AddInput(print, {node, port});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Insert(Graph* graph, const Params& params, PassContext* context) {
  const absl::flat_hash_set<absl::string_view> wanted_ops(params.op.begin(), params.op.end());
  const auto is_wanted = [&](const Node& node) {
    if (!wanted_ops.empty() && !wanted_ops.contains(node.op().name())) return false;
    return params.prefix.empty() || std::any_of(params.prefix.begin(), params.prefix.end(), [&](const auto& prefix) {
             return absl::StartsWith(node.name(), prefix);
           });
  };
  int64_t inserted = 0;
  int64_t wanted = 0;
  for (Node* node : graph->Nodes()) {
    if (!is_wanted(*node)) continue;
    ++wanted;
    if (node->uses().empty()) {
      context->MissIfWanted(*node, "is read by no node of the graph");
      continue;
    }
    PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*node));
    const std::set<int> ports = UsedPorts(*node);
    if (const std::string objection = Objection(*node, types, ports); !objection.empty()) {
      context->MissIfWanted(*node, objection);
      continue;
    }
    const RewriteScope rewrite(context, graph, {node});
    if (!rewrite) break;
    PF_RETURN_IF_ERROR(InsertPrint(graph, node, types, ports, params));
    ++inserted;
  }
  if (inserted > 0) {
    context->Note(absl::StrCat("put a Print after ", inserted, " nodes"));
  } else {
    context->NoteAbsent(wanted == 0 ? "no node has such an op and such a name"
                                    : "no such node is read within the graph");
  }
  return inserted;
}

}  // namespace

// Inserts a Print after each selected node whose outputs are read within the graph.
//
//   x -> y   =>   x -> Print x__print__ -> y
//
// The Print writes the message and then, in brackets, each output that is read. With show_op and show_name the message
// starts with `;<op>;` and `;<name>__print__;`. The following call produces the log for freeze_requantization_ranges:
//
//   insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:")
//
// Leaves unchanged nodes that no other node reads (declared outputs are still read from the node itself), nodes without
// outputs, nodes with a reference, resource or variant output, and NextIteration.
DEFINE_PASS(insert_logging) {
  return Pass<Params>("Inserts a Print after nodes, so that a run prints their values.")
      .Why("Helps to locate incorrect values, and records the ranges that freeze_requantization_ranges reads.")
      .Param("op", &Params::op, "Restrict the pass to nodes of this op.")
      .Param("prefix", &Params::prefix, "Restrict the pass to nodes whose name starts with this prefix.")
      .Param("message", &Params::message, "Text printed before the values.")
      .Param("show_name", &Params::show_name, "Also print the name of the node.")
      .Param("show_op", &Params::show_op, "Also print the op of the node.")
      .Param("first_n", &Params::first_n, "Number of times that a node prints; -1: no limit.")
      .Param("summarize", &Params::summarize, "Number of elements printed per tensor; -1: all.")
      .Numerics(Exact())
      .Run(Insert);
}

}  // namespace permafrost
