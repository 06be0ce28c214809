// Makes the pieces without weights. Pooling uses oneDNN; the others are loops over rows of channels.
#include "runtime_check/delegates/onednn/image_pieces.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "graph/base/row_copy.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/primitives.h"
#include "runtime_check/delegates/onednn/storage_values.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/kernels/sampling.h"

namespace permafrost {
namespace onednn {
namespace {

using dnnl::memory;

// Minimum number of floats per thread.
constexpr int64_t kWorthAThread = 32768;

class Pool final : public Piece {
 public:
  absl::Status Init(const PlainOp& op) {
    const WindowGeometry& window = op.parsed.window;
    const WindowAxis &y = window.y, &x = window.x;
    const int64_t work = op.output.second.num_elements() * y.taps * x.taps;
    num_threads_ = work < kWorthAThread ? 1 : op.num_threads;
    const ThreadsInScope threads(num_threads_);
    const memory::desc source = ImageDesc(window.batch, y.input, x.input, window.input_channels, op.type.element);
    const memory::desc target = ImageDesc(window.batch, y.output, x.output, window.input_channels, op.type.element);
    is_average_ = op.parsed.is_average;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::pooling_forward::primitive_desc desc(
        {dnnl::prop_kind::forward_inference,
         is_average_ ? dnnl::algorithm::pooling_avg_exclude_padding : dnnl::algorithm::pooling_max,
         source,
         target,
         {y.stride, x.stride},
         {y.taps, x.taps},
         {y.pad_before, x.pad_before},
         {PadAfter(y), PadAfter(x)}},
        attributes, CpuEngine());
    implementation_ = desc.impl_info_str();
    primitive_.Set(dnnl::pooling_forward(desc));
    source_ = primitive_.Declare(DNNL_ARG_SRC, source);
    target_ = primitive_.Declare(DNNL_ARG_DST, target);
    scratch_bytes_ = static_cast<int64_t>(desc.scratchpad_desc().get_size());
    if (scratch_bytes_ > 0) scratch_ = primitive_.Declare(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
    return absl::OkStatus();
  }

  absl::Status Run(const RunContext& context) override {
    primitive_.SetPointer(source_, context.tensors[reads[0]]);
    primitive_.SetPointer(target_, context.tensors[writes[0]]);
    if (scratch_ >= 0) primitive_.SetPointer(scratch_, context.scratch);
    const ThreadsInScope threads(num_threads_);
    return primitive_.Run();
  }
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  std::string Describe() const override {
    return absl::StrCat(name, ": ", is_average_ ? "average" : "maximum", " pooling (", implementation_, ")");
  }

 private:
  BoundPrimitive primitive_;
  int source_ = -1, target_ = -1, scratch_ = -1;
  int64_t scratch_bytes_ = 0;
  int num_threads_ = 1;
  bool is_average_ = false;
  std::string implementation_;
};

class Resize final : public Piece {
 public:
  Resize(const ParsedNode& parsed, const Shape& image, const Shape& result, int num_threads)
      : batch_(image.dim(0)),
        input_height_(image.dim(1)),
        input_width_(image.dim(2)),
        channels_(image.dim(3)),
        rows_(BilinearTaps(image.dim(1), result.dim(1), parsed.align_corners, parsed.half_pixel_centers)),
        columns_(BilinearTaps(image.dim(2), result.dim(2), parsed.align_corners, parsed.half_pixel_centers)),
        num_threads_(result.num_elements() < kWorthAThread ? 1 : num_threads) {}

  absl::Status Run(const RunContext& context) override {
    const int64_t line = input_width_ * channels_;
    const auto height = static_cast<int64_t>(rows_.size());
    const int64_t out_line = static_cast<int64_t>(columns_.size()) * channels_;
#pragma omp parallel for num_threads(num_threads_) if (num_threads_ > 1)
    for (int64_t i = 0; i < batch_ * height; ++i) {
      const float* image = context.at<float>(reads[0]) + i / height * input_height_ * line;
      float* mixed = reinterpret_cast<float*>(context.scratch) + omp_get_thread_num() * line;
      MixLine(rows_[static_cast<size_t>(i % height)], columns_, input_width_, channels_, image, mixed,
              context.at<float>(writes[0]) + i * out_line);
    }
    return absl::OkStatus();
  }
  int64_t scratch_bytes() const override {
    return num_threads_ * input_width_ * channels_ * static_cast<int64_t>(sizeof(float));
  }
  std::string Describe() const override { return absl::StrCat(name, ": bilinear resize (loops)"); }

 private:
  int64_t batch_, input_height_, input_width_, channels_;
  std::vector<Tap> rows_, columns_;
  int num_threads_;
};

// Copies the nearest pixel. A line that repeats the one before is copied as a whole.
class NearestResize final : public Piece {
 public:
  NearestResize(const ParsedNode& parsed, const Shape& image, const Shape& result, int num_threads)
      : batch_(image.dim(0)),
        input_height_(image.dim(1)),
        line_(image.dim(2) * image.dim(3)),
        channels_(image.dim(3)),
        rows_(NearestTaps(image.dim(1), result.dim(1), parsed.align_corners, parsed.half_pixel_centers)),
        columns_(NearestTaps(image.dim(2), result.dim(2), parsed.align_corners, parsed.half_pixel_centers)),
        num_threads_(result.num_elements() < kWorthAThread ? 1 : num_threads) {}

  absl::Status Run(const RunContext& context) override {
    const auto height = static_cast<int64_t>(rows_.size());
    const int64_t out_line = static_cast<int64_t>(columns_.size()) * channels_;
    const float* const images = context.at<float>(reads[0]);
    float* const results = context.at<float>(writes[0]);
    const int64_t lines = batch_ * height;
#pragma omp parallel num_threads(num_threads_) if (num_threads_ > 1)
    {
      const int64_t team = omp_get_num_threads(), thread = omp_get_thread_num();
      const int64_t begin = lines * thread / team, end = lines * (thread + 1) / team;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = rows_[static_cast<size_t>(i % height)].lower;
        float* to = results + i * out_line;
        if (i > begin && i % height > 0 && rows_[static_cast<size_t>(i % height - 1)].lower == row) {
          std::memcpy(to, to - out_line, static_cast<size_t>(out_line) * sizeof(float));
          continue;
        }
        const float* from = images + (i / height * input_height_ + row) * line_;
        for (const Tap& column : columns_) {
          std::memcpy(to, from + column.lower * channels_, static_cast<size_t>(channels_) * sizeof(float));
          to += channels_;
        }
      }
    }
    return absl::OkStatus();
  }
  std::string Describe() const override { return absl::StrCat(name, ": nearest-neighbour resize (loops)"); }

 private:
  int64_t batch_, input_height_, line_, channels_;
  std::vector<Tap> rows_, columns_;
  int num_threads_;
};

// Pads an image of T. The bits of zero are all zero in each type.
template <typename T>
class Pad final : public Piece {
 public:
  Pad(const ParsedNode& parsed, const Shape& image, const Shape& result)
      : batch_(image.dim(0)),
        height_(image.dim(1)),
        top_(parsed.pad_top),
        bottom_(parsed.pad_bottom),
        left_(parsed.pad_left * image.dim(3)),
        right_(parsed.pad_right * image.dim(3)),
        line_(image.dim(2) * image.dim(3)),
        out_line_(result.dim(2) * result.dim(3)) {}

  absl::Status Run(const RunContext& context) override {
    const T* from = context.at<T>(reads[0]);
    T* to = context.at<T>(writes[0]);
    for (int64_t n = 0; n < batch_; ++n) {
      to = std::fill_n(to, top_ * out_line_, T(0));
      for (int64_t y = 0; y < height_; ++y, from += line_) {
        to = std::fill_n(to, left_, T(0));
        to = std::copy_n(from, line_, to);
        to = std::fill_n(to, right_, T(0));
      }
      to = std::fill_n(to, bottom_ * out_line_, T(0));
    }
    return absl::OkStatus();
  }
  std::string Describe() const override { return absl::StrCat(name, ": pad (loops)"); }

 private:
  int64_t batch_, height_, top_, bottom_, left_, right_, line_, out_line_;
};

class Conversion final : public Piece {
 public:
  Conversion(int64_t elements, StorageType from, StorageType to, int num_threads)
      : elements_(elements), from_(from), to_(to), num_threads_(elements < kWorthAThread ? 1 : num_threads) {}

  absl::Status Run(const RunContext& context) override {
    const char* const from = context.tensors[reads[0]];
    char* const to = context.tensors[writes[0]];
#pragma omp parallel for num_threads(num_threads_) if (num_threads_ > 1)
    for (int64_t begin = 0; begin < elements_; begin += kBlock) {
      const int64_t count = std::min(kBlock, elements_ - begin);
      if (from_.IsFloat()) {
        StoreFloats(to_, reinterpret_cast<const float*>(from) + begin, count, to, begin);
      } else if (to_.IsFloat()) {
        LoadFloats(from_, from, begin, count, reinterpret_cast<float*>(to) + begin);
      } else {
        float block[kBlock];
        LoadFloats(from_, from, begin, count, block);
        StoreFloats(to_, block, count, to, begin);
      }
    }
    return absl::OkStatus();
  }
  std::string Describe() const override {
    return absl::StrCat(name, ": conversion of ", NameOf(from_.element), " to ", NameOf(to_.element), " (loops)");
  }

 private:
  static constexpr int64_t kBlock = 4096;
  int64_t elements_;
  StorageType from_, to_;
  int num_threads_;
};

class Softmax final : public Piece {
 public:
  explicit Softmax(const PlainOp& op)
      : rows_(op.output.second), num_threads_(rows_.elements() < kWorthAThread ? 1 : op.num_threads) {}

  absl::Status Run(const RunContext& context) override {
    const float* const from = context.at<float>(reads[0]);
    float* const to = context.at<float>(writes[0]);
    const int64_t channels = rows_.channels;
    bool is_number = true;
    if (num_threads_ == 1) {
      is_number = SoftmaxOf(rows_.rows, channels, from, to);
    } else {
#pragma omp parallel num_threads(num_threads_) reduction(&& : is_number)
      {
        const int64_t team = omp_get_num_threads(), thread = omp_get_thread_num();
        const int64_t begin = rows_.rows * thread / team, end = rows_.rows * (thread + 1) / team;
        is_number = SoftmaxOf(end - begin, channels, from + begin * channels, to + begin * channels);
      }
    }
    if (!is_number) context.NoteNonFinite();
    return absl::OkStatus();
  }
  std::string Describe() const override { return absl::StrCat(name, ": softmax (loops)"); }

 private:
  Rows rows_;
  int num_threads_;
};

// Concatenates by copying runs of bytes. A copy is a concatenation of one input.
class Concat final : public Piece {
 public:
  Concat(const PlainOp& op, int axis) : num_threads_(op.num_threads) {
    for (int i = 0; i < axis; ++i) outer_ *= op.output.second.dim(i);
    for (const auto& [tensor, shape] : op.inputs) {
      runs_.push_back(shape.num_elements() / outer_ * op.type.bytes());
    }
  }

  absl::Status Run(const RunContext& context) override {
    const int64_t out_run = std::accumulate(runs_.begin(), runs_.end(), int64_t{0});
    char* const to = context.at<char>(writes[0]);
    const int threads = out_run * outer_ < 4 * kWorthAThread ? 1 : num_threads_;
    // A block of rows stays in the first-level cache until all its parts are there.
    constexpr int64_t kBlockBytes = 8 << 10;
    const int64_t block = std::max<int64_t>(1, kBlockBytes / std::max<int64_t>(1, out_run));
    const int64_t blocks = (outer_ + block - 1) / block;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t k = 0; k < blocks; ++k) {
      const int64_t first = k * block, count = std::min(block, outer_ - first);
      char* next = to + first * out_run;
      for (size_t i = 0; i < runs_.size(); ++i) {
        CopyByteRows(context.at<char>(reads[i]) + first * runs_[i], runs_[i], next, out_run, count,
                     static_cast<size_t>(runs_[i]));
        next += runs_[i];
      }
    }
    return absl::OkStatus();
  }
  std::string Describe() const override {
    return absl::StrCat(name, ": ", runs_.size() == 1 ? "copy" : "concatenation", " (loops)");
  }

 private:
  const int num_threads_;
  int64_t outer_ = 1;
  std::vector<int64_t> runs_;  // In bytes.
};

template <typename P>
std::unique_ptr<Piece> Named(std::unique_ptr<P> piece, const PlainOp& op) {
  piece->name = op.name;
  for (const auto& [tensor, shape] : op.inputs) piece->reads.push_back(tensor);
  piece->writes = {op.output.first};
  return piece;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Piece>> MakePool(const PlainOp& op) {
  auto piece = std::make_unique<Pool>();
  absl::Status made;
  PF_RETURN_IF_ERROR(Guarded(op.name, [&] { made = piece->Init(op); }));
  PF_RETURN_IF_ERROR(made);
  return Named(std::move(piece), op);
}

std::unique_ptr<Piece> MakeResize(const PlainOp& op) {
  if (!op.parsed.is_bilinear) {
    return Named(std::make_unique<NearestResize>(op.parsed, op.inputs[0].second, op.output.second, op.num_threads), op);
  }
  return Named(std::make_unique<Resize>(op.parsed, op.inputs[0].second, op.output.second, op.num_threads), op);
}

std::unique_ptr<Piece> MakePad(const PlainOp& op) {
  const Shape& image = op.inputs[0].second;
  switch (op.type.bytes()) {
    case 1:
      return Named(std::make_unique<Pad<uint8_t>>(op.parsed, image, op.output.second), op);
    case 2:
      return Named(std::make_unique<Pad<uint16_t>>(op.parsed, image, op.output.second), op);
    default:
      return Named(std::make_unique<Pad<float>>(op.parsed, image, op.output.second), op);
  }
}

std::unique_ptr<Piece> MakeSoftmax(const PlainOp& op) {
  auto piece = Named(std::make_unique<Softmax>(op), op);
  piece->in_place = {op.inputs[0].first};
  return piece;
}

std::unique_ptr<Piece> MakeConcat(const PlainOp& op) { return Named(std::make_unique<Concat>(op, op.parsed.axis), op); }

std::unique_ptr<Piece> MakeConversion(const PlainOp& op, StorageType from, StorageType to) {
  const int64_t elements = op.output.second.num_elements();
  return Named(std::make_unique<Conversion>(elements, from, to, op.num_threads), op);
}

std::unique_ptr<Piece> MakeCopy(const PlainOp& op) { return Named(std::make_unique<Concat>(op, 0), op); }

}  // namespace onednn
}  // namespace permafrost
