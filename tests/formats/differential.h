// Compares the GraphDef codec with protobuf's parser.
#ifndef PERMAFROST_TESTS_FORMATS_DIFFERENTIAL_H_
#define PERMAFROST_TESTS_FORMATS_DIFFERENTIAL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace permafrost {

// Reads `bytes` with the codec and with protobuf, and returns a description of the difference, or an empty string. They
// agree if
//   both reject the bytes (the codec with DataLoss),
//   protobuf accepts them, the codec returns InvalidArgument, and the message is indeed not a graph, or
//   both accept them, and the codec's output is equal to protobuf's message.
// In the last case every attribute is decoded too, so that sanitizers can detect invalid accesses.
std::string CompareWithProtobuf(absl::string_view bytes);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FORMATS_DIFFERENTIAL_H_
