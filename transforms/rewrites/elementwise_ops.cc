// Lists the elementwise ops: each element of the result depends only on the elements at the same place.
#include "transforms/rewrites/elementwise_ops.h"

namespace permafrost {

bool IsUnaryElementwise(Op op) {
  switch (op.id()) {
    case ops::kAbs:
    case ops::kAcos:
    case ops::kAcosh:
    case ops::kAsin:
    case ops::kAsinh:
    case ops::kAtan:
    case ops::kAtanh:
    case ops::kCast:
    case ops::kCeil:
    case ops::kCos:
    case ops::kCosh:
    case ops::kElu:
    case ops::kErf:
    case ops::kErfc:
    case ops::kExp:
    case ops::kExpm1:
    case ops::kFloor:
    case ops::kIdentity:
    case ops::kInv:
    case ops::kIsFinite:
    case ops::kIsInf:
    case ops::kIsNan:
    case ops::kLeakyRelu:
    case ops::kLog:
    case ops::kLog1p:
    case ops::kLogicalNot:
    case ops::kNeg:
    case ops::kReciprocal:
    case ops::kRelu:
    case ops::kRelu6:
    case ops::kRint:
    case ops::kRound:
    case ops::kRsqrt:
    case ops::kSelu:
    case ops::kSigmoid:
    case ops::kSign:
    case ops::kSin:
    case ops::kSinh:
    case ops::kSoftplus:
    case ops::kSoftsign:
    case ops::kSqrt:
    case ops::kSquare:
    case ops::kStopGradient:
    case ops::kTan:
    case ops::kTanh:
      return true;
    default:
      return false;
  }
}

bool IsBinaryElementwise(Op op) {
  switch (op.id()) {
    case ops::kAdd:
    case ops::kAddV2:
    case ops::kAtan2:
    case ops::kDiv:
    case ops::kDivNoNan:
    case ops::kEqual:
    case ops::kFloorDiv:
    case ops::kFloorMod:
    case ops::kGreater:
    case ops::kGreaterEqual:
    case ops::kLess:
    case ops::kLessEqual:
    case ops::kLogicalAnd:
    case ops::kLogicalOr:
    case ops::kMaximum:
    case ops::kMinimum:
    case ops::kMul:
    case ops::kNotEqual:
    case ops::kPow:
    case ops::kRealDiv:
    case ops::kSquaredDifference:
    case ops::kSub:
      return true;
    default:
      return false;
  }
}

}  // namespace permafrost
