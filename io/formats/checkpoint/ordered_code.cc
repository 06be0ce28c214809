// Implements the encodings of slice keys.
#include "io/formats/checkpoint/ordered_code.h"

namespace permafrost {

void AppendOrdered(uint64_t value, std::string* out) {
  int size = 0;
  while (size < 8 && value >> (8 * size) != 0) ++size;
  out->push_back(static_cast<char>(size));
  for (int i = size - 1; i >= 0; --i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendOrdered(int64_t value, std::string* out) {
  const bool is_negative = value < 0;
  const uint64_t magnitude = is_negative ? ~static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  // n bytes hold n ones, a zero and 7 n - 1 bits of the number.
  int size = 1;
  while (size < 10 && magnitude >> (7 * size - 1) != 0) ++size;
  // The last `size` of ten bytes are used: the sign-extended number, with the length's ones in front.
  unsigned char bytes[10] = {};
  for (int i = 0; i < 8; ++i) bytes[9 - i] = static_cast<unsigned char>(magnitude >> (8 * i));
  unsigned char* const first = bytes + 10 - size;
  for (int bit = 0; bit < size; ++bit) first[bit / 8] |= static_cast<unsigned char>(0x80 >> (bit % 8));
  for (int i = 0; i < size; ++i) {
    out->push_back(static_cast<char>(is_negative ? ~first[i] : first[i]));
  }
}

void AppendOrdered(absl::string_view text, std::string* out) {
  for (const char c : text) {
    out->push_back(c);
    if (c == '\0') out->push_back('\xff');
    if (c == '\xff') out->push_back('\0');
  }
  out->append({'\0', '\1'});
}

}  // namespace permafrost
