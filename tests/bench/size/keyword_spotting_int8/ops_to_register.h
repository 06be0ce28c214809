// Which ops and element types a selective build of Permafrost holds; made by
// print_selective_registration_header.
#ifndef OPS_TO_REGISTER
#define OPS_TO_REGISTER

#define PERMAFROST_OPS_TO_REGISTER 100

namespace permafrost {
namespace ops_to_register {

// Bit N stands for the element type of number N: float, int32, int8.
inline constexpr unsigned long long kTypes = 0x4a;

inline constexpr const char* kOps[] = {
    "UniformDequantize",
    "UniformQuantize",
    "_IntegerConv2D",
    "_IntegerDepthwiseConv2dNative",
    "_IntegerMatMul",
    "_IntegerPool",
    "_IntegerSoftmax",
};

struct OpTypes {
  const char* op;
  const char* attr;
  unsigned long long types;
};
inline constexpr OpTypes kOpTypes[] = {
    {"UniformDequantize", "", 0x4a},  // float, int32, int8
    {"UniformDequantize", "Tin", 0x40},  // int8
    {"UniformDequantize", "Tout", 0x2},  // float
    {"UniformQuantize", "", 0x4a},  // float, int32, int8
    {"UniformQuantize", "Tin", 0x2},  // float
    {"UniformQuantize", "Tout", 0x40},  // int8
    {"_IntegerConv2D", "", 0x48},  // int32, int8
    {"_IntegerDepthwiseConv2dNative", "", 0x48},  // int32, int8
    {"_IntegerMatMul", "", 0x48},  // int32, int8
    {"_IntegerPool", "", 0x40},  // int8
    {"_IntegerSoftmax", "", 0x40},  // int8
    {"", "", 0},
};

#define PERMAFROST_PROGRAM_SIGNATURES

// The steps of program files: op, types of the inputs and outputs, attributes in wire form.
struct Signature {
  const char* op;
  const char* types;
  const char* attrs;
};
inline constexpr Signature kSignatures[] = {
    {"UniformDequantize", "6,1,3>1", "Tin:3006 Tout:3001"},
    {"UniformQuantize", "1,1,3>6", "Tin:3001 Tout:3006"},
    {"_IntegerConv2D", "6,6,3>6", "Tin:0a053203060603 Tout:3006"},
    {"_IntegerDepthwiseConv2dNative", "6,6,3>6", "Tin:0a053203060603 Tout:3006"},
    {"_IntegerMatMul", "6,6,3>6", "Tin:0a053203060603 Tout:3006"},
    {"_IntegerPool", "6>6", "Tin:0a03320106 Tout:3006"},
    {"_IntegerSoftmax", "6>6", "Tin:0a03320106 Tout:3006"},
};

inline constexpr char kHint[] =
    "; this build holds only what its models need: to add one, make ops_to_register.h again with print_selective_registration_header --style=permafrost --graphs=keyword_spotting_int8.program";

}  // namespace ops_to_register
}  // namespace permafrost

#endif
