// Converts between precisions and their names.
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {

absl::string_view NameOf(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return "f32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kInt8:
      return "int8";
    case Precision::kBf16x3:
      return "bf16x3";
  }
  return "";
}

std::optional<Precision> PrecisionNamed(absl::string_view name) {
  for (const Precision precision : kPrecisions) {
    if (NameOf(precision) == name) return precision;
  }
  return std::nullopt;
}

}  // namespace permafrost
