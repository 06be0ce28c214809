// What all formats ask of a model.
#include "io/model_format.h"

#include <algorithm>

namespace permafrost {

bool LooksLikeText(const ModelSource& source) {
  return std::none_of(source.head.bytes.begin(), source.head.bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\v') || byte == 0x7f;
  });
}

}  // namespace permafrost
