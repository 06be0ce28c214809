// StableHLO operators of elements for which LiteRT has kernels. They are only read; TensorFlow's ops have operators of
// TensorFlow Lite.
#include "graph/base/status.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

// Operands have one shape and one type.
absl::Status RequireEqualTypes(const OperatorImport& op) {
  return op.InputType(0) == op.InputType(1) ? absl::OkStatus()
                                            : absl::InvalidArgumentError("has operands of different types");
}

template <ops::OpId kOp>
Results Binary(OperatorImport* op) {
  PF_RETURN_IF_ERROR(RequireEqualTypes(*op));
  return Direct<kOp>(op);
}

Results And(OperatorImport* op) {
  PF_RETURN_IF_ERROR(RequireEqualTypes(*op));
  return op->InputType(0) == DType::kBool ? Direct<ops::kLogicalAnd>(op) : Direct<ops::kBitwiseAnd>(op);
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::STABLEHLO_ADD, 2, 1, Binary<ops::kAddV2>},
    {BuiltinOperator::STABLEHLO_MULTIPLY, 2, 1, Binary<ops::kMul>},
    {BuiltinOperator::STABLEHLO_MAXIMUM, 2, 1, Binary<ops::kMaximum>},
    {BuiltinOperator::STABLEHLO_MINIMUM, 2, 1, Binary<ops::kMinimum>},
    {BuiltinOperator::STABLEHLO_AND, 2, 1, And},
};

}  // namespace

absl::Span<const OperatorRow> StablehloOperators() { return kRows; }

}  // namespace permafrost
