// Which ops and element types a selective build of Permafrost holds; made by
// print_selective_registration_header.
#ifndef OPS_TO_REGISTER
#define OPS_TO_REGISTER

#define PERMAFROST_OPS_TO_REGISTER 100

namespace permafrost {
namespace ops_to_register {

// Bit N stands for the element type of number N: float, int32.
inline constexpr unsigned long long kTypes = 0xa;

inline constexpr const char* kOps[] = {
    "AvgPool",
    "BiasAdd",
    "ConcatV2",
    "Const",
    "Conv2D",
    "FusedBatchNormV3",
    "Identity",
    "MatMul",
    "MaxPool",
    "Placeholder",
    "Relu",
    "Reshape",
    "Softmax",
};

struct OpTypes {
  const char* op;
  const char* attr;
  unsigned long long types;
};
inline constexpr OpTypes kOpTypes[] = {
    {"AvgPool", "", 0x2},  // float
    {"AvgPool", "T", 0x2},  // float
    {"BiasAdd", "", 0x2},  // float
    {"BiasAdd", "T", 0x2},  // float
    {"ConcatV2", "", 0xa},  // float, int32
    {"ConcatV2", "T", 0x2},  // float
    {"Const", "", 0xa},  // float, int32
    {"Conv2D", "", 0x2},  // float
    {"Conv2D", "T", 0x2},  // float
    {"FusedBatchNormV3", "", 0x2},  // float
    {"FusedBatchNormV3", "T", 0x2},  // float
    {"FusedBatchNormV3", "U", 0x2},  // float
    {"Identity", "", 0x2},  // float
    {"MatMul", "", 0x2},  // float
    {"MatMul", "T", 0x2},  // float
    {"MaxPool", "", 0x2},  // float
    {"MaxPool", "T", 0x2},  // float
    {"Placeholder", "", 0x2},  // float
    {"Relu", "", 0x2},  // float
    {"Relu", "T", 0x2},  // float
    {"Reshape", "", 0xa},  // float, int32
    {"Softmax", "", 0x2},  // float
    {"Softmax", "T", 0x2},  // float
    {"", "", 0},
};

inline constexpr char kHint[] =
    "; this build holds only what its models need: to add one, make ops_to_register.h again with print_selective_registration_header --style=permafrost --graphs=shared/models/inception_v3/model.pb";

}  // namespace ops_to_register
}  // namespace permafrost

#endif
