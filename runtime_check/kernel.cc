// The table of kernels, from the list that the build generates, and the check of a node against its kernel.
#include "runtime_check/kernel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"

namespace permafrost {

#define KERNEL(op) DEFINE_KERNEL(op);
#include "runtime_check/kernel_list.inc"
#include "runtime_check/named_kernel_list.inc"
#undef KERNEL

namespace {

// The kernels in this build, by op.
struct KernelRow {
  Op op;
  Kernel (*define)() = nullptr;
};

constexpr auto kRows = [] {
  constexpr size_t kCount =
#define KERNEL(op) +(selection::HoldsOp(#op) ? 1 : 0)
#include "runtime_check/kernel_list.inc"
#undef KERNEL
      ;
  std::array<KernelRow, kCount> rows = {};
  size_t count = 0;
  // Inserts each kernel at its sorted position.
  const auto add = [&](Op op, Kernel (*define)()) {
    size_t i = count++;
    for (; i > 0 && op < rows[i - 1].op; --i) rows[i] = rows[i - 1];
    rows[i].op = op;
    rows[i].define = define;
  };
#define KERNEL(op) \
  if constexpr (selection::HoldsOp(#op)) add(ops::k##op, &KernelDefinition_##op);
#include "runtime_check/kernel_list.inc"
#undef KERNEL
  return rows;
}();

// The kernels of ops without enumerators in this build.
struct NamedKernelRow {
  const char* op = nullptr;
  Kernel (*define)() = nullptr;
};

constexpr auto kNamedRows = [] {
  constexpr size_t kCount =
#define KERNEL(op) +(selection::HoldsOp(#op) ? 1 : 0)
#include "runtime_check/named_kernel_list.inc"
#undef KERNEL
      ;
  std::array<NamedKernelRow, kCount> rows = {};
  [[maybe_unused]] size_t i = 0;
#define KERNEL(op) \
  if constexpr (selection::HoldsOp(#op)) rows[i++] = {#op, &KernelDefinition_##op};
#include "runtime_check/named_kernel_list.inc"
#undef KERNEL
  return rows;
}();

const Kernel* FindNamedKernel(Op op) {
  if constexpr (kNamedRows.empty()) return nullptr;
  // The kernels live as long as the process.
  static const auto* const kKernels = [] {
    auto* kernels = new absl::flat_hash_map<Op, std::unique_ptr<const Kernel>>;
    for (const NamedKernelRow& row : kNamedRows) {
      kernels->emplace(Op::Named(row.op), std::make_unique<const Kernel>(row.define()));
    }
    return kernels;
  }();
  const auto found = kKernels->find(op);
  return found == kKernels->end() ? nullptr : found->second.get();
}

// Returns the types that a type attribute names, either one or a list.
absl::StatusOr<std::vector<DType>> TypesIn(const Node& node, const std::string& attr) {
  const AttrValue* value = node.FindAttr(attr);
  if (value != nullptr && value->kind() == AttrValue::Kind::kList) return TypeListAttr(node, attr);
  PF_ASSIGN_OR_RETURN(const DType type, TypeAttr(node, attr));
  return std::vector<DType>{type};
}

std::string JoinedNames(const std::vector<DType>& types) {
  return absl::StrJoin(types, ", ", [](std::string* out, DType dtype) { absl::StrAppend(out, DTypeName(dtype)); });
}

// Returns " with T = float": the types that a selective build needs in addition to the op. Empty in a build that
// includes all types.
std::string NeededTypes(const Node& node) {
  std::string text;
  if (!selection::kIsSelective) return text;
  for (const Attr& attr : node.attrs()) {
    const absl::StatusOr<DType> type = attr.value.AsType();
    if (type.ok()) absl::StrAppend(&text, text.empty() ? " with " : ", ", attr.key, " = ", DTypeName(*type));
  }
  return text;
}

// Checks the types that the kernel does not constrain against the schema, such as the type of an index or of a result.
absl::Status CheckUnconstrainedTypes(const Node& node, const Kernel& kernel) {
  const OpSchema* schema = FindSchema(node.op());
  if (schema == nullptr || kernel.is_done_by_session()) return absl::OkStatus();
  for (const AttrSpec& spec : schema->attrs) {
    if (spec.allowed_types.empty()) continue;
    const bool is_constrained =
        std::any_of(kernel.constraints().begin(), kernel.constraints().end(),
                    [&](const TypeConstraint& constraint) { return constraint.attr == spec.name; });
    if (is_constrained) continue;
    const absl::StatusOr<std::vector<DType>> types = TypesIn(node, spec.name);
    if (!types.ok()) continue;  // Resolving the types of the tensors reports the error, if one depends on it.
    for (const DType type : *types) {
      if (std::find(spec.allowed_types.begin(), spec.allowed_types.end(), RemoveRef(type)) != spec.allowed_types.end())
        continue;
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": attr '", spec.name, "' is ", DTypeName(type),
                                                     ", expected ", JoinedNames(spec.allowed_types)));
    }
  }
  return absl::OkStatus();
}

// Returns whether the build includes the op for a type that its kernel supports. A kernel from outside the build is not
// checked.
bool IsHeld(Op op, const std::string& attr, DType type) {
  if constexpr (!selection::kIsSelective) return true;
  const absl::string_view name = op.name();  // Abseil's own type in any other build.
  const selection::TypeSet types = selection::TypesOf(std::string_view(name.data(), name.size()), attr);
  return !op.is_known() || types == selection::kAllTypes || (types & selection::SetOf(static_cast<int>(type))) != 0;
}

}  // namespace

const Kernel* FindKernel(Op op) {
  if (!kNamedRows.empty() && !op.is_known()) return FindNamedKernel(op);
  const auto row =
      std::lower_bound(kRows.begin(), kRows.end(), op, [](const KernelRow& row, Op other) { return row.op < other; });
  if (row == kRows.end() || row->op != op) return nullptr;
  // A kernel is created on first use: a model needs only a few of hundreds.
  static std::array<std::atomic<const Kernel*>, kRows.size()> made;
  std::atomic<const Kernel*>& place = made[static_cast<size_t>(row - kRows.begin())];
  const Kernel* known = place.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto kernel = std::make_unique<const Kernel>(row->define());
  // Another thread may have stored a kernel first; all threads must return the same one.
  if (!place.compare_exchange_strong(known, kernel.get(), std::memory_order_acq_rel)) return known;
  return kernel.release();
}

std::vector<Op> KernelOps() {
  std::vector<Op> ops;
  for (const KernelRow& row : kRows) ops.push_back(row.op);
  for (const NamedKernelRow& row : kNamedRows) ops.push_back(Op::Named(row.op));
  std::sort(ops.begin(), ops.end(), [](Op a, Op b) { return a.name() < b.name(); });
  return ops;
}

absl::Status CheckKernel(const Node& node) { return CheckKernel(node, FindKernel(node.op())); }

absl::Status CheckKernel(const Node& node, const Kernel* kernel) {
  if (kernel == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no kernel for op '", node.op().name(), "'", NeededTypes(node)));
  }
  PF_RETURN_IF_ERROR(CheckTypeRelations(node));
  PF_RETURN_IF_ERROR(CheckUnconstrainedTypes(node, *kernel));
  for (const TypeConstraint& constraint : kernel->constraints()) {
    PF_ASSIGN_OR_RETURN(const std::vector<DType> types, TypesIn(node, constraint.attr));
    for (const DType type : types) {
      const DType base = RemoveRef(type);
      if (std::find(constraint.types.begin(), constraint.types.end(), base) != constraint.types.end()) {
        if (IsHeld(node.op(), constraint.attr, base)) continue;
        return absl::UnimplementedError(absl::StrCat("no kernel for op '", node.op().name(), "' with ", constraint.attr,
                                                     " = ", DTypeName(type), " in this build"));
      }
      return absl::UnimplementedError(absl::StrCat("no kernel for op '", node.op().name(), "' with ", constraint.attr,
                                                   " = ", DTypeName(type), ", expected ",
                                                   JoinedNames(constraint.types)));
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
