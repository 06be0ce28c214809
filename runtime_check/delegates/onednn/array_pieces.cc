// Makes the pieces for tensors of any rank.
#include "runtime_check/delegates/onednn/array_pieces.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/piece_input.h"
#include "runtime_check/kernels/inner_loops.h"

namespace permafrost {
namespace onednn {
namespace {

// Minimum number of floats per thread.
constexpr int64_t kWorthAThread = 32768;
// Floats that are broadcast to memory at a time; they stay in the L1 cache.
constexpr int64_t kBlock = 1024;

int ThreadsFor(const PlainOp& op, int64_t work) { return work < kWorthAThread ? 1 : op.num_threads; }

// Runs f(begin, end) on parts of [0, count).
template <typename F>
void InParallel(int num_threads, int64_t count, F f) {
  if (num_threads == 1 || count == 1) return f(int64_t{0}, count);
#pragma omp parallel num_threads(num_threads)
  {
    const int64_t team = omp_get_num_threads(), thread = omp_get_thread_num();
    f(count * thread / team, count * (thread + 1) / team);
  }
}

class View final : public Piece {
 public:
  View(const PlainOp& op, const StridedView& view)
      : offset_(view.offset),
        loops_(op.output.second, {view.strides}),
        num_threads_(ThreadsFor(op, op.output.second.num_elements())),
        kind_(op.parsed.views.size() > 1 ? "part" : "view") {
    FindPlanes(op.output.second, view.strides);
  }

  absl::Status Run(const RunContext& context) override {
    const float* const from = context.at<float>(reads[0]) + offset_;
    float* const to = context.at<float>(writes[0]);
    if (planes_ > 0) {
      TransposePlanes(from, to);
      return absl::OkStatus();
    }
    const int64_t length = loops_.length(), step = loops_.step(0);
    InParallel(num_threads_, loops_.rows(), [&](int64_t begin, int64_t end) {
      float* next = to + begin * length;
      loops_.ForRows(begin, end, [&](const OperandSteps& at) {
        const float* row = from + at[0];
        if (step == 1) {
          std::memcpy(next, row, static_cast<size_t>(length) * sizeof(float));
        } else {
          for (int64_t i = 0; i < length; ++i) next[i] = row[i * step];
        }
        next += length;
      });
    });
    return absl::OkStatus();
  }
  std::string Describe() const override { return absl::StrCat(name, ": copy of a ", kind_, " (loops)"); }

 private:
  // Finds out whether the view is a transpose of the matrices of a tensor, as those between NCHW and NHWC are.
  void FindPlanes(const Shape& shape, const std::vector<int64_t>& strides) {
    std::vector<std::pair<int64_t, int64_t>> dims;  // Size and stride, neighbours joined.
    for (int d = 0; d < shape.rank(); ++d) {
      const int64_t size = shape.dim(d), stride = strides[static_cast<size_t>(d)];
      if (size == 1) continue;
      if (!dims.empty() && dims.back().second == size * stride) {
        dims.back() = {dims.back().first * size, stride};
      } else {
        dims.emplace_back(size, stride);
      }
    }
    if (dims.size() < 2 || dims.size() > 3) return;
    const auto &row = dims[dims.size() - 2], &column = dims.back();
    if (row.second != 1 || column.second < row.first) return;
    planes_ = dims.size() == 3 ? dims[0].first : 1;
    plane_step_ = dims[0].second;
    rows_ = row.first;
    columns_ = column.first;
    column_step_ = column.second;
  }

  // Element (row, column) of a result is at row + column * column_step_ of its source. Squares of both fit in a cache.
  void TransposePlanes(const float* from, float* to) const {
    constexpr int64_t kSide = 32;
    const int64_t bands = (rows_ + kSide - 1) / kSide;
    InParallel(num_threads_, planes_ * bands, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* const plane = from + i / bands * plane_step_;
        float* const result = to + i / bands * rows_ * columns_;
        const int64_t first = i % bands * kSide, last = std::min(first + kSide, rows_);
        for (int64_t left = 0; left < columns_; left += kSide) {
          const int64_t right = std::min(left + kSide, columns_);
          for (int64_t column = left; column < right; ++column) {
            const float* const source = plane + column * column_step_;
            for (int64_t row = first; row < last; ++row) result[row * columns_ + column] = source[row];
          }
        }
      }
    });
  }

  int64_t offset_;
  StridedLoops loops_;
  int num_threads_;
  const char* kind_;
  // The matrices to transpose; none if planes_ is 0.
  int64_t planes_ = 0, plane_step_ = 0, rows_ = 0, columns_ = 0, column_step_ = 0;
};

template <typename T>
class Gather final : public Piece {
 public:
  explicit Gather(const PlainOp& op)
      : table_(op, 0),
        indices_(op, 1),
        count_(op.inputs[1].second.num_elements()),
        outer_(op.parsed.outer),
        entries_(op.parsed.reduced),
        inner_(op.parsed.inner) {}

  absl::Status Run(const RunContext& context) override {
    const char* const table = table_.template data<char>(context);
    const T* const indices = indices_.template data<T>(context);
    char* to = context.at<char>(writes[0]);
    const int64_t bytes = inner_ * static_cast<int64_t>(sizeof(float));
    for (int64_t i = 0; i < count_; ++i) {
      if (indices[i] < 0 || indices[i] >= entries_) {
        return absl::InvalidArgumentError(
            absl::StrCat("index ", indices[i], " at position ", i, ", expected 0 to ", entries_ - 1));
      }
    }
    for (int64_t o = 0; o < outer_; ++o) {
      for (int64_t i = 0; i < count_; ++i, to += bytes) {
        std::memcpy(to, table + (o * entries_ + static_cast<int64_t>(indices[i])) * bytes, static_cast<size_t>(bytes));
      }
    }
    return absl::OkStatus();
  }
  std::string Describe() const override { return absl::StrCat(name, ": gather (loops)"); }

 private:
  PieceInput table_, indices_;
  int64_t count_, outer_, entries_, inner_;
};

class Select final : public Piece {
 public:
  explicit Select(const PlainOp& op)
      : condition_(op, 0),
        yes_(op, 1),
        no_(op, 2),
        loops_(op.output.second, op.parsed.strides),
        num_threads_(ThreadsFor(op, op.output.second.num_elements())) {
    copied_bytes_ = yes_.Align() + no_.Align();
  }

  absl::Status Run(const RunContext& context) override {
    const bool* const condition = condition_.data<bool>(context);
    const float *const yes = yes_.data<float>(context), *const no = no_.data<float>(context);
    float* const to = context.at<float>(writes[0]);
    InParallel(num_threads_, loops_.rows(), [&](int64_t begin, int64_t end) {
      float* next = to + begin * loops_.length();
      loops_.ForRows(begin, end, [&](const OperandSteps& at) {
        SelectOf(loops_.length(), condition + at[0], loops_.step(0), yes + at[1], loops_.step(1), no + at[2],
                 loops_.step(2), next);
        next += loops_.length();
      });
    });
    return absl::OkStatus();
  }
  int64_t constant_bytes() const override { return copied_bytes_; }
  std::string Describe() const override { return absl::StrCat(name, ": select (loops)"); }

 private:
  PieceInput condition_, yes_, no_;
  StridedLoops loops_;
  int num_threads_;
  int64_t copied_bytes_ = 0;
};

class Broadcast final : public Piece {
 public:
  explicit Broadcast(const PlainOp& op)
      : a_(op, 0),
        b_(op, 1),
        op_(op.parsed.loop),
        loops_(op.output.second, op.parsed.strides),
        num_threads_(ThreadsFor(op, op.output.second.num_elements())) {
    copied_bytes_ = a_.Align() + b_.Align();
  }

  absl::Status Run(const RunContext& context) override {
    const float *const a = a_.data<float>(context), *const b = b_.data<float>(context);
    float* const to = context.at<float>(writes[0]);
    const int64_t length = loops_.length();
    InParallel(num_threads_, loops_.rows(), [&](int64_t begin, int64_t end) {
      float block_a[kBlock], block_b[kBlock];
      float* next = to + begin * length;
      loops_.ForRows(begin, end, [&](const OperandSteps& at) {
        for (int64_t i = 0; i < length; i += kBlock) {
          const int64_t count = std::min(kBlock, length - i);
          RunLoop(op_, count, Spread(a + at[0], i, count, loops_.step(0), block_a),
                  Spread(b + at[1], i, count, loops_.step(1), block_b), 0, 0, next + i);
        }
        next += length;
      });
    });
    return absl::OkStatus();
  }
  int64_t constant_bytes() const override { return copied_bytes_; }
  std::string Describe() const override { return absl::StrCat(name, ": ", NameOf(op_), ", broadcast (loops)"); }

 private:
  // Returns `count` contiguous elements, in `block` if the operand is broadcast.
  static const float* Spread(const float* row, int64_t first, int64_t count, int64_t step, float* block) {
    if (step == 1) return row + first;
    if (step == 0) {
      std::fill_n(block, count, *row);
    } else {
      for (int64_t i = 0; i < count; ++i) block[i] = row[(first + i) * step];
    }
    return block;
  }

  PieceInput a_, b_;
  LoopOp op_;
  StridedLoops loops_;
  int num_threads_;
  int64_t copied_bytes_ = 0;
};

class Reduce final : public Piece {
 public:
  explicit Reduce(const PlainOp& op)
      : outer_(op.parsed.outer),
        reduced_(op.parsed.reduced),
        inner_(op.parsed.inner),
        last_(op.parsed.reduced_last),
        is_mean_(op.parsed.is_mean),
        num_threads_(ThreadsFor(op, outer_ * reduced_ * inner_ * last_)) {}

  absl::Status Run(const RunContext& context) override {
    const float* const from = context.at<float>(reads[0]);
    float* const to = context.at<float>(writes[0]);
    const InnerLoops& loops = BestInnerLoops();
    const float factor = is_mean_ ? 1.0f / static_cast<float>(reduced_ * last_) : 1.0f;
    InParallel(num_threads_, outer_, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const float* next = from + o * reduced_ * inner_ * last_;
        float* result = to + o * inner_;
        if (inner_ == 1) {
          *result = SumOf(reduced_, next) * factor;
          continue;
        }
        std::fill(result, result + inner_, 0.0f);
        for (int64_t r = 0; r < reduced_; ++r, next += inner_ * last_) {
          if (last_ == 1) {
            loops.add_to(inner_, next, result);
          } else {
            for (int64_t i = 0; i < inner_; ++i) result[i] += SumOf(last_, next + i * last_);
          }
        }
        if (is_mean_) loops.scale(inner_, factor, result);
      }
    });
    return absl::OkStatus();
  }
  std::string Describe() const override { return absl::StrCat(name, ": ", is_mean_ ? "mean" : "sum", " (loops)"); }

 private:
  int64_t outer_, reduced_, inner_, last_;
  bool is_mean_;
  int num_threads_;
};

class Normalize final : public Piece {
 public:
  explicit Normalize(const PlainOp& op)
      : rows_(op.output.second),
        epsilon_(op.parsed.epsilon),
        is_centred_(op.parsed.is_centred),
        factor_(op.parsed.factor),
        offset_(op.parsed.offset),
        num_threads_(ThreadsFor(op, rows_.elements())) {}

  absl::Status Run(const RunContext& context) override {
    const float* const from = context.at<float>(reads[0]);
    float* const to = context.at<float>(writes[0]);
    const int64_t channels = rows_.channels;
    InParallel(num_threads_, rows_.rows, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        NormalizeOf(channels, is_centred_, epsilon_, from + r * channels, factor_.data(), offset_.data(),
                    to + r * channels);
      }
    });
    return absl::OkStatus();
  }
  int64_t constant_bytes() const override {
    return static_cast<int64_t>((factor_.size() + offset_.size()) * sizeof(float));
  }
  std::string Describe() const override {
    return absl::StrCat(name, ": ", is_centred_ ? "layer" : "RMS", " normalisation (loops)");
  }

 private:
  Rows rows_;
  float epsilon_;
  bool is_centred_;
  std::vector<float> factor_, offset_;
  int num_threads_;
};

}  // namespace

std::unique_ptr<Piece> MakeView(const PlainOp& op, const StridedView& view) {
  return NamedPiece(std::make_unique<View>(op, view), op);
}

std::unique_ptr<Piece> MakeGather(const PlainOp& op, DType index_type) {
  if (index_type == DType::kInt32) return NamedPiece(std::make_unique<Gather<int32_t>>(op), op);
  return NamedPiece(std::make_unique<Gather<int64_t>>(op), op);
}

std::unique_ptr<Piece> MakeSelect(const PlainOp& op) { return NamedPiece(std::make_unique<Select>(op), op); }

std::unique_ptr<Piece> MakeBroadcast(const PlainOp& op) { return NamedPiece(std::make_unique<Broadcast>(op), op); }

std::unique_ptr<Piece> MakeNormalize(const PlainOp& op) {
  std::unique_ptr<Piece> piece = NamedPiece(std::make_unique<Normalize>(op), op);
  piece->in_place = {op.inputs[0].first};
  return piece;
}

std::unique_ptr<Piece> MakeReduce(const PlainOp& op) { return NamedPiece(std::make_unique<Reduce>(op), op); }

}  // namespace onednn
}  // namespace permafrost
