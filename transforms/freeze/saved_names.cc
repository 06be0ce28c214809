// Follows an assigned value back to the node that restores it.
#include "transforms/freeze/saved_names.h"

#include <memory>
#include <utility>
#include <vector>

#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/tensor.h"
#include "transforms/pass.h"
#include "transforms/rewrites/call_inlining.h"

namespace permafrost {
namespace {

bool IsVariable(const Node& node) {
  return node.op() == ops::kVariable || node.op() == ops::kVariableV2 || node.op() == ops::kVarHandleOp;
}

// Returns the node behind Identity nodes. Chains of them are short in practice.
TensorRef Source(TensorRef ref) {
  constexpr int kMostIdentities = 16;
  for (int i = 0; i < kMostIdentities && ref.node->op() == ops::kIdentity && ref.node->num_data_inputs() == 1; ++i) {
    ref = ref.node->input(0);
  }
  return ref;
}

// Reads the strings of constant input `index` of a node, each constant once.
class ConstantTexts {
 public:
  const std::vector<std::string>* Of(const Node& node, int index) {
    if (index >= node.num_data_inputs()) return nullptr;
    const Node* source = Source(node.input(index)).node;
    const auto [entry, is_new] = tensors_.try_emplace(source);
    if (is_new && source->op() == ops::kConst) {
      if (absl::StatusOr<Tensor> value = ConstValue(*source); value.ok() && value->dtype() == DType::kString) {
        entry->second = std::make_unique<Tensor>(*std::move(value));
      }
    }
    return entry->second == nullptr ? nullptr : &entry->second->strings();
  }

 private:
  absl::flat_hash_map<const Node*, std::unique_ptr<Tensor>> tensors_;
};

void AddNames(const Graph& graph, SavedNames* names) {
  ConstantTexts texts;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if ((node->op() != ops::kAssign && node->op() != ops::kAssignVariableOp) || node->num_data_inputs() < 2) continue;
    const Node* variable = Source(node->input(0)).node;
    const TensorRef value = Source(node->input(1));
    if (!IsVariable(*variable)) continue;
    const Op op = value.node->op();
    if (op != ops::kRestore && op != ops::kRestoreSlice && op != ops::kRestoreV2) continue;
    const std::vector<std::string>* keys = texts.Of(*value.node, 1);
    const std::vector<std::string>* slices = op == ops::kRestore ? nullptr : texts.Of(*value.node, 2);
    const auto port = static_cast<size_t>(value.port);
    if (keys == nullptr || port >= keys->size()) continue;
    SavedName name{(*keys)[port], slices != nullptr && port < slices->size() ? (*slices)[port] : ""};
    names->try_emplace(std::string(variable->name()), std::move(name));
  }
}

}  // namespace

absl::StatusOr<SavedNames> FindSavedNames(const Graph& graph, absl::string_view restore_op) {
  SavedNames names;
  Node* root = graph.Find(restore_op);
  if (root != nullptr && !graph.library().empty()) {
    const std::unique_ptr<Graph> copy = graph.Clone();
    PF_RETURN_IF_ERROR(copy->DeclareInterface({}, {std::string(restore_op)}));
    std::vector<bool> remove = ReachedBackwards(*copy, {copy->Find(restore_op)}, {});
    remove.flip();
    PF_RETURN_IF_ERROR(copy->RemoveNodes(remove));
    PF_ASSIGN_OR_RETURN(const FunctionLibrary library, FunctionLibrary::Of(*copy));
    PassContext context;
    CallInlining inlining(library, {}, &context);
    PF_RETURN_IF_ERROR(Annotate(inlining.InlineCalls(copy.get()).status(), "the function that restores variables"));
    AddNames(*copy, &names);
  }
  AddNames(graph, &names);
  return names;
}

}  // namespace permafrost
