// Age files as text, for channels that take no other: strict PEM.
#ifndef PERMAFROST_IO_FORMATS_AGE_ARMOR_H_
#define PERMAFROST_IO_FORMATS_AGE_ARMOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "io/model_format.h"

namespace permafrost::age {

// Whether the text could be armour, judging by how it begins.
bool IsArmored(absl::string_view beginning);

// The binary file. Takes white space before and after, line feeds with or without a carriage return, and otherwise one
// spelling only. DataLoss names the line.
absl::StatusOr<std::string> Dearmor(absl::string_view text);

// Writes a binary file that is appended as text into `out`, which it does not own.
std::unique_ptr<FilterSink> ArmorInto(ByteSink* out);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_ARMOR_H_
