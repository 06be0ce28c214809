// Places storages in one block by their lifetimes, and runs the pieces one after the other.
#include "runtime_check/delegates/onednn/compiled_partition.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "graph/status.h"
#include "runtime_check/delegates/onednn/fusion.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/primitives.h"
#include "runtime_check/planner.h"

namespace permafrost {
namespace onednn {
namespace {

constexpr int kNone = -1;

class Pieces final : public CompiledPartition {
 public:
  absl::Status Init(const Partition& partition, const PrecisionPlan& plan, int num_threads, PackedWeights* packed) {
    // OpenMP's threads wait by spinning: more of them than processors would keep those that work from it.
    num_threads = std::min(num_threads, std::max(1, omp_get_num_procs()));
    num_threads_ = num_threads;
    const ThreadsInScope threads(num_threads);
    PF_ASSIGN_OR_RETURN(Fused fused, Fuse(partition, plan, num_threads, packed));
    pieces_ = std::move(fused.pieces);
    if (fused.wants_finite) partition_ = std::make_unique<Partition>(partition);
    for (const int input : partition.inputs) {
      const DelegateTensor& tensor = partition.tensors[input];
      inputs_.push_back(input);
      input_floats_.push_back(tensor.dtype == DType::kFloat ? tensor.shape.num_elements() : 0);
    }
    for (const int output : partition.outputs) outputs_.push_back(fused.storage[output]);
    return Place(fused.bytes);
  }

  int64_t scratch_bytes() const override { return arena_bytes_ + piece_scratch_bytes_; }
  int64_t constant_bytes() const override {
    int64_t bytes = 0;
    for (const std::unique_ptr<Piece>& piece : pieces_) bytes += piece->constant_bytes();
    return bytes;
  }
  std::vector<std::string> Describe() const override {
    std::vector<std::string> lines;
    for (const std::unique_ptr<Piece>& piece : pieces_) lines.push_back(piece->Describe());
    return lines;
  }

  absl::Status Run(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                   const PieceCallback& on_piece) override {
    const ThreadsInScope threads(num_threads_);
    if (scratch != arena_) {
      arena_ = scratch;
      for (size_t i = 0; i < offsets_.size(); ++i) {
        if (offsets_[i] != kNone) tensors_[i] = arena_ + offsets_[i];
      }
    }
    // Pieces write to what they made alone.
    for (size_t i = 0; i < inputs.size(); ++i) tensors_[inputs_[i]] = const_cast<char*>(inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) tensors_[outputs_[i]] = outputs[i];
    bool has_non_finite = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      has_non_finite = has_non_finite || HasNonFinite(inputs[i], input_floats_[i]);
    }
    if (has_non_finite && partition_ != nullptr) return RunInFloats(inputs, outputs, on_piece);
    const RunContext context{tensors_.data(), scratch + arena_bytes_, num_threads_, has_non_finite};
    if (on_piece != nullptr) return RunWatched(context, on_piece);
    for (const std::unique_ptr<Piece>& piece : pieces_) {
      PF_RETURN_IF_ERROR(Annotate(piece->Run(context), piece->name));
    }
    return absl::OkStatus();
  }

 private:
  // The texts are made once: a small piece takes less time than its text takes to be put together.
  absl::Status RunWatched(const RunContext& context, const PieceCallback& on_piece) {
    if (descriptions_.empty()) descriptions_ = Describe();
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < pieces_.size(); ++i) {
      PF_RETURN_IF_ERROR(Annotate(pieces_[i]->Run(context), pieces_[i]->name));
      on_piece(descriptions_[i],
               i == 0 ? absl::FromChrono(std::chrono::steady_clock::now() - start) : SinceTheOneBefore());
    }
    return absl::OkStatus();
  }

  absl::Status Place(const std::vector<int64_t>& bytes) {
    const size_t count = bytes.size();
    tensors_.assign(count, nullptr);
    offsets_.assign(count, kNone);
    std::vector<bool> is_given(count, false);
    for (const int input : inputs_) is_given[input] = true;
    for (const int output : outputs_) is_given[output] = true;
    std::vector<int> last_read(count, kNone);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      for (const int tensor : pieces_[i]->reads) last_read[tensor] = static_cast<int>(i);
      piece_scratch_bytes_ = std::max(piece_scratch_bytes_, pieces_[i]->scratch_bytes());
    }
    std::vector<Buffer> buffers;
    std::vector<int> buffer_of(count, kNone);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const auto position = static_cast<int>(i);
      const Piece& piece = *pieces_[i];
      for (size_t j = 0; j < piece.reads.size(); ++j) {
        if (!is_given[piece.reads[j]] && buffer_of[piece.reads[j]] == kNone) {
          return absl::InternalError(absl::StrCat(piece.name, " reads what nobody has made"));
        }
      }
      for (size_t j = 0; j < piece.writes.size(); ++j) {
        const int tensor = piece.writes[j];
        if (is_given[tensor]) continue;
        int buffer = kNone;
        for (const int candidate : j == 0 ? piece.in_place : std::vector<int>()) {
          if (is_given[candidate] || last_read[candidate] != position || bytes[candidate] != bytes[tensor]) continue;
          if (buffers[buffer_of[candidate]].last == position) buffer = buffer_of[candidate];
        }
        if (buffer == kNone) {
          buffer = static_cast<int>(buffers.size());
          buffers.push_back({bytes[tensor], position, position, 0});
        }
        buffer_of[tensor] = buffer;
        buffers[buffer].last = std::max({buffers[buffer].last, position, last_read[tensor]});
      }
    }
    PF_ASSIGN_OR_RETURN(arena_bytes_, PlaceBuffers(&buffers));
    for (size_t i = 0; i < count; ++i) {
      if (buffer_of[i] != kNone) offsets_[i] = buffers[buffer_of[i]].offset;
    }
    return absl::OkStatus();
  }

  // Numbers that are not finite have no eight bits. What computes them in floats is made when it is first needed.
  absl::Status RunInFloats(absl::Span<const char* const> inputs, absl::Span<char* const> outputs,
                           const PieceCallback& on_piece) {
    if (in_floats_ == nullptr) {
      auto made = std::make_unique<Pieces>();
      PF_RETURN_IF_ERROR(made->Init(*partition_, PrecisionPlan(), num_threads_, nullptr));
      floats_scratch_.resize(static_cast<size_t>(made->scratch_bytes()) + 64);
      in_floats_ = std::move(made);
    }
    const auto address = reinterpret_cast<uintptr_t>(floats_scratch_.data());
    return in_floats_->Run(inputs, outputs, floats_scratch_.data() + (64 - address % 64) % 64, on_piece);
  }

  std::unique_ptr<Partition> partition_;  // Where some of it is for finite numbers alone.
  std::unique_ptr<Pieces> in_floats_;
  std::vector<char> floats_scratch_;
  int num_threads_ = 1;
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::vector<std::string> descriptions_;  // Of the pieces; empty until somebody watches a run.
  std::vector<int> inputs_, outputs_;  // Storages.
  std::vector<int64_t> input_floats_;
  std::vector<int64_t> offsets_;  // By storage, in the scratch memory; kNone where the caller gives it.
  std::vector<char*> tensors_;    // By storage.
  char* arena_ = nullptr;         // For which the pointers were computed.
  int64_t arena_bytes_ = 0, piece_scratch_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledPartition>> CompilePartition(const Partition& partition,
                                                                    const PrecisionPlan& plan, int num_threads,
                                                                    PackedWeights* packed) {
  auto compiled = std::make_unique<Pieces>();
  PF_RETURN_IF_ERROR(compiled->Init(partition, plan, num_threads, packed));
  return std::unique_ptr<CompiledPartition>(std::move(compiled));
}

}  // namespace onednn
}  // namespace permafrost
