// Field numbers of the messages that the GraphDef codec reads and writes itself.
#ifndef PERMAFROST_IO_FORMATS_GRAPHDEF_FIELDS_H_
#define PERMAFROST_IO_FORMATS_GRAPHDEF_FIELDS_H_

#include <cstdint>

namespace permafrost::graphdef_fields {

enum Graph : uint32_t { kNode = 1, kLibrary = 2, kVersion = 3, kVersions = 4 };
enum Node : uint32_t { kName = 1, kOp = 2, kInput = 3, kDevice = 4, kAttr = 5 };
enum MapEntry : uint32_t { kKey = 1, kValue = 2 };

}  // namespace permafrost::graphdef_fields

#endif  // PERMAFROST_IO_FORMATS_GRAPHDEF_FIELDS_H_
