// Field numbers of the messages that the GraphDef codec and the function library encode and decode themselves.
#ifndef PERMAFROST_GRAPH_WIRE_FORMAT_GRAPHDEF_FIELDS_H_
#define PERMAFROST_GRAPH_WIRE_FORMAT_GRAPHDEF_FIELDS_H_

#include <cstdint>

namespace permafrost::graphdef_fields {

// kCertificate is ours (tools/certificate/embedded_certificate.h): far from the fields of GraphDef, with a tag of two
// bytes.
enum Graph : uint32_t { kNode = 1, kLibrary = 2, kVersion = 3, kVersions = 4, kCertificate = 1001 };
enum Node : uint32_t { kName = 1, kOp = 2, kInput = 3, kDevice = 4, kAttr = 5 };
enum MapEntry : uint32_t { kKey = 1, kValue = 2 };
enum NameAttrList : uint32_t { kFunctionName = 1, kFunctionAttr = 2 };
enum ListValue : uint32_t { kListFunction = 9 };

// FunctionDefLibrary and the messages inside it.
enum Library : uint32_t { kFunction = 1, kGradient = 2, kRegisteredGradient = 3 };
enum FunctionDef : uint32_t {
  kSignature = 1,
  kBodyNode = 3,
  kRet = 4,
  kDefinitionAttr = 5,
  kControlRet = 6,
  kArgAttr = 7,
  kResourceArg = 8,
};
enum ArgAttrs : uint32_t { kArgAttrEntry = 1 };
enum OpDef : uint32_t {
  kSignatureName = 1,
  kInputArg = 2,
  kOutputArg = 3,
  kSignatureAttr = 4,
  kIsStateful = 17,
  kControlOutput = 20,
};
enum ArgDef : uint32_t { kArgName = 1, kArgType = 3, kTypeAttr = 4, kNumberAttr = 5, kTypeListAttr = 6, kIsRef = 16 };
enum AttrDef : uint32_t { kAttrName = 1, kAttrType = 2, kDefaultValue = 3 };

}  // namespace permafrost::graphdef_fields

#endif  // PERMAFROST_GRAPH_WIRE_FORMAT_GRAPHDEF_FIELDS_H_
