// Numbers at which code that takes any number fails: ends of types, numbers beyond the memory, and no numbers.
#ifndef PERMAFROST_TESTS_FUZZ_EXTREMES_H_
#define PERMAFROST_TESTS_FUZZ_EXTREMES_H_

#include <cstdint>
#include <limits>

namespace permafrost {

inline constexpr int64_t kExtremeIntegers[] = {0,
                                               -1,
                                               -2,
                                               7,
                                               1000,
                                               std::numeric_limits<int32_t>::max(),
                                               std::numeric_limits<int32_t>::min(),
                                               int64_t{1} << 31,
                                               int64_t{1} << 40,
                                               std::numeric_limits<int64_t>::max(),
                                               std::numeric_limits<int64_t>::min()};

inline constexpr float kExtremeFloats[] = {0,
                                           -1,
                                           1e30f,
                                           -1e30f,
                                           1e-42f,
                                           std::numeric_limits<float>::infinity(),
                                           -std::numeric_limits<float>::infinity(),
                                           std::numeric_limits<float>::quiet_NaN()};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FUZZ_EXTREMES_H_
