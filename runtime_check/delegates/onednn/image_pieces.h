// Pieces without weights that work on images or rows: pooling, resizing, padding, softmax, concatenation.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_IMAGE_PIECES_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_IMAGE_PIECES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/shape.h"
#include "graph/tensor.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/onednn/piece.h"

namespace permafrost {
namespace onednn {

struct PlainOp {
  ParsedNode parsed;
  std::vector<std::pair<int, Shape>> inputs;  // Storages and shapes; the storage of a constant is -1.
  std::vector<Tensor> constants;              // The constants among the inputs, in order.
  std::pair<int, Shape> output;
  std::string name;
  int num_threads = 1;
  // Type of inputs and output. Only pooling, padding, concatenation and copies support types other than float.
  StorageType type;
};

absl::StatusOr<std::unique_ptr<Piece>> MakePool(const PlainOp& op);
std::unique_ptr<Piece> MakeResize(const PlainOp& op);
std::unique_ptr<Piece> MakePad(const PlainOp& op);
std::unique_ptr<Piece> MakeSoftmax(const PlainOp& op);
std::unique_ptr<Piece> MakeConcat(const PlainOp& op);
// Converts numbers to another type.
std::unique_ptr<Piece> MakeConversion(const PlainOp& op, StorageType from, StorageType to);
// Copies an alias whose memory cannot be shared.
std::unique_ptr<Piece> MakeCopy(const PlainOp& op);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_IMAGE_PIECES_H_
