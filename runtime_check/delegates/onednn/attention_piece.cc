// Computes attention in tiles of rows, with the keys and values of each batch packed in scratch memory.
#include "runtime_check/delegates/onednn/attention_piece.h"

#include <omp.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/piece_input.h"
#include "runtime_check/delegates/onednn/right_matrix.h"
#include "runtime_check/kernels/inner_loops.h"

namespace permafrost {
namespace onednn {
namespace {

// Minimum number of multiplications per thread: fewer are done before a second thread starts (about 2 us).
constexpr int64_t kWorthAThread = 128 * 1024;
// Scratch memory of each part starts at a cache line.
constexpr int64_t kLineFloats = 16;
// Floats of a tile of scores, which stays in the L2 cache beside the packed keys, and rows that suffice for the inner
// loops.
constexpr int64_t kTileFloats = 32768;
constexpr int64_t kMostTileRows = 56;

int64_t WholeLines(int64_t floats) { return (floats + kLineFloats - 1) / kLineFloats * kLineFloats; }

class Attention final : public Piece {
 public:
  explicit Attention(const PlainOp& op)
      : first_(op.parsed.product),
        second_(op.parsed.second),
        queries_(op, 0),
        keys_(op, 1),
        values_(op, 2),
        scale_(op.parsed.scale),
        keeps_true_(op.parsed.keeps_true),
        fill_(op.parsed.fill),
        key_matrix_(first_.rows, first_.depth, first_.columns, first_.depth_b, first_.column_b),
        value_matrix_(second_.rows, second_.depth, second_.columns, second_.depth_b, second_.column_b) {
    copied_bytes_ = queries_.Align() + keys_.Align() + values_.Align();
    size_t next = 0;
    const auto add = [&](bool has, std::vector<PieceInput>* inputs, std::vector<int64_t>* steps) {
      if (!has) return;
      inputs->emplace_back(op, 3 + next);
      copied_bytes_ += inputs->back().Align();
      *steps = op.parsed.strides[next++];
    };
    add(op.parsed.has_mask, &mask_, &mask_steps_);
    add(op.parsed.has_condition, &condition_, &condition_steps_);
    products = first_.multiplications() + second_.multiplications();
    num_threads_ = products < kWorthAThread ? 1 : op.num_threads;
    for (const Product::Batch& batch : first_.batches) num_batches_ *= batch.size;
    const int64_t least = BestInnerLoops().tile_rows;
    tile_rows_ = std::min(first_.rows, std::max(least, std::min(kMostTileRows, kTileFloats / first_.columns)));
    // Threads share the rows of a batch only where there are fewer batches than threads.
    row_parts_ = num_batches_ >= num_threads_ ? 1 : num_threads_;
    key_floats_ = WholeLines(key_matrix_.packed_floats());
    value_floats_ = WholeLines(value_matrix_.packed_floats());
    tile_floats_ = WholeLines(tile_rows_ * key_matrix_.padded_columns());
  }

  absl::Status Run(const RunContext& context) override {
    const int64_t parts = num_batches_ * row_parts_;
    bool is_number = true;
    if (num_threads_ == 1) {
      is_number = RunParts(context, 0, parts, 0);
    } else {
#pragma omp parallel num_threads(num_threads_) reduction(&& : is_number)
      {
        const int64_t team = omp_get_num_threads(), thread = omp_get_thread_num();
        is_number = RunParts(context, parts * thread / team, parts * (thread + 1) / team, thread);
      }
    }
    if (!is_number) context.NoteNonFinite();
    return absl::OkStatus();
  }

  int64_t scratch_bytes() const override {
    return num_threads_ * FloatsPerThread() * static_cast<int64_t>(sizeof(float));
  }
  int64_t constant_bytes() const override { return copied_bytes_; }
  std::string Describe() const override {
    return absl::StrCat(name, ": attention", mask_.empty() ? "" : " + mask", condition_.empty() ? "" : " + select",
                        " (loops)");
  }

 private:
  int64_t FloatsPerThread() const { return key_floats_ + value_floats_ + tile_floats_; }

  // The positions of one batch in all operands.
  struct Place {
    int64_t query = 0, key = 0, value = 0, result = 0, mask = 0, condition = 0;
  };

  Place PlaceOf(int64_t number) const {
    Place place;
    for (size_t d = first_.batches.size(); d-- > 0;) {
      const Product::Batch &first = first_.batches[d], &second = second_.batches[d];
      const int64_t index = number % first.size;
      number /= first.size;
      place.query += index * first.a;
      place.key += index * first.b;
      place.value += index * second.b;
      place.result += index * second.c;
      if (!mask_.empty()) place.mask += index * mask_steps_[d];
      if (!condition_.empty()) place.condition += index * condition_steps_[d];
    }
    return place;
  }

  // Returns false if a result is NaN.
  bool RunParts(const RunContext& context, int64_t begin, int64_t end, int64_t thread) const {
    float* const packed_keys = reinterpret_cast<float*>(context.scratch) + thread * FloatsPerThread();
    float* const packed_values = packed_keys + key_floats_;
    float* const tile = packed_values + value_floats_;
    RightMatrix keys = key_matrix_, values = value_matrix_;
    const int64_t rows_per_part = (first_.rows + row_parts_ - 1) / row_parts_;
    const int64_t step = keys.padded_columns();
    bool is_number = true;
    for (int64_t part = begin; part < end; ++part) {
      const Place place = PlaceOf(part / row_parts_);
      keys.Load(keys_.data<float>(context) + first_.offset_b + place.key, packed_keys);
      values.Load(values_.data<float>(context) + second_.offset_b + place.value, packed_values);
      const int64_t last = std::min(first_.rows, (part % row_parts_ + 1) * rows_per_part);
      for (int64_t row = part % row_parts_ * rows_per_part; row < last; row += tile_rows_) {
        const int64_t rows = std::min(tile_rows_, last - row);
        keys.MultiplyPadded(rows, queries_.data<float>(context) + first_.offset_a + place.query + row * first_.row_a,
                            first_.row_a, tile);
        for (int64_t r = 0; r < rows; ++r) {
          float* scores = tile + r * step;
          Adjust(context, place, row + r, scores);
          // Has no part in the softmax.
          std::fill(scores + first_.columns, scores + step, -std::numeric_limits<float>::infinity());
        }
        is_number = SoftmaxOf(rows, step, tile, tile) && is_number;
        values.Multiply(rows, tile, step, context.at<float>(writes[0]) + place.result + row * second_.row_c,
                        second_.row_c);
      }
    }
    return is_number;
  }

  // Scales and masks one row of scores.
  void Adjust(const RunContext& context, const Place& place, int64_t row, float* scores) const {
    const InnerLoops& loops = BestInnerLoops();
    const int64_t count = first_.columns;
    const size_t row_step = first_.batches.size(), column_step = row_step + 1;
    if (scale_ != 1) loops.scale(count, scale_, scores);
    if (!mask_.empty()) {
      const float* mask = mask_[0].data<float>(context) + place.mask + row * mask_steps_[row_step];
      if (mask_steps_[column_step] == 0) {
        loops.add_scalar(count, scores, *mask, scores);
      } else {
        loops.add(count, scores, mask, scores);
      }
    }
    if (!condition_.empty()) {
      const bool* condition = condition_[0].data<bool>(context) + place.condition + row * condition_steps_[row_step];
      const int64_t step = condition_steps_[column_step];
      if (keeps_true_) {
        SelectOf(count, condition, step, scores, 1, &fill_, 0, scores);
      } else {
        SelectOf(count, condition, step, &fill_, 0, scores, 1, scores);
      }
    }
  }

  const Product first_, second_;
  PieceInput queries_, keys_, values_;
  std::vector<PieceInput> mask_, condition_;           // One or none.
  std::vector<int64_t> mask_steps_, condition_steps_;  // For each batch, and for rows and columns.
  float scale_;
  bool keeps_true_;
  float fill_;
  int num_threads_ = 1;
  RightMatrix key_matrix_, value_matrix_;
  int64_t num_batches_ = 1, row_parts_ = 1, tile_rows_ = 1;
  int64_t key_floats_ = 0, value_floats_ = 0, tile_floats_ = 0;  // Per thread.
  int64_t copied_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Piece> MakeAttention(const PlainOp& op) { return NamedPiece(std::make_unique<Attention>(op), op); }

}  // namespace onednn
}  // namespace permafrost
