// Lines of calibration files with the codes of constants that were chosen by runs on inputs, which quantize_weights
// reads.
//
// A line for each constant, with fields separated by blanks, of which the last three are base64 of little-endian
// numbers:
//
//   @rounded NAME BITS BLOCK BIAS RANGES CORRECTIONS CODES
//
// BITS is 4 or 8. BLOCK is the parameter `block` of quantize_weights for which the codes are, or 0. BIAS is the
// constant that is added behind the operator and takes the corrections, or "-". RANGES are floats, one for each
// channel: the range of Dequantize, of which a code is 1/127 or, with four bits, 16/127; or one for each block: the
// scale of a code. CODES are int8, in the order of the constant's elements. Other lines are those of other passes.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_ROUNDED_CONSTANTS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_ROUNDED_CONSTANTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// How codes are chosen.
enum class RoundingMethod : uint8_t {
  kNearest,     // Each weight by itself.
  kGptq,        // One input at a time; later weights compensate (Frantar et al. 2022, arXiv:2210.17323).
  kAdaRound,    // The better of the two next codes of each weight, by coordinate descent on the objective of AdaRound
                // (Nagel et al. 2020, arXiv:2004.10568, equation 20) instead of a relaxation.
  kDescent,     // From the codes of kGptq, coordinate descent over all codes.
  kSequential,  // kDescent, for one operator after the other, with the inputs that it has in the model so far.
};

// Returns the method of RoundingMethodNames(); InvalidArgument for other names.
absl::StatusOr<RoundingMethod> ParseRoundingMethod(absl::string_view name);
std::vector<std::string> RoundingMethodNames();

struct RoundedConstant {
  int bits = 8;
  int64_t block = 0;
  std::string bias;                // Empty: none.
  std::vector<float> ranges;       // By channel, or by block in the order of WeightBlocks::ScaleOf.
  std::vector<float> corrections;  // To be added to the bias, by channel.
  std::vector<int8_t> codes;
};

// The step between two codes, relative to the range of a channel.
constexpr double UnitOfRange(int bits) { return bits == 4 ? 16 / 127.0 : 1 / 127.0; }

// The rounded constants of a calibration file.
class RoundedConstants {
 public:
  // InvalidArgument, with the number of the line, if a line of this kind has another form, numbers that are not finite
  // or ranges that are not positive; or if there is none. A later line replaces an earlier one for the same constant,
  // bits and block.
  static absl::StatusOr<RoundedConstants> Parse(absl::string_view text);

  // Returns null if there is none.
  const RoundedConstant* Find(absl::string_view constant, int bits, int64_t block) const;
  bool empty() const { return constants_.empty(); }

 private:
  absl::flat_hash_map<std::string, RoundedConstant> constants_;
};

// Returns the line, with its newline. Empty if the name contains a blank, which no line can have.
std::string RoundedConstantLine(absl::string_view name, const RoundedConstant& constant);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_ROUNDED_CONSTANTS_H_
