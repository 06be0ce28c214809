// Runs batches of matrix products, with the right operand of each batch packed in scratch memory.
#include "runtime_check/delegates/onednn/product_pieces.h"

#include <omp.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/piece_input.h"
#include "runtime_check/delegates/onednn/right_matrix.h"

namespace permafrost {
namespace onednn {
namespace {

// Minimum number of multiplications per thread: fewer are done before a second thread starts (about 2 us).
constexpr int64_t kWorthAThread = 128 * 1024;
// Scratch memory of each part starts at a cache line.
constexpr int64_t kLineFloats = 16;

int64_t WholeLines(int64_t floats) { return (floats + kLineFloats - 1) / kLineFloats * kLineFloats; }

class BatchedProduct final : public Piece {
 public:
  explicit BatchedProduct(const PlainOp& op)
      : product_(op.parsed.product),
        a_(op, static_cast<size_t>(product_.left)),
        b_(op, static_cast<size_t>(product_.right)),
        num_threads_(product_.multiplications() < kWorthAThread ? 1 : op.num_threads),
        matrix_(product_.rows, product_.depth, product_.columns, product_.depth_b, product_.column_b) {
    for (const Product::Batch& batch : product_.batches) num_batches_ *= batch.size;
    // Threads share the rows of a batch only where there are fewer batches than threads.
    row_parts_ = num_batches_ >= num_threads_ ? 1 : num_threads_;
    is_left_packed_ = product_.depth > 1 && product_.depth_a != 1;
    is_result_scattered_ = product_.columns > 1 && product_.column_c != 1;
    packed_floats_ = WholeLines(matrix_.packed_floats());
    left_floats_ = is_left_packed_ ? WholeLines(RowsPerPart() * product_.depth) : 0;
    result_floats_ = is_result_scattered_ ? WholeLines(RowsPerPart() * product_.columns) : 0;
    copied_bytes_ = a_.Align() + b_.Align();
  }

  absl::Status Run(const RunContext& context) override {
    const int64_t parts = num_batches_ * row_parts_;
    if (num_threads_ == 1) {
      RunParts(context, 0, parts, 0);
      return absl::OkStatus();
    }
#pragma omp parallel num_threads(num_threads_)
    {
      const int64_t team = omp_get_num_threads(), thread = omp_get_thread_num();
      RunParts(context, parts * thread / team, parts * (thread + 1) / team, thread);
    }
    return absl::OkStatus();
  }

  int64_t scratch_bytes() const override {
    return num_threads_ * FloatsPerThread() * static_cast<int64_t>(sizeof(float));
  }
  int64_t constant_bytes() const override { return copied_bytes_; }
  std::string Describe() const override {
    return absl::StrCat(name, ": ", num_batches_ == 1 ? "product" : "batched product", " (loops)");
  }

 private:
  int64_t FloatsPerThread() const { return packed_floats_ + left_floats_ + result_floats_; }
  int64_t RowsPerPart() const { return (product_.rows + row_parts_ - 1) / row_parts_; }

  void RunParts(const RunContext& context, int64_t begin, int64_t end, int64_t thread) const {
    const float* const a = a_.data<float>(context) + product_.offset_a;
    const float* const b = b_.data<float>(context) + product_.offset_b;
    float* const c = context.at<float>(writes[0]);
    float* const packed = reinterpret_cast<float*>(context.scratch) + thread * FloatsPerThread();
    float* const left = packed + packed_floats_;
    float* const result = left + left_floats_;
    RightMatrix matrix = matrix_;
    const float* loaded = nullptr;
    for (int64_t part = begin; part < end; ++part) {
      int64_t at_a = 0, at_b = 0, at_c = 0, rest = part / row_parts_;
      for (size_t d = product_.batches.size(); d-- > 0;) {
        const Product::Batch& batch = product_.batches[d];
        const int64_t index = rest % batch.size;
        rest /= batch.size;
        at_a += index * batch.a;
        at_b += index * batch.b;
        at_c += index * batch.c;
      }
      if (b + at_b != loaded) matrix.Load(b + at_b, packed);
      loaded = b + at_b;
      const int64_t first = std::min(product_.rows, part % row_parts_ * RowsPerPart());
      const int64_t rows = std::min(RowsPerPart(), product_.rows - first);
      const float* from = a + at_a + first * product_.row_a;
      int64_t from_step = product_.row_a;
      if (is_left_packed_) {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t k = 0; k < product_.depth; ++k) {
            left[r * product_.depth + k] = from[r * product_.row_a + k * product_.depth_a];
          }
        }
        from = left;
        from_step = product_.depth;
      }
      float* const to = c + at_c + first * product_.row_c;
      if (!is_result_scattered_) {
        matrix.Multiply(rows, from, from_step, to, product_.row_c);
        continue;
      }
      matrix.Multiply(rows, from, from_step, result, product_.columns);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t j = 0; j < product_.columns; ++j) {
          to[r * product_.row_c + j * product_.column_c] = result[r * product_.columns + j];
        }
      }
    }
  }

  const Product product_;
  PieceInput a_, b_;
  int num_threads_;
  RightMatrix matrix_;
  int64_t num_batches_ = 1, row_parts_ = 1;
  bool is_left_packed_ = false, is_result_scattered_ = false;
  int64_t packed_floats_ = 0, left_floats_ = 0, result_floats_ = 0;  // Per thread.
  int64_t copied_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Piece> MakeProduct(const PlainOp& op) {
  auto piece = std::make_unique<BatchedProduct>(op);
  piece->products = op.parsed.product.multiplications();
  return NamedPiece(std::move(piece), op);
}

}  // namespace onednn
}  // namespace permafrost
