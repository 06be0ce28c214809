// Matrix products of two computed operands, as loops of our own.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PRODUCT_PIECES_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PRODUCT_PIECES_H_

#include <cstdint>
#include <memory>

#include "runtime_check/delegates/onednn/image_pieces.h"
#include "runtime_check/delegates/onednn/piece.h"

namespace permafrost {
namespace onednn {

// Makes the piece of op.parsed.product. One operand may be constant.
std::unique_ptr<Piece> MakeProduct(const PlainOp& op);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PRODUCT_PIECES_H_
