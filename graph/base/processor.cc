// Detects instruction sets with CPUID. The compiler's __builtin_cpu_supports would add 4.5 KB of code for the names of
// processor models.
#include "graph/base/processor.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace permafrost {

#if defined(__x86_64__)

namespace {

// Bits of CPUID (Intel SDM, volume 2, CPUID) and of XCR0, the register state that the system saves (volume 1, chapter
// 13).
constexpr uint32_t kFma = 1u << 12, kSystemSaves = 1u << 27, kAvx = 1u << 28;             // Leaf 1, ECX.
constexpr uint32_t kAvx2 = 1u << 5, kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // Leaf 7, EBX.
constexpr uint32_t kSavesAvx = 1u << 1 | 1u << 2, kSavesAvx512 = kSavesAvx | 1u << 5 | 1u << 6 | 1u << 7;

bool HasAll(uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; }

}  // namespace

InstructionSets SupportedInstructionSets() {
  InstructionSets sets;
  uint32_t a, b, c, d;
  if (__get_cpuid_count(1, 0, &a, &b, &c, &d) == 0 || !HasAll(c, kSystemSaves | kAvx)) return sets;
  const bool has_fma = HasAll(c, kFma);
  uint32_t saved, saved_high;
  __asm__("xgetbv" : "=a"(saved), "=d"(saved_high) : "c"(0));
  if (!HasAll(saved, kSavesAvx) || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return sets;
  sets.avx2 = HasAll(b, kAvx2);
  sets.avx2_fma = sets.avx2 && has_fma;
  sets.avx512 = sets.avx2_fma && HasAll(b, kAvx512) && HasAll(saved, kSavesAvx512);
  return sets;
}

#else

InstructionSets SupportedInstructionSets() { return {}; }

#endif

}  // namespace permafrost
