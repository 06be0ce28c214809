// Runs all steps on one block after the other. The block size keeps the working set in the L1 cache.
#include "runtime_check/delegates/onednn/loop_nest.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/storage_values.h"

namespace permafrost {
namespace onednn {
namespace {

constexpr int64_t kBlockFloats = 1024;
// Minimum number of element operations per thread.
constexpr int64_t kWorthAThread = 32768;

class LoopNest final : public Piece {
 public:
  LoopNest(absl::Span<const Step* const> steps, absl::Span<const int> results, const StorageTypes& types,
           std::string loop_name, int num_threads)
      : rows_(steps[0]->rows), types_(types), num_threads_(num_threads) {
    name = std::move(loop_name);
    images_ = 1;
    bool is_flat = true;
    for (const Step* step : steps) {
      if (step->has_other() && step->meeting != Meeting::kSame) is_flat = false;
      if (step->meeting == Meeting::kPerImage) images_ = step->images;
    }
    if (is_flat) rows_.channels = 1, rows_.rows = steps[0]->rows.elements();
    block_rows_ = std::max<int64_t>(1, kBlockFloats / rows_.channels);
    block_floats_ = block_rows_ * rows_.channels;
    if (rows_.elements() * static_cast<int64_t>(steps.size()) < kWorthAThread) num_threads_ = 1;
    for (const Step* step : steps) {
      description_ = absl::StrCat(description_, description_.empty() ? "" : " + ", NameOf(step->op));
    }
    AddSteps(steps, results);
  }

  int64_t scratch_bytes() const override {
    return (static_cast<int64_t>(num_buffers_) * num_threads_ + shared_) * block_floats_ * 4;
  }
  int64_t constant_bytes() const override {
    int64_t bytes = 0;
    for (const Operand& operand : operands_) bytes += static_cast<int64_t>(operand.values.size() * sizeof(float));
    return bytes;
  }
  std::string Describe() const override { return absl::StrCat(name, ": ", description_, " (loops)"); }

  absl::Status Run(const RunContext& context) override {
    const int64_t rows_per_image = rows_.rows / images_;
    const int64_t blocks = (rows_per_image + block_rows_ - 1) / block_rows_;
    for (int64_t image = 0; image < images_; ++image) {
      Spread(context, image);
      const int64_t first = image * rows_per_image;
      const auto run = [&](int64_t begin, int64_t end, int thread) {
        for (int64_t block = begin; block < end; ++block) {
          const int64_t row = first + block * block_rows_;
          RunBlock(context, row, std::min(block_rows_, first + rows_per_image - row), thread);
        }
      };
      if (num_threads_ == 1 || blocks == 1) {
        run(0, blocks, 0);
        continue;
      }
#pragma omp parallel num_threads(num_threads_)
      {
        const int64_t team = omp_get_num_threads(), thread = omp_get_thread_num();
        run(blocks * thread / team, blocks * (thread + 1) / team, static_cast<int>(thread));
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Operand {
    int tensor = -1;  // -1: constant.
    Meeting meeting = Meeting::kSame;
    std::vector<float> values;  // A constant, repeated over a block.
    int slot = -1;              // Offset in the shared scratch memory, for an operand that is broadcast to a block.
    int buffer = -1;            // Buffer in the thread's scratch memory, for an operand broadcast or widened per block.
    StorageType type;
  };
  struct Source {
    enum class Kind { kNone, kOperand, kBuffer, kOutput } kind = Kind::kNone;
    int index = 0;
  };
  struct Instruction {
    LoopOp op;
    float alpha, beta;
    Source a, b;
    int buffer;        // -1: write directly to the output.
    int output;        // Tensor, or -1.
    StorageType type;  // Type of the output; other than float, it is converted from the buffer.
  };

  Source OperandFor(int tensor, Meeting meeting) {
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].tensor == tensor && operands_[i].meeting == meeting) {
        return {Source::Kind::kOperand, static_cast<int>(i)};
      }
    }
    Operand& operand = operands_.emplace_back();
    operand.tensor = tensor;
    operand.meeting = meeting;
    operand.type = types_.Of(tensor);
    if (meeting == Meeting::kPerRow || (meeting == Meeting::kSame && !operand.type.IsFloat())) {
      operand.buffer = num_buffers_++;
    } else if (meeting != Meeting::kSame) {
      operand.slot = shared_++;
    }
    if (std::find(reads.begin(), reads.end(), tensor) == reads.end()) reads.push_back(tensor);
    return {Source::Kind::kOperand, static_cast<int>(operands_.size()) - 1};
  }

  Source ConstantFor(const Step& step) {
    Operand& operand = operands_.emplace_back();
    operand.meeting = step.meeting;
    const std::vector<float>& values = step.constants;
    if (step.meeting == Meeting::kSame) {
      operand.values = values;
    } else if (step.meeting == Meeting::kPerRow || step.meeting == Meeting::kPerImage) {
      for (int64_t r = 0; r < rows_.rows; ++r) {
        for (int64_t c = 0; c < rows_.channels; ++c) {
          operand.values.push_back(
              step.meeting == Meeting::kPerRow ? values[r] : values[r / (rows_.rows / images_) * rows_.channels + c]);
        }
      }
      operand.meeting = Meeting::kSame;
    } else {
      operand.values.resize(block_floats_);
      for (int64_t i = 0; i < block_floats_; ++i) {
        operand.values[i] = values[step.meeting == Meeting::kScalar ? 0 : i % rows_.channels];
      }
    }
    return {Source::Kind::kOperand, static_cast<int>(operands_.size()) - 1};
  }

  void AddSteps(absl::Span<const Step* const> steps, absl::Span<const int> results) {
    std::map<int, size_t> last_read;  // Indexed by tensor: the last step that reads it.
    for (size_t i = 0; i < steps.size(); ++i) {
      last_read[steps[i]->value] = i;
      if (steps[i]->other >= 0) last_read[steps[i]->other] = i;
    }
    std::map<int, Source> made;  // By tensor.
    std::vector<int> free;
    size_t first_write = steps.size();
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step& step = *steps[i];
      Instruction instruction{step.op, step.alpha, step.beta, {}, {}, -1, -1, {}};
      const auto source = [&](int tensor, Meeting meeting) {
        const auto found = made.find(tensor);
        return found != made.end() ? found->second : OperandFor(tensor, meeting);
      };
      instruction.a = source(step.value, Meeting::kSame);
      if (step.other >= 0) {
        instruction.b = source(step.other, step.meeting);
      } else if (!step.constants.empty()) {
        instruction.b = ConstantFor(step);
      }
      // A buffer can be reused after its last read.
      for (const int tensor : {step.value, step.other}) {
        const auto found = made.find(tensor);
        if (tensor < 0 || found == made.end() || found->second.kind != Source::Kind::kBuffer) continue;
        if (std::find(kept_.begin(), kept_.end(), found->second.index) != kept_.end()) continue;
        if (last_read[tensor] == i && std::find(free.begin(), free.end(), found->second.index) == free.end()) {
          free.push_back(found->second.index);
        }
      }
      if (std::find(results.begin(), results.end(), step.result) != results.end()) {
        instruction.output = step.result;
        writes.push_back(step.result);
        first_write = std::min(first_write, i);
        made[step.result] = {Source::Kind::kOutput, step.result};
        instruction.type = types_.Of(step.result);
        if (!instruction.type.IsFloat()) {
          instruction.buffer = num_buffers_++;  // A separate buffer, since later steps may read it.
          made[step.result] = {Source::Kind::kBuffer, instruction.buffer};
          kept_.push_back(instruction.buffer);
        }
      } else {
        if (free.empty()) free.push_back(num_buffers_++);
        instruction.buffer = free.back();
        free.pop_back();
        made[step.result] = {Source::Kind::kBuffer, instruction.buffer};
      }
      instructions_.push_back(instruction);
    }
    // An input can share the memory of the first output unless it is read after that output is written.
    for (const Operand& operand : operands_) {
      if (operand.tensor < 0 || operand.meeting != Meeting::kSame) continue;
      const bool is_met_otherwise = std::any_of(operands_.begin(), operands_.end(), [&](const Operand& other) {
        return other.tensor == operand.tensor && other.meeting != Meeting::kSame;
      });
      if (!is_met_otherwise && last_read[operand.tensor] <= first_write) in_place.push_back(operand.tensor);
    }
  }

  float* Buffer(const RunContext& context, int thread, int buffer) const {
    return reinterpret_cast<float*>(context.scratch) +
           (shared_ + static_cast<int64_t>(thread) * num_buffers_ + buffer) * block_floats_;
  }

  // Broadcasts the operands that are the same for each block, once for all blocks of an image.
  void Spread(const RunContext& context, int64_t image) {
    for (const Operand& operand : operands_) {
      if (operand.slot < 0) continue;
      float* to = reinterpret_cast<float*>(context.scratch) + operand.slot * block_floats_;
      if (operand.meeting == Meeting::kScalar) {
        Widen(context, operand, 0, 1, to);
        std::fill(to + 1, to + block_floats_, to[0]);
        continue;
      }
      Widen(context, operand, operand.meeting == Meeting::kPerImage ? image * rows_.channels : 0, rows_.channels, to);
      for (int64_t r = 1; r < block_rows_; ++r) {
        std::memcpy(to + r * rows_.channels, to, static_cast<size_t>(rows_.channels) * sizeof(float));
      }
    }
  }

  static void Widen(const RunContext& context, const Operand& operand, int64_t offset, int64_t count, float* to) {
    LoadFloats(operand.type, context.tensors[operand.tensor], offset, count, to);
  }

  const float* At(const RunContext& context, const Source& source, int64_t offset, int thread) const {
    switch (source.kind) {
      case Source::Kind::kNone:
        return nullptr;
      case Source::Kind::kBuffer:
        return Buffer(context, thread, source.index);
      case Source::Kind::kOutput:
        return context.at<float>(source.index) + offset;
      case Source::Kind::kOperand:
        break;
    }
    const Operand& operand = operands_[source.index];
    if (operand.slot >= 0) {
      return reinterpret_cast<const float*>(context.scratch) + operand.slot * block_floats_;
    }
    if (operand.buffer >= 0) return Buffer(context, thread, operand.buffer);
    if (operand.tensor >= 0) return context.at<float>(operand.tensor) + offset;
    return operand.values.data() + (operand.meeting == Meeting::kSame ? offset : 0);
  }

  void RunBlock(const RunContext& context, int64_t row, int64_t rows, int thread) const {
    const int64_t offset = row * rows_.channels;
    const int64_t count = rows * rows_.channels;
    for (const Operand& operand : operands_) {
      if (operand.buffer < 0) continue;
      float* to = Buffer(context, thread, operand.buffer);
      if (operand.meeting == Meeting::kSame) {
        Widen(context, operand, offset, count, to);
        continue;
      }
      for (int64_t r = 0; r < rows; ++r) {
        float value;
        Widen(context, operand, row + r, 1, &value);
        std::fill(to + r * rows_.channels, to + (r + 1) * rows_.channels, value);
      }
    }
    for (const Instruction& instruction : instructions_) {
      float* to = instruction.buffer >= 0 ? Buffer(context, thread, instruction.buffer)
                                          : context.at<float>(instruction.output) + offset;
      RunLoop(instruction.op, count, At(context, instruction.a, offset, thread),
              At(context, instruction.b, offset, thread), instruction.alpha, instruction.beta, to);
      if (!instruction.type.IsFloat()) {
        StoreFloats(instruction.type, to, count, context.tensors[instruction.output], offset);
      }
    }
  }

  Rows rows_;
  const StorageTypes types_;
  std::vector<int> kept_;  // Buffers that are never reused.
  int64_t images_;
  int64_t block_rows_ = 1, block_floats_ = 1;
  int num_threads_;
  int num_buffers_ = 0;  // Per thread.
  int shared_ = 0;
  std::vector<Operand> operands_;
  std::vector<Instruction> instructions_;
  std::string description_;
};

}  // namespace

std::unique_ptr<Piece> MakeLoopNest(absl::Span<const Step* const> steps, absl::Span<const int> results,
                                    const StorageTypes& types, std::string name, int num_threads) {
  return std::make_unique<LoopNest>(steps, results, types, std::move(name), num_threads);
}

std::unique_ptr<Piece> MakeStepsInPlace(std::vector<Step> steps, int storage, const StorageTypes& types,
                                        std::string name, int num_threads) {
  // Intermediate results get numbers that no tensor has.
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].value = i == 0 ? storage : std::numeric_limits<int>::max() - static_cast<int>(i);
    steps[i].result = i + 1 == steps.size() ? storage : std::numeric_limits<int>::max() - static_cast<int>(i) - 1;
  }
  std::vector<const Step*> pointers;
  for (const Step& step : steps) pointers.push_back(&step);
  return MakeLoopNest(pointers, {storage}, types, std::move(name), num_threads);
}

}  // namespace onednn
}  // namespace permafrost
