// The text form of a tensor's values, as in the output of Print and Assert.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_TEXT_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_TEXT_H_

#include <cstdint>
#include <string>

#include "runtime_check/kernel.h"

namespace permafrost {

// Returns at most `max_elements` values (negative: all) in TensorFlow's format: "1 2 3...", "[[0 1][2...]]...". A float
// has up to 6 digits (a double: 15) if these identify it, and otherwise 9 (17). Strings are escaped as in C; a bool is
// 0 or 1. Complex values and 32-bit codes, which TensorFlow does not show, are "?". Linear in the length of the text.
std::string TextOfValues(const Value& value, int64_t max_elements);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_TEXT_H_
