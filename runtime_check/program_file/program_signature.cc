// Compares the types of steps with the signatures that the build lists, or, in a build of everything, with the schemas.
#include "runtime_check/program_file/program_signature.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"

#if defined(PERMAFROST_PROGRAM_FILES) && !defined(PERMAFROST_PROGRAM_SIGNATURES)
#error \
    "ops_to_register.h was not made from program files; make it with print_selective_registration_header from the files that convert_model --to=program writes"
#endif

namespace permafrost {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

// Compares the types of tensors with those that the schema of the op gives.
absl::Status CheckTypes(const ProgramFile& program, const std::vector<int>& tensors,
                        const absl::StatusOr<std::vector<DType>>& expected) {
  PF_RETURN_IF_ERROR(expected.status());
  bool fits = tensors.size() == expected->size();
  for (size_t i = 0; fits && i < tensors.size(); ++i) fits = program.tensors()[tensors[i]].dtype == (*expected)[i];
  return fits ? absl::OkStatus() : absl::DataLossError("the types of the tensors are not those of the op");
}

}  // namespace

std::string TypesText(const ProgramFile& program, const ProgramFileStep& step) {
  std::string text;
  const auto add = [&](const std::vector<int>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ",", static_cast<int>(program.tensors()[tensors[i]].dtype));
    }
  };
  add(step.inputs);
  absl::StrAppend(&text, ">");
  add(step.outputs);
  return text;
}

absl::StatusOr<std::string> SignatureAttrs(const Node& node) {
  const OpSchema* const schema = FindSchema(node.op());
  std::string text;
  if (schema == nullptr) return text;
  std::vector<std::string> keys;
  const auto add_key = [&](const std::string& key) {
    for (const std::string& known : keys) {
      if (known == key) return;
    }
    if (!key.empty()) keys.push_back(key);
  };
  for (const auto* args : {&schema->inputs, &schema->outputs}) {
    for (const ArgSpec& arg : *args) {
      add_key(arg.type_attr);
      add_key(arg.number_attr);
    }
  }
  // Types that no tensor has: of an accumulator, of the result of a cast.
  for (const AttrSpec& attr : schema->attrs) {
    if (attr.kind == AttrValue::Kind::kType) add_key(attr.name);
  }
  for (const std::string& key : keys) {
    const AttrValue* const value = node.FindAttr(key);
    if (value == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": attr '", key, "' is missing"));
    }
    absl::StrAppend(&text, text.empty() ? "" : " ", key, ":");
    for (const char byte : value->Encoded()) {
      text.push_back(kDigits[static_cast<uint8_t>(byte) >> 4]);
      text.push_back(kDigits[byte & 15]);
    }
  }
  return text;
}

bool HasSignatureAttrs(const Node& node, absl::string_view attrs) {
  while (!attrs.empty()) {
    const size_t colon = attrs.find(':'), end = attrs.find(' ');
    const absl::string_view digits = attrs.substr(colon + 1, end - colon - 1);
    const AttrValue* const value = node.FindAttr(attrs.substr(0, colon));
    if (value == nullptr || value->held_tensor() != nullptr || digits.size() != 2 * value->encoded().size()) {
      return false;
    }
    for (size_t i = 0; i < digits.size(); ++i) {
      const auto byte = static_cast<uint8_t>(value->encoded()[i / 2]);
      if (digits[i] != kDigits[i % 2 == 0 ? byte >> 4 : byte & 15]) return false;
    }
    attrs.remove_prefix(end == absl::string_view::npos ? attrs.size() : end + 1);
  }
  return true;
}

absl::Status CheckSignature(const ProgramFile& program, const ProgramFileStep& step, const Kernel* kernel) {
#ifdef PERMAFROST_PROGRAM_FILES
  if (kernel != nullptr) {
    const absl::string_view op = step.node->op().name();
    const std::string types = TypesText(program, step);
    for (const ops_to_register::Signature& row : ops_to_register::kSignatures) {
      if (op == row.op && types == row.types && HasSignatureAttrs(*step.node, row.attrs)) return absl::OkStatus();
    }
  }
  return absl::UnimplementedError(absl::StrCat("no kernel for this op and its types in this build", selection::kHint));
#else
  const absl::Status status = CheckKernel(*step.node, kernel);
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(status.message(), selection::kHint));
  PF_RETURN_IF_ERROR(CheckTypes(program, step.inputs, InputTypesFor(*step.node, kernel)));
  return CheckTypes(program, step.outputs, OutputTypesFor(*step.node, kernel));
#endif
}

}  // namespace permafrost
