

aÿNoOp