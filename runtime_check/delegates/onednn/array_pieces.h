// Pieces that move, select, combine and reduce elements of tensors of any rank, as loops of our own.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ARRAY_PIECES_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ARRAY_PIECES_H_

#include <memory>

#include "runtime_check/delegates/onednn/image_pieces.h"
#include "runtime_check/delegates/onednn/piece.h"

namespace permafrost {
namespace onednn {

// Copies the elements of one view of the input.
std::unique_ptr<Piece> MakeView(const PlainOp& op, const StridedView& view);
// Run returns InvalidArgument for an index that is out of bounds.
std::unique_ptr<Piece> MakeGather(const PlainOp& op, DType index_type);
std::unique_ptr<Piece> MakeSelect(const PlainOp& op);
std::unique_ptr<Piece> MakeBroadcast(const PlainOp& op);
std::unique_ptr<Piece> MakeReduce(const PlainOp& op);
std::unique_ptr<Piece> MakeNormalize(const PlainOp& op);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ARRAY_PIECES_H_
