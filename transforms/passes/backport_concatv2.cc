// Converts ConcatV2 to Concat, for runtimes that do not support ConcatV2.
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "graph/base/status.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

// Converts int64 axes to int32, each once.
class AxisConversion {
 public:
  explicit AxisConversion(Graph* graph) : graph_(graph) {}

  // Returns the int64 `axis` as int32: a Const of the same value, or a Cast.
  absl::StatusOr<TensorRef> Narrow(TensorRef axis) {
    const auto [found, is_new] = narrowed_.try_emplace(axis);
    if (!is_new) return found->second;
    // The value of a constant that may be fed is unknown.
    const bool is_known = axis.node->op() == ops::kConst && !graph_->IsInput(axis.node);
    PF_ASSIGN_OR_RETURN(Node * made, is_known ? NarrowConst(axis.node) : AddCast(axis));
    made->set_device(axis.node->device());
    return narrowed_[axis] = {made, 0};
  }

  // Gives the int32 value to constants whose int64 value is no longer read.
  absl::Status MergeUnread() {
    for (const auto& [axis, narrow] : narrowed_) {
      Node* wide = axis.node;
      if (narrow.node->op() != ops::kConst || graph_->HasDataUses(axis) || graph_->IsEndpoint(wide)) continue;
      for (const char* key : {"dtype", "value"}) wide->SetAttr(key, *narrow.node->FindAttr(key));
      graph_->ReplaceUses(narrow, axis);
      PF_RETURN_IF_ERROR(graph_->RemoveNode(narrow.node));
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Node*> NarrowConst(Node* wide) {
    PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*wide));
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntegerValues(value));
    std::vector<int32_t> narrow;
    for (const int64_t v : values) {
      if (v < std::numeric_limits<int32_t>::min() || v > std::numeric_limits<int32_t>::max()) {
        return absl::InvalidArgumentError(absl::StrCat(wide->Describe(), ": ", v, " is no dimension"));
      }
      narrow.push_back(static_cast<int32_t>(v));
    }
    PF_ASSIGN_OR_RETURN(
        Node * made,
        graph_->AddConst(NameFor(wide), Tensor::FromVector(value.shape(), std::move(narrow)), wide->next()));
    for (int i = 0; i < wide->num_inputs(); ++i) graph_->AddControlInput(made, wide->input(i).node);
    return made;
  }

  absl::StatusOr<Node*> AddCast(TensorRef axis) {
    PF_ASSIGN_OR_RETURN(Node * cast, graph_->AddNode(NameFor(axis.node), ops::kCast, axis.node->next()));
    cast->SetAttr("SrcT", AttrValue::Type(DType::kInt64));
    cast->SetAttr("DstT", AttrValue::Type(DType::kInt32));
    graph_->AddInput(cast, axis);
    return cast;
  }

  std::string NameFor(const Node* axis) const { return graph_->UniqueName(absl::StrCat(axis->name(), "_int32")); }

  Graph* graph_;
  absl::flat_hash_map<TensorRef, TensorRef> narrowed_;
};

absl::StatusOr<int64_t> Backport(Graph* graph, const NoParams&, PassContext* context) {
  AxisConversion conversion(graph);
  int64_t converted = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kConcatV2) continue;
    if (node->num_data_inputs() == 0) {
      context->MissIfWanted(*node, "has no inputs");
      continue;
    }
    PF_ASSIGN_OR_RETURN(const DType axis_type, TypeAttr(*node, "Tidx"));
    const int last = node->num_data_inputs() - 1;
    TensorRef axis = node->input(last);
    const RewriteScope rewrite(context, graph, {node, axis.node});
    if (!rewrite) continue;
    if (axis_type == DType::kInt64) {
      PF_ASSIGN_OR_RETURN(axis, conversion.Narrow(axis));
    }
    for (int i = last; i > 0; --i) graph->SetInput(node, i, node->input(i - 1));
    graph->SetInput(node, 0, axis);
    node->set_op(ops::kConcat);
    node->RemoveAttr("Tidx");
    ++converted;
  }
  PF_RETURN_IF_ERROR(conversion.MergeUnread());
  if (converted == 0) {
    context->NoteAbsent("no node has the op 'ConcatV2'");
  } else {
    context->Note(absl::StrCat("turned ", converted, " ConcatV2 into Concat"));
  }
  return converted;
}

}  // namespace

// Replaces ConcatV2 by the older Concat, whose axis is its first input.
//
//   ConcatV2(a, b, axis, ^c)   =>   Concat(axis, a, b, ^c)
//
// Concat accepts only an int32 axis. A constant int64 axis is converted to int32, or copied if it has other readers;
// any other int64 axis gets a Cast. Function bodies are left unchanged.
DEFINE_PASS(backport_concatv2) {
  return Pass<NoParams>("Replaces ConcatV2 by Concat, for runtimes that support only the older op.")
      .Why("Quantised kernels, and runtimes that predate ConcatV2, support only Concat.")
      .LooksFor({ops::kConcatV2})
      .Numerics(Exact())
      .Idempotent()
      .Run(Backport);
}

}  // namespace permafrost
