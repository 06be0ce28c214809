// Operators that draw random numbers. TensorFlow's ops of the same name give the same numbers for the same seeds.
#include "graph/base/status.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

absl::StatusOr<OperatorImport::Attrs> Seeds(const OperatorImport& op) {
  const auto* options = op.op().builtin_options_as<tflite::RandomOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  return OperatorImport::Attrs{{"seed", AttrValue::Int(options->seed())}, {"seed2", AttrValue::Int(options->seed2())}};
}

// Operand: the shape of the result.
template <ops::OpId kOp>
Results Random(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(OperatorImport::Attrs attrs, Seeds(*op));
  attrs.emplace_back("dtype", AttrValue::Type(op->OutputType(0)));
  PF_ASSIGN_OR_RETURN(const TensorRef shape, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(kOp, {shape}, attrs));
  return std::vector<TensorRef>{y};
}

// Operands: logits, number of samples.
Results Multinomial(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(OperatorImport::Attrs attrs, Seeds(*op));
  attrs.emplace_back("output_dtype", AttrValue::Type(op->OutputType(0)));
  PF_ASSIGN_OR_RETURN(const TensorRef logits, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef count, op->Input(1));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kMultinomial, {logits, count}, attrs));
  return std::vector<TensorRef>{y};
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::RANDOM_UNIFORM, 1, 1, Random<ops::kRandomUniform>},
    {BuiltinOperator::RANDOM_STANDARD_NORMAL, 1, 1, Random<ops::kRandomStandardNormal>},
    {BuiltinOperator::MULTINOMIAL, 2, 1, Multinomial},
};

}  // namespace

absl::Span<const OperatorRow> RandomOperators() { return kRows; }

}  // namespace permafrost
