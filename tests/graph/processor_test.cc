// Compares the detected instruction sets with the compiler's __builtin_cpu_supports.
#include "graph/base/processor.h"

#include <gtest/gtest.h>

namespace permafrost {
namespace {

TEST(ProcessorTest, AgreesWithTheCompiler) {
  const InstructionSets found = SupportedInstructionSets();
#if defined(__x86_64__)
  EXPECT_EQ(found.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(found.avx2_fma, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(found.avx512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"));
#else
  EXPECT_FALSE(found.avx2 || found.avx2_fma || found.avx512);
#endif
}

}  // namespace
}  // namespace permafrost
