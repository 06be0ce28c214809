// The table of kernels, from the list that the build generates, and the check of a node against it.
#include "runtime_check/kernel.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/selection.h"
#include "graph/status.h"

namespace permafrost {

#define KERNEL(op) DEFINE_KERNEL(op);
#include "runtime_check/kernel_list.inc"
#undef KERNEL

namespace {

// A kernel that is made when somebody asks for it: a model needs a few of hundreds.
class LateKernel {
 public:
  explicit LateKernel(Kernel (*define)()) : define_(define) {}

  const Kernel& Get() {
    const Kernel* known = made_.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto made = std::make_unique<const Kernel>(define_());
    // Another thread may have been faster: everybody is to see the same.
    if (!made_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return *known;
    return *made.release();
  }

 private:
  Kernel (*const define_)();
  std::atomic<const Kernel*> made_{nullptr};
};

using KernelTable = absl::flat_hash_map<Op, LateKernel*>;

const KernelTable& AllKernels() {
  static const auto* const kTable = [] {
    auto* table = new KernelTable;
    auto* kernels = new std::deque<LateKernel>;
#define KERNEL(op) \
  if constexpr (selection::HoldsOp(#op)) table->emplace(ops::k##op, &kernels->emplace_back(&KernelDefinition_##op));
#include "runtime_check/kernel_list.inc"
#undef KERNEL
    return table;
  }();
  return *kTable;
}

// The types that a type attribute names, be it one or a list.
absl::StatusOr<std::vector<DType>> TypesIn(const Node& node, const std::string& attr) {
  const AttrValue* value = node.FindAttr(attr);
  if (value != nullptr && value->kind() == AttrValue::Kind::kList) return TypeListAttr(node, attr);
  PF_ASSIGN_OR_RETURN(const DType type, TypeAttr(node, attr));
  return std::vector<DType>{type};
}

// " with T = float": what a selective build would need besides the op. Nothing in a build that holds all types, where
// they make no difference.
std::string NeededTypes(const Node& node) {
  std::string text;
  if (!selection::kIsSelective) return text;
  for (const Attr& attr : node.attrs()) {
    const absl::StatusOr<DType> type = attr.value.AsType();
    if (type.ok()) absl::StrAppend(&text, text.empty() ? " with " : ", ", attr.key, " = ", DTypeName(*type));
  }
  return text;
}

// Whether the build holds the op for a type that its kernel knows. A kernel from elsewhere is not of the build.
bool IsHeld(Op op, const std::string& attr, DType type) {
  if constexpr (!selection::kIsSelective) return true;
  const absl::string_view name = op.name();  // Abseil's own type in any other build.
  const selection::TypeSet types = selection::TypesOf(std::string_view(name.data(), name.size()), attr);
  return !op.is_known() || types == selection::kAllTypes || (types & selection::SetOf(static_cast<int>(type))) != 0;
}

}  // namespace

const Kernel* FindKernel(Op op) {
  const auto found = AllKernels().find(op);
  return found == AllKernels().end() ? nullptr : &found->second->Get();
}

std::vector<Op> KernelOps() {
  std::vector<Op> ops;
  for (const auto& [op, kernel] : AllKernels()) ops.push_back(op);
  std::sort(ops.begin(), ops.end(), [](Op a, Op b) { return a.name() < b.name(); });
  return ops;
}

absl::Status CheckKernel(const Node& node) { return CheckKernel(node, FindKernel(node.op())); }

absl::Status CheckKernel(const Node& node, const Kernel* kernel) {
  if (kernel == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no kernel for op '", node.op().name(), "'", NeededTypes(node)));
  }
  for (const TypeConstraint& constraint : kernel->constraints()) {
    PF_ASSIGN_OR_RETURN(const std::vector<DType> types, TypesIn(node, constraint.attr));
    for (const DType type : types) {
      const DType base = RemoveRef(type);
      if (std::find(constraint.types.begin(), constraint.types.end(), base) != constraint.types.end()) {
        if (IsHeld(node.op(), constraint.attr, base)) continue;
        return absl::UnimplementedError(absl::StrCat("no kernel for op '", node.op().name(), "' with ",
                                                     constraint.attr, " = ", DTypeName(type), " in this build"));
      }
      return absl::UnimplementedError(absl::StrCat(
          "no kernel for op '", node.op().name(), "' with ", constraint.attr, " = ", DTypeName(type), ", expected ",
          absl::StrJoin(constraint.types, ", ",
                        [](std::string* out, DType dtype) { absl::StrAppend(out, DTypeName(dtype)); })));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DType>> InputTypesFor(const Node& node, const Kernel* kernel) {
  if (kernel == nullptr || !kernel->signature().has_value()) return InputTypes(node);
  return ResolveTypes(node, kernel->signature()->inputs);
}

absl::StatusOr<std::vector<DType>> OutputTypesFor(const Node& node, const Kernel* kernel) {
  if (kernel == nullptr || !kernel->signature().has_value()) return OutputTypes(node);
  return ResolveTypes(node, kernel->signature()->outputs);
}

}  // namespace permafrost
