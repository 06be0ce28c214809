// Holds the GraphDef codec against protobuf's parser.
#ifndef PERMAFROST_TESTS_FORMATS_DIFFERENTIAL_H_
#define PERMAFROST_TESTS_FORMATS_DIFFERENTIAL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace permafrost {

// Reads `bytes` with the codec and with protobuf, and returns how they disagree, or an empty string. They agree when
//   both refuse the bytes (the codec with DataLoss),
//   protobuf takes them, the codec says InvalidArgument and the message is indeed no graph, or
//   both take them and what the codec writes is, as a message, what protobuf read.
// In the last case every attribute is decoded too, for what a sanitizer may find.
std::string CompareWithProtobuf(absl::string_view bytes);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FORMATS_DIFFERENTIAL_H_
