// Selects the inner loops for the machine.
#include "runtime_check/kernels/inner_loops.h"

#include "graph/base/processor.h"

namespace permafrost {

namespace sse2 {
extern const InnerLoops kTable;
}
namespace avx2 {
extern const InnerLoops kTable;
}
namespace avx512 {
extern const InnerLoops kTable;
}

namespace {

struct Supported {
  Supported() {
    tables[count++] = &sse2::kTable;
#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX2)
    if (SupportedInstructionSets().avx2_fma) tables[count++] = &avx2::kTable;
#endif
#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX512)
    if (SupportedInstructionSets().avx512) tables[count++] = &avx512::kTable;
#endif
  }
  const InnerLoops* tables[3];
  int count = 0;
};

}  // namespace

absl::Span<const InnerLoops* const> SupportedInnerLoops() {
  static const Supported supported;
  return {supported.tables, static_cast<size_t>(supported.count)};
}

const InnerLoops& BestInnerLoops() { return *SupportedInnerLoops().back(); }

}  // namespace permafrost
