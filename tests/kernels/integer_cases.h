// Recorded cases of quantised operators: the files of integer_vectors/ (make_integer_vectors.py describes them).
#ifndef PERMAFROST_TESTS_KERNELS_INTEGER_CASES_H_
#define PERMAFROST_TESTS_KERNELS_INTEGER_CASES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime_check/kernels/integer/integer_arithmetic.h"

namespace permafrost {

struct IntegerOperand {
  bool is_present = false;
  std::string type;  // "int8", "float32", ...
  std::vector<int64_t> shape;
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  int axis = 0;
  std::string bytes;  // Aligned for any element. Zeros for variables.

  bool is_quantized() const { return !scales.empty(); }
  int64_t num_elements() const;
  int64_t dim(int i) const { return shape[i < 0 ? shape.size() + i : i]; }
  Affine affine() const;
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
};

struct IntegerCase {
  std::string op, name;
  std::map<std::string, double> options;
  std::vector<IntegerOperand> inputs, intermediates;
  IntegerOperand output;

  double option(const std::string& option) const;
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i].is_present; }
};

// Reads all cases; exits with a message if a file is malformed.
std::vector<IntegerCase> ReadIntegerCases();

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_KERNELS_INTEGER_CASES_H_
