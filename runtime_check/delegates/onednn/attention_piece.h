// Attention: softmax(scale * q k + mask) v.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ATTENTION_PIECE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ATTENTION_PIECE_H_

#include <memory>

#include "runtime_check/delegates/onednn/image_pieces.h"
#include "runtime_check/delegates/onednn/piece.h"

namespace permafrost {
namespace onednn {

// Makes the piece of a node of kind kAttention. Only a tile of rows of the scores is in memory at a time.
std::unique_ptr<Piece> MakeAttention(const PlainOp& op);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ATTENTION_PIECE_H_
