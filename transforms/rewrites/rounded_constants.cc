// Parses and writes lines of rounded constants.
#include "transforms/rewrites/rounded_constants.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr char kKeyword[] = "@rounded ";

std::string KeyOf(absl::string_view constant, int bits, int64_t block) {
  return absl::StrCat(constant, " ", bits, " ", block);
}

template <typename T>
bool Decode(absl::string_view text, std::vector<T>* numbers) {
  std::string bytes;
  if (!absl::Base64Unescape(text, &bytes) || bytes.size() % sizeof(T) != 0) return false;
  numbers->resize(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(numbers->data(), bytes.data(), bytes.size());
  return true;
}

template <typename T>
std::string Encode(const std::vector<T>& numbers) {
  return absl::Base64Escape(
      absl::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)));
}

bool HasBlank(absl::string_view name) {
  return name.empty() || name.find_first_of(" \t\r\n") != absl::string_view::npos;
}

}  // namespace

std::vector<std::string> RoundingMethodNames() { return {"nearest", "gptq", "adaround", "descent", "sequential"}; }

absl::StatusOr<RoundingMethod> ParseRoundingMethod(absl::string_view name) {
  const std::vector<std::string> names = RoundingMethodNames();
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<RoundingMethod>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("found the rounding '", name, "', expected ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<RoundedConstants> RoundedConstants::Parse(absl::string_view text) {
  constexpr int64_t kMostBlock = 1 << 20;
  RoundedConstants result;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, kKeyword)) continue;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
    RoundedConstant constant;
    const auto malformed = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " of the calibration, of '", line.substr(0, 60),
                                                     "', ", what, ", expected '", kKeyword,
                                                     "NAME BITS BLOCK BIAS RANGES CORRECTIONS CODES'"));
    };
    if (fields.size() != 7) return malformed(absl::StrCat("has ", fields.size(), " fields"));
    if (!absl::SimpleAtoi(fields[1], &constant.bits) || (constant.bits != 4 && constant.bits != 8)) {
      return malformed("has other bits than 4 or 8");
    }
    if (!absl::SimpleAtoi(fields[2], &constant.block) || constant.block < 0 || constant.block > kMostBlock) {
      return malformed("has no valid block");
    }
    if (fields[3] != "-") constant.bias = std::string(fields[3]);
    if (!Decode(fields[4], &constant.ranges) || !Decode(fields[5], &constant.corrections) ||
        !Decode(fields[6], &constant.codes)) {
      return malformed("has malformed base64");
    }
    for (const float range : constant.ranges) {
      if (!std::isfinite(range) || !(range > 0)) return malformed(absl::StrCat("has the range ", range));
    }
    for (const float correction : constant.corrections) {
      if (!std::isfinite(correction)) return malformed(absl::StrCat("has the correction ", correction));
    }
    if (constant.bits == 4) {
      for (const int8_t code : constant.codes) {
        if (code < -8 || code > 7) return malformed(absl::StrCat("has the code ", code));
      }
    }
    result.constants_[KeyOf(fields[0], constant.bits, constant.block)] = std::move(constant);
  }
  if (result.constants_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the calibration has no line '", kKeyword, "...'"));
  }
  return result;
}

const RoundedConstant* RoundedConstants::Find(absl::string_view constant, int bits, int64_t block) const {
  const auto found = constants_.find(KeyOf(constant, bits, block));
  return found == constants_.end() ? nullptr : &found->second;
}

std::string RoundedConstantLine(absl::string_view name, const RoundedConstant& constant) {
  if (HasBlank(name)) return "";
  const bool has_bias = !HasBlank(constant.bias);
  return absl::StrCat(kKeyword, name, " ", constant.bits, " ", constant.block, " ", has_bias ? constant.bias : "-", " ",
                      Encode(constant.ranges), " ", Encode(has_bias ? constant.corrections : std::vector<float>()), " ",
                      Encode(constant.codes), "\n");
}

}  // namespace permafrost
