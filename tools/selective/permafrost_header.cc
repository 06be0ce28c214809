// Looks up the kernels and schemas of nodes, and writes the header.
#include "tools/selective/permafrost_header.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/nearest.h"
#include "graph/base/selection.h"
#include "graph/ops/op_schema.h"
#include "graph/wire_format/node_def.h"
#include "runtime_check/kernel.h"

namespace permafrost {
namespace {

// Type numbers fit a 64-bit mask.
constexpr int kMostTypes = 64;

const AttrValue* FindValue(const ModelNode& node, Op op, absl::string_view key) {
  for (const Attr& attr : node.attrs) {
    if (attr.key == key) return &attr.value;
  }
  return DefaultAttr(op, key);
}

// Returns the types in a value; none if the value is not a type.
std::vector<DType> TypesIn(const AttrValue& value) {
  std::vector<DType> types;
  if (const absl::StatusOr<DType> type = value.AsType(); type.ok()) {
    types = {*type};
  } else if (absl::StatusOr<std::vector<DType>> list = value.AsTypeList(); list.ok()) {
    types = *std::move(list);
  }
  for (DType& type : types) type = RemoveRef(type);
  return types;
}

// Returns whether the session runs the op without a kernel.
bool NeedsNoKernel(Op op) {
  return op == ops::kConst || op == ops::kPlaceholder || op == ops::kPlaceholderV2 || op == ops::k_Arg ||
         op == ops::k_Retval;
}

std::string Listed(const std::vector<DType>& types) {
  return absl::StrJoin(types, ", ", [](std::string* out, DType type) { absl::StrAppend(out, DTypeName(type)); });
}

uint64_t Mask(const std::set<DType>& types) {
  uint64_t mask = 0;
  for (const DType type : types) {
    const int number = static_cast<int>(type);
    if (number > 0 && number < kMostTypes) mask |= uint64_t{1} << number;
  }
  return mask;
}

std::string Hex(uint64_t mask) { return absl::StrCat("0x", absl::Hex(mask)); }

absl::Status NoKernel(const ModelNode& node) {
  const std::vector<Op> served = KernelOps();
  std::vector<absl::string_view> names;
  for (const Op op : served) names.push_back(op.name());
  return absl::UnimplementedError(absl::StrCat("no kernel for op ", Quoted(node.op), DidYouMean(node.op, names)));
}

}  // namespace

absl::Status Select(const ModelNode& node, Selection* selection) {
  const Op op = Op::Named(node.op);
  const Kernel* kernel = FindKernel(op);
  if (kernel == nullptr && !NeedsNoKernel(op)) return NoKernel(node);
  std::map<std::string, std::set<DType>> by_attr;
  if (kernel != nullptr) {
    for (const TypeConstraint& constraint : kernel->constraints()) {
      const AttrValue* value = FindValue(node, op, constraint.attr);
      std::vector<DType> types;
      if (value != nullptr && value->AsPlaceholder().ok()) {
        types = constraint.types;
      } else if (value != nullptr) {
        types = TypesIn(*value);
      }
      for (const DType type : types) {
        if (std::find(constraint.types.begin(), constraint.types.end(), type) != constraint.types.end()) continue;
        return absl::UnimplementedError(absl::StrCat("no kernel for op ", Quoted(node.op), " with ", constraint.attr,
                                                     " = ", DTypeName(type), ", there are ", Listed(constraint.types)));
      }
      by_attr[constraint.attr].insert(types.begin(), types.end());
    }
  }
  auto& selected = selection->ops[std::string(node.op)];
  std::set<DType>& all = selected[""];
  for (auto& [attr, types] : by_attr) {
    all.insert(types.begin(), types.end());
    selected[attr].merge(types);
  }
  for (const Attr& attr : node.attrs) {
    const std::vector<DType> types = TypesIn(attr.value);
    all.insert(types.begin(), types.end());
  }
  if (const OpSchema* schema = FindSchema(op); schema != nullptr) {
    for (const AttrSpec& attr : schema->attrs) {
      const std::vector<DType> types = attr.has_default ? TypesIn(attr.default_value) : std::vector<DType>();
      all.insert(types.begin(), types.end());
    }
    for (const auto* args : {&schema->inputs, &schema->outputs}) {
      for (const ArgSpec& arg : *args) {
        if (arg.type_attr.empty()) all.insert(arg.type);
      }
    }
  }
  selection->types.insert(all.begin(), all.end());
  return absl::OkStatus();
}

void SelectFunctions(Selection* selection) {
  for (const Op op : {Op(ops::k_Arg), Op(ops::k_Retval), Op(ops::kPartitionedCall)}) {
    selection->ops[std::string(op.name())];
  }
}

std::string PermafrostHeader(const Selection& selection, absl::string_view command) {
  std::string ops, op_types;
  for (const auto& [op, attrs] : selection.ops) {
    absl::StrAppend(&ops, "    \"", absl::CEscape(op), "\",\n");
    for (const auto& [attr, types] : attrs) {
      if (attr.empty() && types.empty()) continue;
      absl::StrAppend(&op_types, "    {\"", absl::CEscape(op), "\", \"", attr, "\", ", Hex(Mask(types)), "},  // ",
                      Listed({types.begin(), types.end()}), "\n");
    }
  }
  std::string signatures;
  for (const auto& [op, types, attrs] : selection.signatures) {
    absl::StrAppend(&signatures, "    {\"", absl::CEscape(op), "\", \"", types, "\", \"", absl::CEscape(attrs),
                    "\"},\n");
  }
  if (!signatures.empty()) {
    signatures = absl::StrCat(
        "#define PERMAFROST_PROGRAM_SIGNATURES\n\n"
        "// The steps of program files: op, types of the inputs and outputs, attributes in wire form.\n"
        "struct Signature {\n"
        "  const char* op;\n"
        "  const char* types;\n"
        "  const char* attrs;\n"
        "};\n"
        "inline constexpr Signature kSignatures[] = {\n",
        signatures, "};\n\n");
  }
  const std::string hint = absl::StrCat(
      "; this build holds only what its models need: to add one, make ops_to_register.h again with ", command);
  return absl::StrCat(
      "// Which ops and element types a selective build of Permafrost holds; made by\n"
      "// print_selective_registration_header.\n"
      "#ifndef OPS_TO_REGISTER\n"
      "#define OPS_TO_REGISTER\n"
      "\n"
      "#define PERMAFROST_OPS_TO_REGISTER ",
      selection::kVersion,
      "\n"
      "\n"
      "namespace permafrost {\n"
      "namespace ops_to_register {\n"
      "\n"
      "// Bit N stands for the element type of number N: ",
      Listed({selection.types.begin(), selection.types.end()}),
      ".\n"
      "inline constexpr unsigned long long kTypes = ",
      Hex(Mask(selection.types)),
      ";\n"
      "\n"
      "inline constexpr const char* kOps[] = {\n",
      ops,
      "};\n"
      "\n"
      "struct OpTypes {\n"
      "  const char* op;\n"
      "  const char* attr;\n"
      "  unsigned long long types;\n"
      "};\n"
      "inline constexpr OpTypes kOpTypes[] = {\n",
      op_types,
      "    {\"\", \"\", 0},\n"
      "};\n"
      "\n",
      signatures, "inline constexpr char kHint[] =\n    \"", absl::CEscape(hint),
      "\";\n"
      "\n"
      "}  // namespace ops_to_register\n"
      "}  // namespace permafrost\n"
      "\n"
      "#endif\n");
}

}  // namespace permafrost
