// Writes and reads pairs of op and kernel class.
#include "tools/selective/tensorflow_header.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/wire_format/node_def.h"
#include "io/formats/json_value.h"
#include "tools/command_line/json.h"

namespace permafrost {
namespace {

constexpr char kTop[] =
    "// Which ops and kernels TensorFlow registers; made by print_selective_registration_header.\n"
    "#ifndef OPS_TO_REGISTER\n"
    "#define OPS_TO_REGISTER\n";
constexpr char kBottom[] = "#endif\n";

// A binary search, so that a long list does not exceed the recursion depth that compilers evaluate.
constexpr char kFunctions[] = R"(
namespace ops_to_register {
namespace {

// The first character of x that is not a blank.
constexpr const char* AfterBlanks(const char* x) { return *x == ' ' ? AfterBlanks(x + 1) : x; }

constexpr bool AreSame(const char* x, const char* y);
constexpr bool StartSame(const char* x, const char* y) { return *x == *y && (*x == '\0' || AreSame(x + 1, y + 1)); }
// Equal, blanks aside.
constexpr bool AreSame(const char* x, const char* y) { return StartSame(AfterBlanks(x), AfterBlanks(y)); }

// x is one of list[first, last).
constexpr bool IsListed(const char* x, const char* const* list, int first, int last) {
  return last - first == 0   ? false
         : last - first == 1 ? AreSame(x, list[first])
                             : IsListed(x, list, first, first + (last - first) / 2) ||
                                   IsListed(x, list, first + (last - first) / 2, last);
}

)";

void AppendList(absl::string_view name, const std::vector<std::string>& texts, std::string* out) {
  absl::StrAppend(out, "constexpr int kNum", name, " = ", texts.size(), ";\nconstexpr const char* k", name, "[] = {\n");
  for (const std::string& text : texts) absl::StrAppend(out, "    \"", absl::CEscape(text), "\",\n");
  // An array must have at least one element.
  absl::StrAppend(out, texts.empty() ? "    nullptr,\n" : "", "};\n\n");
}

}  // namespace

std::string TensorFlowHeader(const OpsAndKernels& pairs) {
  std::vector<std::string> ops, kernels;
  std::set<std::string> seen;
  bool has_gradient = false;
  for (const OpAndKernel& pair : pairs) {
    if (ops.empty() || ops.back() != pair.op) ops.push_back(pair.op);
    if (pair.kernel.has_value() && seen.insert(*pair.kernel).second) kernels.push_back(*pair.kernel);
    if (pair.op == "SymbolicGradient") has_gradient = true;
  }
  std::string out = absl::StrCat(kTop, kFunctions);
  AppendList("Ops", ops, &out);
  AppendList("Kernels", kernels, &out);
  absl::StrAppend(
      &out,
      "}  // namespace\n"
      "}  // namespace ops_to_register\n"
      "\n"
      "#define SHOULD_REGISTER_OP(op) \\\n"
      "  (::ops_to_register::IsListed(op, ::ops_to_register::kOps, 0, ::ops_to_register::kNumOps))\n"
      "#define SHOULD_REGISTER_OP_KERNEL(clz) \\\n"
      "  (::ops_to_register::IsListed(clz, ::ops_to_register::kKernels, 0, ::ops_to_register::kNumKernels))\n"
      "#define SHOULD_REGISTER_OP_GRADIENT ",
      has_gradient ? "true" : "false", "\n", kBottom);
  return out;
}

std::string TensorFlowHeaderOfAll() {
  return absl::StrCat(kTop,
                      "#define SHOULD_REGISTER_OP(op) true\n"
                      "#define SHOULD_REGISTER_OP_KERNEL(clz) true\n"
                      "#define SHOULD_REGISTER_OP_GRADIENT true\n",
                      kBottom);
}

absl::StatusOr<OpsAndKernels> ParseDefaultOps(absl::string_view text) {
  OpsAndKernels pairs;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size() && !text.empty(); ++i) {
    if (i < text.size() && text[i] == '<') ++depth;
    if (i < text.size() && text[i] == '>' && depth > 0) --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    const absl::string_view piece = text.substr(begin, i - begin);
    const size_t colon = piece.find(':');
    if (colon == absl::string_view::npos || colon == 0 || colon + 1 == piece.size()) {
      return absl::InvalidArgumentError(absl::StrCat("found ", Quoted(piece), ", expected op:kernel"));
    }
    pairs.insert({std::string(piece.substr(0, colon)), std::string(piece.substr(colon + 1))});
    begin = i + 1;
  }
  return pairs;
}

absl::StatusOr<OpsAndKernels> ParseOpsList(absl::string_view text) {
  PF_ASSIGN_OR_RETURN(const JsonValue list, ParseJson(text));
  const absl::Status bad = absl::InvalidArgumentError("expected a JSON array of pairs [\"op\", \"kernel\"]");
  if (list.kind != JsonValue::Kind::kArray) return bad;
  OpsAndKernels pairs;
  for (const JsonValue& item : list.items) {
    if (item.kind != JsonValue::Kind::kArray || item.items.size() != 2) return bad;
    const JsonValue& op = item.items[0];
    const JsonValue& kernel = item.items[1];
    const bool has_kernel = kernel.kind == JsonValue::Kind::kText;
    if (op.kind != JsonValue::Kind::kText || (!has_kernel && kernel.kind != JsonValue::Kind::kNull)) return bad;
    pairs.insert(
        {op.text, has_kernel && !kernel.text.empty() ? std::optional<std::string>(kernel.text) : std::nullopt});
  }
  return pairs;
}

std::string OpsList(const OpsAndKernels& pairs) {
  std::string out = "[";
  for (const OpAndKernel& pair : pairs) {
    absl::StrAppend(&out, out.size() == 1 ? "\n" : ",\n", "  [", JsonQuoted(pair.op), ", ",
                    pair.kernel.has_value() ? JsonQuoted(*pair.kernel) : "null", "]");
  }
  return absl::StrCat(out, "\n]\n");
}

}  // namespace permafrost
