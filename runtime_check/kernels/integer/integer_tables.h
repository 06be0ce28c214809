// Tables of functions of 16-bit codes, interpolated between their entries.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_TABLES_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_TABLES_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime_check/kernels/integer/integer_arithmetic.h"

namespace permafrost {

// Fills a table with f at 513 points over the whole range of int16 codes of the input, as codes of the output; each
// entry is lowered by half of the interpolation's error in the middle of its interval. Computed in float.
void FillTable513(absl::FunctionRef<float(float)> f, const Affine& input, const Affine& output,
                  std::vector<int16_t>* table);
// As above, computed in double, for scales that are no floats.
void FillTable513(absl::FunctionRef<double(double)> f, double input_scale, int32_t input_zero, double output_scale,
                  int32_t output_zero, std::vector<int16_t>* table);

// The high 9 bits of a code select an entry, the low 7 interpolate, rounding half up.
inline int16_t LookUp513(int16_t code, const int16_t* table) {
  const int index = 256 + (code >> 7);
  const int32_t step = table[index + 1] - table[index];
  return static_cast<int16_t>(table[index] + ((step * (code & 127) + 64) >> 7));
}

// Fills the table of LOGISTIC and TANH of int16: the sigmoid of i / 24 for i in [0, 256), in 16 bits.
void FillSigmoidTable(std::vector<uint16_t>* table);

// Computes the factor from codes of int16 to the table's positions, 24 * 512 for each unit (LOGISTIC). `shift` counts
// to the right. Returns InvalidArgument for a scale that is too large.
absl::Status SigmoidInputScale(float scale, bool is_tanh, FixedMultiplier* factor);
int16_t SigmoidByTable(int16_t code, FixedMultiplier factor, const uint16_t* table);
int16_t TanhByTable(int16_t code, FixedMultiplier factor, const uint16_t* table);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_TABLES_H_
