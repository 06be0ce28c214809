// Selects the transforms for the instruction set of this machine.
#include "runtime_check/delegates/onednn/winograd_loops.h"

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime_check/kernels/inner_loops.h"

namespace permafrost {
namespace onednn {
namespace winograd_sse2 {
extern const absl::Span<const WinogradLoops> kForms;
}
#if defined(__x86_64__)
namespace winograd_avx2 {
extern const absl::Span<const WinogradLoops> kForms;
}
namespace winograd_avx512 {
extern const absl::Span<const WinogradLoops> kForms;
}
#endif

absl::Span<const WinogradLoops> WinogradLoopsFor([[maybe_unused]] const InnerLoops& set) {
#if defined(__x86_64__)
  const absl::string_view name = set.name;
  if (name == "avx512") return winograd_avx512::kForms;
  if (name == "avx2") return winograd_avx2::kForms;
#endif
  return winograd_sse2::kForms;
}

const WinogradLoops* FindWinogradLoops(const WinogradForm& form) {
  for (const WinogradLoops& loops : WinogradLoopsFor(BestInnerLoops())) {
    if (loops.form == form) return &loops;
  }
  return nullptr;
}

}  // namespace onednn
}  // namespace permafrost
