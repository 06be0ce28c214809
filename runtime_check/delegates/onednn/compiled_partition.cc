// Plans the memory of the storages in one block by their lifetimes, and runs the pieces. Pieces run one after the
// other, except in stretches of pieces that are too small for all threads, which run concurrently.
#include "runtime_check/delegates/onednn/compiled_partition.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/fusion.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/primitives.h"
#include "runtime_check/planning/buffer_placement.h"
#include "runtime_check/planning/stretch.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace onednn {
namespace {

constexpr int kNone = -1;

// Speeds of one thread, and the cost of sharing a piece among OpenMP's threads, as measured with the models in the
// tests.
constexpr double kProductsPerNs = 30;
constexpr double kBytesPerNs = 8;
constexpr double kCallNs = 500;
constexpr double kShareNs = 2000;
constexpr double kShareFromNs = 4000;

class Pieces final : public CompiledPartition {
 public:
  absl::Status Init(const Partition& partition, const PrecisionPlan& plan, FusionOptions options, int num_lanes) {
    // More threads than processors would only take turns.
    num_threads_ = std::min(options.num_threads, std::max(1, omp_get_num_procs()));
    num_lanes_ = std::min(num_lanes, num_threads_ > 1 ? num_threads_ : std::max(1, omp_get_num_procs()));
    options.num_threads = num_threads_;
    uses_winograd_ = options.uses_winograd;
    const ThreadsInScope in_scope(num_threads_);
    PF_ASSIGN_OR_RETURN(TeamLease lease, TeamLease::Take(TeamSize()));
    const TeamInScope team(std::move(lease));
    PF_ASSIGN_OR_RETURN(Fused fused, Fuse(partition, plan, options));
    PF_RETURN_IF_ERROR(ChooseStretches(partition, plan, options, &fused));
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

  int64_t scratch_bytes() const override {
    return arena_bytes_ + piece_scratch_bytes_ * (runners_.empty() ? 1 : num_lanes_);
  }
  int64_t constant_bytes() const override {
    int64_t bytes = 0;
    for (const std::unique_ptr<Piece>& piece : pieces_) bytes += piece->constant_bytes();
    return bytes;
  }
  std::vector<std::string> Describe() const override {
    std::vector<std::string> lines;
    for (const std::unique_ptr<Piece>& piece : pieces_) {
      lines.push_back(absl::StrCat(piece->Describe(), piece->note.empty() ? "" : "; ", piece->note));
    }
    for (const Stretch& stretch : stretches_) {
      for (int i = stretch.begin; i < stretch.end; ++i) absl::StrAppend(&lines[i], ", beside others");
    }
    return lines;
  }

  absl::Status Run(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                   const PieceCallback& on_piece) override {
    const ThreadsInScope threads(num_threads_);
    PF_ASSIGN_OR_RETURN(TeamLease lease, TeamLease::Take(TeamSize()));
    const TeamInScope team(std::move(lease));
    if (scratch != arena_) {
      arena_ = scratch;
      for (size_t i = 0; i < offsets_.size(); ++i) {
        if (offsets_[i] != kNone) tensors_[i] = arena_ + offsets_[i];
      }
    }
    // The cast is safe: pieces write only to storages that a piece has produced.
    for (size_t i = 0; i < inputs.size(); ++i) tensors_[inputs_[i]] = const_cast<char*>(inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) tensors_[outputs_[i]] = outputs[i];
    bool has_non_finite = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      has_non_finite = has_non_finite || HasNonFinite(inputs[i], input_floats_[i]);
    }
    if (has_non_finite && partition_ != nullptr) return RunInFloats(inputs, outputs, on_piece);
    std::atomic<bool> non_finite = has_non_finite;
    const RunContext context{tensors_.data(), scratch + arena_bytes_, num_threads_, &non_finite};
    if (on_piece != nullptr) return RunWatched(context, on_piece);
    size_t next = 0;
    for (size_t i = 0; i < pieces_.size();) {
      if (next < stretches_.size() && static_cast<size_t>(stretches_[next].begin) == i) {
        PF_RETURN_IF_ERROR(RunStretch(context, runners_[next].get()));
        i = static_cast<size_t>(stretches_[next++].end);
        continue;
      }
      PF_RETURN_IF_ERROR(Annotate(pieces_[i]->Run(context), pieces_[i]->name));
      PF_RETURN_IF_ERROR(CheckNotCancelled());
      ++i;
    }
    return absl::OkStatus();
  }

 private:
  int TeamSize() const { return std::max(num_threads_, num_lanes_); }

  double OneThreadNs(const Piece& piece, const std::vector<int64_t>& bytes) const {
    double moved = static_cast<double>(piece.constant_bytes());
    for (const int storage : piece.reads) moved += static_cast<double>(bytes[storage]);
    for (const int storage : piece.writes) moved += static_cast<double>(bytes[storage]);
    return kCallNs + static_cast<double>(piece.products) / kProductsPerNs + moved / kBytesPerNs;
  }

  // Finds the pieces that are faster when they run concurrently, and makes them again for one thread each. oneDNN
  // divides the work of a primitive when it is created.
  absl::Status ChooseStretches(const Partition& partition, const PrecisionPlan& plan, const FusionOptions& options,
                               Fused* fused) {
    if (num_lanes_ < 2) return absl::OkStatus();
    std::vector<Task> tasks = TasksOf(fused->pieces, fused->bytes);
    std::vector<Stretch> stretches = FindStretches(tasks, num_lanes_);
    if (stretches.empty()) return absl::OkStatus();
    if (num_threads_ > 1) {
      std::vector<bool> is_beside(fused->pieces.size(), false);
      for (const Stretch& stretch : stretches) {
        for (int i = stretch.begin; i < stretch.end; ++i) is_beside[fused->order[i]] = true;
      }
      PF_ASSIGN_OR_RETURN(Fused again, Fuse(partition, plan, options, is_beside));
      // oneDNN may lack a primitive for one thread that it has for several. Fusion then makes different pieces.
      const auto is_same = [](const std::unique_ptr<Piece>& a, const std::unique_ptr<Piece>& b) {
        return a->reads == b->reads && a->writes == b->writes;
      };
      if (again.pieces.size() != fused->pieces.size() ||
          !std::equal(again.pieces.begin(), again.pieces.end(), fused->pieces.begin(), is_same)) {
        return absl::OkStatus();
      }
      *fused = std::move(again);
    }
    tasks_ = std::move(tasks);
    stretches_ = std::move(stretches);
    return absl::OkStatus();
  }

  std::vector<Task> TasksOf(const std::vector<std::unique_ptr<Piece>>& pieces,
                            const std::vector<int64_t>& bytes) const {
    std::vector<Task> tasks(pieces.size());
    std::vector<std::vector<int>> users(bytes.size());  // Indexed by storage; the first piece writes it.
    for (size_t i = 0; i < pieces.size(); ++i) {
      Task& task = tasks[i];
      const Piece& piece = *pieces[i];
      for (const int storage : piece.reads) {
        if (users[storage].empty()) continue;
        task.after.push_back(users[storage].front());
        users[storage].push_back(static_cast<int>(i));
      }
      for (const int storage : piece.writes) {
        task.after.insert(task.after.end(), users[storage].begin(), users[storage].end());
        users[storage] = {static_cast<int>(i)};
      }
      task.beside_ns = OneThreadNs(piece, bytes);
      const bool is_shared = num_threads_ > 1 && task.beside_ns >= kShareFromNs;
      task.alone_ns = is_shared ? kShareNs + task.beside_ns / num_threads_ : task.beside_ns;
    }
    return tasks;
  }

  absl::Status RunStretch(const RunContext& context, StretchRunner* runner) {
    runner->Begin();
#pragma omp parallel num_threads(TeamSize())
    if (const int lane = omp_get_thread_num(); lane < num_lanes_) {
      RunContext own = context;
      own.scratch += lane * piece_scratch_bytes_;
      runner->Work([&](int i) { return Annotate(pieces_[i]->Run(own), pieces_[i]->name); });
    }
    return runner->status();
  }

  // The descriptions are built once: building one takes longer than running a small piece.
  absl::Status RunWatched(const RunContext& context, const PieceCallback& on_piece) {
    if (descriptions_.empty()) descriptions_ = Describe();
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < pieces_.size(); ++i) {
      PF_RETURN_IF_ERROR(Annotate(pieces_[i]->Run(context), pieces_[i]->name));
      PF_RETURN_IF_ERROR(CheckNotCancelled());
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
    // The scratch memory of each thread is aligned to a cache line.
    piece_scratch_bytes_ = (piece_scratch_bytes_ + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    std::vector<Stretch> stretch_at(pieces_.size(), Stretch{kNone, kNone});
    for (const Stretch& stretch : stretches_) {
      std::fill(stretch_at.begin() + stretch.begin, stretch_at.begin() + stretch.end, stretch);
    }
    std::vector<std::vector<int>> users;  // Indexed by buffer: the pieces in stretches that use its content.
    std::vector<Buffer> buffers;
    std::vector<int> buffer_of(count, kNone);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const auto position = static_cast<int>(i);
      const Piece& piece = *pieces_[i];
      for (size_t j = 0; j < piece.reads.size(); ++j) {
        if (!is_given[piece.reads[j]] && buffer_of[piece.reads[j]] == kNone) {
          return absl::InternalError(absl::StrCat(piece.name, " reads a value that no earlier piece computes"));
        }
        if (!is_given[piece.reads[j]] && stretch_at[i].begin != kNone) {
          users[buffer_of[piece.reads[j]]].push_back(position);
        }
      }
      for (size_t j = 0; j < piece.writes.size(); ++j) {
        const int tensor = piece.writes[j];
        if (is_given[tensor]) continue;
        int buffer = kNone;
        const Stretch stretch = stretch_at[i];
        for (const int candidate : j == 0 ? piece.in_place : std::vector<int>()) {
          if (is_given[candidate] || last_read[candidate] != position || bytes[candidate] != bytes[tensor]) continue;
          if (buffers[buffer_of[candidate]].last == position) buffer = buffer_of[candidate];
        }
        if (buffer == kNone) {
          buffer = static_cast<int>(buffers.size());
          buffers.push_back({bytes[tensor], position, position, 0});
          users.emplace_back();
        } else if (stretch.begin != kNone) {
          // All users of the overwritten content must have finished.
          for (const int user : users[buffer]) {
            if (user >= stretch.begin && user != position) tasks_[i].after.push_back(user);
          }
          users[buffer].clear();
        }
        if (stretch.begin != kNone) users[buffer].push_back(position);
        buffer_of[tensor] = buffer;
        buffers[buffer].last = std::max({buffers[buffer].last, position, last_read[tensor]});
      }
    }
    // The order inside a stretch is not known, so a buffer that is live in a part of it is live in all of it.
    for (Buffer& buffer : buffers) {
      if (stretch_at[buffer.first].begin != kNone) buffer.first = stretch_at[buffer.first].begin;
      if (stretch_at[buffer.last].begin != kNone) buffer.last = stretch_at[buffer.last].end - 1;
    }
    for (const Stretch& stretch : stretches_) runners_.push_back(std::make_unique<StretchRunner>(tasks_, stretch));
    PF_ASSIGN_OR_RETURN(arena_bytes_, PlaceBuffers(&buffers));
    for (size_t i = 0; i < count; ++i) {
      if (buffer_of[i] != kNone) offsets_[i] = buffers[buffer_of[i]].offset;
    }
    return absl::OkStatus();
  }

  // NaN and infinity have no 8-bit representation. The float version of the partition is compiled at its first use.
  absl::Status RunInFloats(absl::Span<const char* const> inputs, absl::Span<char* const> outputs,
                           const PieceCallback& on_piece) {
    if (in_floats_ == nullptr) {
      auto made = std::make_unique<Pieces>();
      PF_RETURN_IF_ERROR(made->Init(*partition_, PrecisionPlan(), {num_threads_, uses_winograd_}, num_lanes_));
      floats_scratch_.resize(static_cast<size_t>(made->scratch_bytes()) + 64);
      in_floats_ = std::move(made);
    }
    const auto address = reinterpret_cast<uintptr_t>(floats_scratch_.data());
    return in_floats_->Run(inputs, outputs, floats_scratch_.data() + (64 - address % 64) % 64, on_piece);
  }

  std::unique_ptr<Partition> partition_;  // Set if some pieces accept only finite numbers.
  std::unique_ptr<Pieces> in_floats_;
  std::vector<char> floats_scratch_;
  int num_threads_ = 1, num_lanes_ = 1;
  bool uses_winograd_ = true;
  std::vector<std::unique_ptr<Piece>> pieces_;
  // Set if pieces run concurrently; empty otherwise.
  std::vector<Task> tasks_;  // One task per piece.
  std::vector<Stretch> stretches_;
  std::vector<std::unique_ptr<StretchRunner>> runners_;  // Indexed by stretch.
  std::vector<std::string> descriptions_;                // Of the pieces; empty until the first profiled run.
  std::vector<int> inputs_, outputs_;                    // Storages.
  std::vector<int64_t> input_floats_;
  std::vector<int64_t> offsets_;  // Indexed by storage: offset in the scratch memory; kNone for memory of the caller.
  std::vector<char*> tensors_;    // By storage.
  char* arena_ = nullptr;         // The block for which the pointers were computed.
  int64_t arena_bytes_ = 0, piece_scratch_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledPartition>> CompilePartition(const Partition& partition,
                                                                    const PrecisionPlan& plan, FusionOptions options,
                                                                    int num_lanes) {
  auto compiled = std::make_unique<Pieces>();
  PF_RETURN_IF_ERROR(compiled->Init(partition, plan, options, num_lanes));
  return std::unique_ptr<CompiledPartition>(std::move(compiled));
}

}  // namespace onednn
}  // namespace permafrost
