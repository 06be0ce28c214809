// Elementwise operators on codes.
//
// Operators of one 8-bit operand are tables of 256 codes, made once. Those of int16 compute each element, or
// interpolate in a table of 513 entries. Binary operators take rows with a step of 0 or 1 for each operand, as
// kernels/broadcast.h visits them.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_ELEMENTWISE_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_ELEMENTWISE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime_check/kernels/integer/byte_tiles.h"
#include "runtime_check/kernels/integer/integer_arithmetic.h"

namespace permafrost {

enum class UnaryOp : uint8_t {
  kRequantize,  // QUANTIZE of codes: int8, uint8, int16, int32 to int8, uint8, int16.
  kRelu,
  kRelu6,
  kReluN1To1,
  kRelu0To1,
  kLeakyRelu,  // `alpha`
  kHardSwish,  // 8 bits.
  kLogistic,
  kTanh,
  kElu,
  kGelu,
  kGeluApproximate,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kAbs,
  kNeg,
  kSin,
  kCos,
};

// An operator of one operand. Input and output may have different types for kRequantize; other operators keep the type.
class IntegerUnary {
 public:
  static absl::StatusOr<IntegerUnary> Make(UnaryOp op, const Affine& input, const Affine& output, float alpha = 0,
                                           Rounding rounding = Rounding::kTwice);

  // y[i] = op(x[i]) for i in [0, count). Returns InvalidArgument if an element has no result: a negative number of
  // SQRT and RSQRT.
  absl::Status Compute(int64_t count, const void* x, void* y) const;

 private:
  int32_t Evaluate(int32_t code) const;

  UnaryOp op_ = UnaryOp::kRequantize;
  Affine input_, output_;
  CodeRange range_ = {};
  Rounding rounding_ = Rounding::kTwice;
  FixedMultiplier factor_, negative_factor_;
  int32_t negative_sign_ = 1;
  std::vector<int16_t> table_;       // 256 codes of an 8-bit operand, or 513 entries of int16.
  std::vector<uint16_t> sigmoid_;    // For LOGISTIC and TANH of int16.
  std::vector<uint8_t> is_invalid_;  // Codes of an 8-bit operand without a result; empty if all have one.
};

// Floats to codes: round_half_away(x / scale) + zero_point, clamped. NaN becomes the zero point.
void QuantizeFloats(const Affine& output, int64_t count, const float* x, void* y);
// Codes to floats: float(double(scale) * (code - zero_point)).
void DequantizeCodes(const Affine& input, int64_t count, const void* x, float* y);
// One scale for each channel: x has `count` codes of one channel; the product is computed in float.
void DequantizeChannel(const Affine& input, int64_t count, const void* x, float* y);

enum class BinaryOp : uint8_t { kAdd, kSub, kMul, kDiv, kSquaredDifference, kMaximum, kMinimum, kPrelu };

// An operator of two operands. Types: all the same. SQUARED_DIFFERENCE: int8, int16. MAXIMUM and
// MINIMUM choose codes, so all scales are equal. PRELU: the second operand is alpha.
class IntegerBinary {
 public:
  // `powers_of_two`: ADD and SUB of int16 whose scales are powers of two (`pot_scale_int16`).
  static absl::StatusOr<IntegerBinary> Make(BinaryOp op, const Affine& a, const Affine& b, const Affine& output,
                                            FusedActivation activation = FusedActivation::kNone,
                                            bool powers_of_two = false, Rounding rounding = Rounding::kTwice);

  // y[i] = a[i * a_step] op b[i * b_step]; steps are 0 or 1. Returns InvalidArgument at a division by zero.
  absl::Status Compute(int64_t count, const void* a, int64_t a_step, const void* b, int64_t b_step, void* y) const;

 private:
  template <typename T>
  void ComputeSum(int64_t count, const T* a, int64_t a_step, const T* b, int64_t b_step, T* y) const;
  template <typename T>
  void ComputeProduct(int64_t count, const T* a, int64_t a_step, const T* b, int64_t b_step, T* y) const;
  absl::StatusOr<int32_t> Evaluate(int32_t a, int32_t b) const;
  // Sets loop_ if there is one for this operator.
  void SelectLoop();

  ByteBinaryLoop loop_ = nullptr;  // In place of ComputeSum and ComputeProduct.
  ByteBinary bytes_;
  BinaryOp op_ = BinaryOp::kAdd;
  CodeType type_ = CodeType::kInt8;
  Rounding rounding_ = Rounding::kTwice;
  bool powers_of_two_ = false;
  int left_shift_ = 0;
  int32_t a_zero_ = 0, b_zero_ = 0, output_zero_ = 0;
  FixedMultiplier a_factor_, b_factor_, output_factor_;
  CodeRange range_ = {};
};

enum class CompareOp : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

class IntegerComparison {
 public:
  static absl::StatusOr<IntegerComparison> Make(CompareOp op, const Affine& a, const Affine& b);
  void Compute(int64_t count, const void* a, int64_t a_step, const void* b, int64_t b_step, bool* y) const;

 private:
  CompareOp op_ = CompareOp::kEqual;
  Affine a_, b_;
  FixedMultiplier a_factor_, b_factor_;
};

// One input of CONCATENATION of uint8, rescaled in float to the output's scale. int8 and int16 copy codes.
class ConcatenationInput {
 public:
  static absl::StatusOr<ConcatenationInput> Make(const Affine& input, const Affine& output);
  void Compute(int64_t count, const uint8_t* x, uint8_t* y) const;

 private:
  uint8_t table_[256] = {};
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_ELEMENTWISE_H_
