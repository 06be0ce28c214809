// Inputs of pieces that read storages or constants.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PIECE_INPUT_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PIECE_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "graph/tensor.h"
#include "runtime_check/delegates/onednn/image_pieces.h"
#include "runtime_check/delegates/onednn/piece.h"

namespace permafrost {
namespace onednn {

// An input of a piece: a storage, or a constant, whose bytes may be unaligned.
class PieceInput {
 public:
  PieceInput(const PlainOp& op, size_t input) : storage_(op.inputs[input].first) {
    if (storage_ >= 0) return;
    const auto number = std::count_if(op.inputs.begin(), op.inputs.begin() + static_cast<int64_t>(input),
                                      [](const auto& before) { return before.first < 0; });
    constant_ = op.constants[static_cast<size_t>(number)];
  }

  // Copies a constant that is not aligned. Returns the bytes of the copy.
  int64_t Align() {
    if (storage_ >= 0 || constant_.IsAligned()) return 0;
    absl::StatusOr<Tensor> copy = constant_.Aligned();
    if (!copy.ok()) return 0;
    constant_ = *std::move(copy);
    return static_cast<int64_t>(constant_.bytes().size());
  }

  template <typename T>
  const T* data(const RunContext& context) const {
    return reinterpret_cast<const T*>(storage_ >= 0 ? context.tensors[storage_] : constant_.bytes().data());
  }

 private:
  int storage_;
  Tensor constant_;
};

// Sets the name, reads and writes of a piece to those of the op.
template <typename P>
std::unique_ptr<Piece> NamedPiece(std::unique_ptr<P> piece, const PlainOp& op) {
  piece->name = op.name;
  for (const auto& [storage, shape] : op.inputs) {
    if (storage >= 0 && std::find(piece->reads.begin(), piece->reads.end(), storage) == piece->reads.end()) {
      piece->reads.push_back(storage);
    }
  }
  piece->writes = {op.output.first};
  return piece;
}

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PIECE_INPUT_H_
