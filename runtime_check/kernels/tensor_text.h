// The text of a tensor's values, as Print and Assert show it.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_TEXT_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_TEXT_H_

#include <cstdint>
#include <string>

#include "runtime_check/kernel.h"

namespace permafrost {

// At most `max_elements` values (negative: all) in TensorFlow's format: "1 2 3...", "[[0 1][2...]]..."; a number with
// as few digits as tell it from its neighbours, if six (a double: 15) do, and else with nine (17); strings escaped as
// in C; a bool as 0 or 1; ? for complex values and codes of 32 bits, which TensorFlow does not show. Linear in what is
// shown.
std::string TextOfValues(const Value& value, int64_t max_elements);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_TEXT_H_
