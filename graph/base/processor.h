// What the processor at hand can do.
#ifndef PERMAFROST_GRAPH_BASE_PROCESSOR_H_
#define PERMAFROST_GRAPH_BASE_PROCESSOR_H_

namespace permafrost {

// Of x86-64, beyond SSE2. Each with what compilers take for granted with it.
struct InstructionSets {
  bool avx2 = false;      // AVX and AVX2.
  bool avx2_fma = false;  // And fused multiply-add.
  bool avx512 = false;    // AVX-512 F, VL, DQ and BW.
};

// Those that both the processor and the system have; none on another architecture. Asks each time: a few hundred
// cycles.
InstructionSets SupportedInstructionSets();

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_PROCESSOR_H_
