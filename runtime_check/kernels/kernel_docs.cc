// Writes the definitions of kernels as Markdown.
#include "runtime_check/kernels/kernel_docs.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime_check/kernel.h"

namespace permafrost {
namespace {

std::string TypesOf(const Kernel& kernel) {
  return absl::StrJoin(kernel.constraints(), "; ", [](std::string* out, const TypeConstraint& constraint) {
    absl::StrAppend(out, "`", constraint.attr,
                    "`: ", absl::StrJoin(constraint.types, " ", [](std::string* types, DType dtype) {
                      absl::StrAppend(types, DTypeName(dtype));
                    }));
  });
}

}  // namespace

std::string KernelDocs() {
  const std::vector<Op> ops = KernelOps();
  std::string page = absl::StrCat(
      "# Kernels\n\nThe ", ops.size(),
      " ops that the reference runtime supports, with the result of each op and the supported values of its type "
      "attributes.\nThe session handles Const, Placeholder and fed inputs. Generated from the definitions in "
      "`runtime_check/kernels/`.\n\n| op | computes | types |\n|---|---|---|\n");
  for (const Op op : ops) {
    const Kernel& kernel = *FindKernel(op);
    absl::StrAppend(&page, "| ", op.name(), " | ", absl::StrReplaceAll(kernel.formula(), {{"|", "\\|"}}), " | ",
                    TypesOf(kernel), " |\n");
  }
  return page;
}

}  // namespace permafrost
