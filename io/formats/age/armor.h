// The armoured form of age files (strict PEM), for channels that only transfer text.
#ifndef PERMAFROST_IO_FORMATS_AGE_ARMOR_H_
#define PERMAFROST_IO_FORMATS_AGE_ARMOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "io/model_format.h"

namespace permafrost::age {

// True if text with this beginning may be armoured.
bool IsArmored(absl::string_view beginning);

// Decodes an armoured file to binary. Accepts white space before and after it, and line feeds with or without carriage
// returns; the rest must be in canonical form. Returns DataLoss with the line.
absl::StatusOr<std::string> Dearmor(absl::string_view text);

// Returns a filter that converts a binary file to text and writes it to `out`, which it does not own.
std::unique_ptr<FilterSink> ArmorInto(ByteSink* out);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_ARMOR_H_
