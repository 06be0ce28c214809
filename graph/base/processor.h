// Instruction sets of the current processor.
#ifndef PERMAFROST_GRAPH_BASE_PROCESSOR_H_
#define PERMAFROST_GRAPH_BASE_PROCESSOR_H_

namespace permafrost {

// Instruction sets of x86-64 beyond SSE2. Each includes the extensions that compilers enable along with it.
struct InstructionSets {
  bool avx2 = false;      // AVX and AVX2.
  bool avx2_fma = false;  // AVX2 and fused multiply-add.
  bool avx512 = false;    // AVX-512 F, VL, DQ and BW.
};

// Returns the instruction sets that both the processor and the operating system support; none on other architectures.
// Queries the processor at each call, which takes a few hundred cycles.
InstructionSets SupportedInstructionSets();

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_PROCESSOR_H_
