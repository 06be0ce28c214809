// Implements strict base64 and bech32.
#include "io/formats/age/encoding.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "io/locked_memory.h"

namespace permafrost::age {
namespace {

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char kBech32[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
constexpr size_t kChecksumCharacters = 6;

int Base64Value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

// Returns the value of a character, or 255. Compares with the whole alphabet, so that the time does not depend on `c`.
uint8_t Bech32Value(char c) {
  uint32_t value = 255;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t difference = static_cast<uint8_t>(kBech32[i]) ^ static_cast<uint8_t>(c);
    const uint32_t is_equal = (difference - 1) >> 31;  // 1 if the difference is 0, otherwise 0.
    value ^= (value ^ i) & (0 - is_equal);
  }
  return static_cast<uint8_t>(value);
}

// The checksum's polynomial over GF(32), from BIP 173.
class Checksum {
 public:
  explicit Checksum(absl::string_view prefix) {
    for (const char c : prefix) Add(static_cast<uint8_t>(c) >> 5);
    Add(0);
    for (const char c : prefix) Add(static_cast<uint8_t>(c) & 31);
  }
  void Add(uint32_t value) {
    constexpr uint32_t kGenerator[] = {0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3};
    const uint32_t top = state_ >> 25;
    state_ = (state_ & 0x1ffffff) << 5 ^ value;
    for (int i = 0; i < 5; ++i) state_ ^= kGenerator[i] & (0 - (top >> i & 1));
  }
  uint32_t state() const { return state_; }

 private:
  uint32_t state_ = 1;
};

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(what); }

}  // namespace

std::string Base64(absl::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  uint32_t bits = 0;
  int count = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(byte);
    for (count += 8; count >= 6; count -= 6) text.push_back(kBase64[bits >> (count - 6) & 63]);
  }
  if (count > 0) text.push_back(kBase64[bits << (6 - count) & 63]);
  return text;
}

absl::StatusOr<std::string> FromBase64(absl::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int value = Base64Value(c);
    if (value < 0) {
      return Bad(c == '=' ? "found base64 with '=', expected none"
                          : "found a character that is not of base64, expected letters, digits, '+' and '/'");
    }
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count));
  }
  if (count >= 6) return Bad("found base64 that is truncated within a byte");
  if ((bits & ((1u << count) - 1)) != 0) return Bad("found base64 whose unused bits are not zero");
  return bytes;
}

std::string Bech32(absl::string_view prefix, absl::string_view bytes) {
  std::string text = absl::StrCat(prefix, "1");
  text.reserve(text.size() + (bytes.size() * 8 + 4) / 5 + kChecksumCharacters);
  Checksum checksum(prefix);
  const auto add = [&](uint32_t value) {
    checksum.Add(value);
    text.push_back(kBech32[value]);
  };
  uint32_t bits = 0;
  int count = 0;
  for (const char byte : bytes) {
    bits = (bits << 8 | static_cast<uint8_t>(byte)) & 0xffff;
    for (count += 8; count >= 5; count -= 5) add(bits >> (count - 5) & 31);
  }
  if (count > 0) add(bits << (5 - count) & 31);
  for (size_t i = 0; i < kChecksumCharacters; ++i) checksum.Add(0);
  const uint32_t sum = checksum.state() ^ 1;
  for (size_t i = 0; i < kChecksumCharacters; ++i) {
    text.push_back(kBech32[sum >> (5 * (kChecksumCharacters - 1 - i)) & 31]);
  }
  return text;
}

absl::StatusOr<Bech32Text> FromBech32(absl::string_view text) {
  bool has_lower = false, has_upper = false;
  for (const char c : text) {
    if (c < 0x21 || c > 0x7e) return Bad("found a character that is not printable, expected bech32");
    has_lower |= absl::ascii_islower(static_cast<unsigned char>(c));
    has_upper |= absl::ascii_isupper(static_cast<unsigned char>(c));
  }
  if (has_lower && has_upper) return Bad("found lower and upper case mixed, expected bech32");
  const size_t separator = text.rfind('1');
  if (separator == absl::string_view::npos || separator == 0) return Bad("found no prefix, expected bech32");
  if (text.size() - separator - 1 < kChecksumCharacters) return Bad("found too few characters, expected bech32");
  Bech32Text result;
  result.prefix = absl::AsciiStrToLower(text.substr(0, separator));
  Checksum checksum(result.prefix);
  const absl::string_view data = text.substr(separator + 1);
  result.bytes.reserve(data.size());  // Reserved once, so that no reallocation leaves a copy of a key behind.
  uint32_t bits = 0;
  int count = 0;
  bool is_known = true;
  for (size_t i = 0; i < data.size(); ++i) {
    const char c = data[i];
    const uint8_t value = Bech32Value(static_cast<char>(c | ((c >= 'A' && c <= 'Z') ? 0x20 : 0)));
    is_known &= value < 32;
    checksum.Add(value & 31);
    if (i >= data.size() - kChecksumCharacters) continue;
    bits = (bits << 5 | (value & 31)) & 0xfff;
    count += 5;
    if (count < 8) continue;
    count -= 8;
    result.bytes.push_back(static_cast<char>(bits >> count));
  }
  const bool is_canonical = count < 5 && (bits & ((1u << count) - 1)) == 0;
  if (is_known && checksum.state() == 1 && is_canonical) return result;
  Wipe(result.bytes.data(), result.bytes.size());
  if (!is_known) return Bad("found a character that is not of bech32");
  if (checksum.state() != 1) return Bad("found a wrong checksum: a character is wrong or missing");
  return Bad("found bech32 that is truncated within a byte or has non-zero unused bits");
}

}  // namespace permafrost::age
