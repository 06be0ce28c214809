// Loads libraries of kernels, and reads the descriptions of their ops.
#include "runtime_check/custom_ops/custom_ops.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/custom_ops/custom_kernel.h"
#include "runtime_check/delegates/external/partition_view.h"
#include "runtime_check/delegates/external/permafrost_custom_op.h"
#include "runtime_check/delegates/external/shared_library.h"

namespace permafrost {
namespace {

// The data that the entry filled in; destroyed with the last user of the library.
struct LoadedOps {
  ~LoadedOps() {
    if (is_made && ops.value.destroy != nullptr) ops.value.destroy(ops.value.self);
  }

  std::shared_ptr<const SharedLibrary> library;
  Fillable<permafrost_custom_ops> ops;
  bool is_made = false;
};

// The data that a lookup needs.
struct Offer {
  std::vector<std::unique_ptr<CustomKernel>> custom;
  std::map<std::string, Kernel, std::less<>> kernels;  // By op.
};

// Parses "name: float", "name: T", "name: N * float" or "name: list(T)".
absl::StatusOr<ArgSpec> ParseArg(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  ArgSpec arg;
  arg.name = std::string(absl::StripAsciiWhitespace(parts.first));
  absl::string_view type = absl::StripAsciiWhitespace(parts.second);
  if (const size_t star = type.find('*'); star != absl::string_view::npos) {
    arg.number_attr = std::string(absl::StripAsciiWhitespace(type.substr(0, star)));
    type = absl::StripAsciiWhitespace(type.substr(star + 1));
    if (arg.number_attr.empty()) type = "";
  }
  if (absl::StartsWith(type, "list(") && absl::EndsWith(type, ")") && arg.number_attr.empty()) {
    arg.is_type_list = true;
    type = absl::StripAsciiWhitespace(type.substr(5, type.size() - 6));
    arg.type_attr = std::string(type);
  } else if (const absl::StatusOr<DType> known = ParseDType(type); known.ok()) {
    arg.type = *known;
  } else {
    arg.type_attr = std::string(type);
  }
  const bool is_word = !type.empty() && type.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_") == absl::string_view::npos;
  if (arg.name.empty() || !is_word) {
    return absl::InternalError(absl::StrCat("found the argument '", text,
                                            "', expected one like 'x: float', 'x: T', 'x: N * T' or 'x: list(T)'"));
  }
  return arg;
}

absl::StatusOr<std::vector<ArgSpec>> ParseArgs(const char* const* texts) {
  std::vector<ArgSpec> args;
  for (; *texts != nullptr; ++texts) {
    PF_ASSIGN_OR_RETURN(args.emplace_back(), ParseArg(*texts));
  }
  return args;
}

// Returns the kernel that the library's kernel precedes; null if there is none.
absl::StatusOr<const Kernel*> Replaced(Op op) {
  const Kernel* builtin = FindKernel(op);
  // Operators of TensorFlow Lite that are only carried: their schema is Permafrost's, but there is no kernel.
  if (builtin == nullptr && absl::StartsWith(op.name(), "TFLite:")) return builtin;
  const OpSchema* schema = FindSchema(op);
  const bool is_kept = builtin != nullptr ? builtin->is_alias() || builtin->is_done_by_session() ||
                                                builtin->uses_state() || builtin->reads_shapes_only()
                                          : schema != nullptr && (op == ops::kConst || schema->traits != kPure);
  if (!is_kept) return builtin;
  return absl::InvalidArgumentError("it cannot be replaced: the session itself does what it does");
}

absl::Status AddKernel(const permafrost_kernel* from, const std::shared_ptr<LoadedOps>& loaded, Offer* offer) {
  const Op op = Op::Named(from->op);
  if (from->infer_shapes == nullptr) return absl::InternalError("it has no 'infer_shapes'");
  if (from->prepare == nullptr) return absl::InternalError("it has no 'prepare'");
  PF_ASSIGN_OR_RETURN(const Kernel* builtin, Replaced(op));
  const bool is_known = FindSchema(op) != nullptr;
  if (is_known && (from->inputs != nullptr || from->outputs != nullptr)) {
    return absl::InternalError("it has 'inputs' or 'outputs', which are NULL for an op that Permafrost knows");
  }
  if (const auto other = offer->kernels.find(from->op); other != offer->kernels.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", static_cast<const CustomKernel*>(other->second.data())->path, "' offers it already"));
  }
  const auto& custom = offer->custom.emplace_back(
      std::make_unique<CustomKernel>(CustomKernel{from, builtin, loaded->library->path(), loaded}));
  if (is_known) {
    offer->kernels.emplace(from->op, MakeCustomKernel(custom.get()));
    return absl::OkStatus();
  }
  if (from->inputs == nullptr) return absl::InternalError("it has no 'inputs', and Permafrost does not know the op");
  if (from->outputs == nullptr) return absl::InternalError("it has no 'outputs', and Permafrost does not know the op");
  KernelSignature signature;
  PF_ASSIGN_OR_RETURN(signature.inputs, ParseArgs(from->inputs));
  PF_ASSIGN_OR_RETURN(signature.outputs, ParseArgs(from->outputs));
  signature.is_pure = (from->flags & PERMAFROST_STATEFUL) == 0;
  offer->kernels.emplace(from->op, MakeCustomKernel(custom.get()).Signature(std::move(signature)));
  return absl::OkStatus();
}

absl::Status CallEntry(void* symbol, LoadedOps* loaded) {
  const auto entry = reinterpret_cast<permafrost_custom_ops_entry_function>(symbol);
  permafrost_custom_ops& ops = loaded->ops.value;
  ErrorBuffer error;
  const int32_t result = entry(&ExternalHost(), &ops, error.data(), error.size());
  // A version mismatch may be the reason of the failure, so it is reported first.
  if (ops.major != 0) PF_RETURN_IF_ERROR(CheckAbiVersion(ops.major, ops.minor));
  if (const absl::Status status = error.ToStatus(result); !status.ok()) {
    return absl::InternalError(absl::StrCat("permafrost_custom_ops_entry failed: ", status.message()));
  }
  PF_RETURN_IF_ERROR(CheckAbiVersion(ops.major, ops.minor));
  loaded->is_made = true;
  if (ops.num_kernels > 0 && ops.kernels != nullptr) return absl::OkStatus();
  return absl::InternalError("permafrost_custom_ops_entry gives no 'kernels'");
}

absl::Status AddLibrary(const std::string& path, Offer* offer) {
  const auto loaded = std::make_shared<LoadedOps>();
  PF_ASSIGN_OR_RETURN(loaded->library, SharedLibrary::Load(path));
  PF_ASSIGN_OR_RETURN(void* entry, loaded->library->Find("permafrost_custom_ops_entry"));
  PF_RETURN_IF_ERROR(Annotate(CallEntry(entry, loaded.get()), absl::StrCat("'", path, "'")));
  const permafrost_custom_ops& ops = loaded->ops.value;
  for (int32_t i = 0; i < ops.num_kernels; ++i) {
    const permafrost_kernel* kernel = ops.kernels[i];
    if (kernel == nullptr || kernel->op == nullptr || *kernel->op == '\0') {
      return absl::InternalError(absl::StrCat("'", path, "': kernel ", i, " has no 'op'"));
    }
    PF_RETURN_IF_ERROR(
        Annotate(AddKernel(kernel, loaded, offer), absl::StrCat("'", path, "': the kernel of op '", kernel->op, "'")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CustomOps> LoadCustomOps(absl::Span<const std::string> paths) {
  const auto offer = std::make_shared<Offer>();
  for (const std::string& path : paths) PF_RETURN_IF_ERROR(AddLibrary(path, offer.get()));
  const auto find = [offer](Op op, bool may_replace) -> const Kernel* {
    const auto found = offer->kernels.find(op.name());
    if (found == offer->kernels.end()) return FindKernel(op);
    const Kernel* builtin = static_cast<const CustomKernel*>(found->second.data())->builtin;
    return may_replace || builtin == nullptr ? &found->second : builtin;
  };
  return CustomOps{[find](Op op) { return find(op, true); }, [find](Op op) { return find(op, false); }};
}

}  // namespace permafrost
