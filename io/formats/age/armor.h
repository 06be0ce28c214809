// Age files as text, for channels that take no other: strict PEM.
#ifndef PERMAFROST_IO_FORMATS_AGE_ARMOR_H_
#define PERMAFROST_IO_FORMATS_AGE_ARMOR_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost::age {

// Whether the text could be armour, judging by how it begins.
bool IsArmored(absl::string_view beginning);

// The binary file. Takes white space before and after, line feeds with or without a carriage return, and otherwise one
// spelling only. DataLoss names the line.
absl::StatusOr<std::string> Dearmor(absl::string_view text);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_ARMOR_H_
