// Compiles a partition: plans the memory, creates the operators, and runs them in order.
#include "runtime_check/delegates/xnnpack/compiled.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/xnnpack/fuse.h"
#include "runtime_check/delegates/xnnpack/library.h"
#include "runtime_check/delegates/xnnpack/loops.h"
#include "runtime_check/delegates/xnnpack/operator.h"
#include "runtime_check/delegates/xnnpack/pools.h"
#include "runtime_check/delegates/xnnpack/translate.h"
#include "runtime_check/planning/buffer_placement.h"

namespace permafrost {
namespace xnnpack {
namespace {

// Rejects a partition in which the infinities of a Pad reach anything but a max pooling: clamps and products of
// infinity differ from TensorFlow's.
absl::Status CheckInfinitePads(const std::vector<Operation>& operations) {
  absl::flat_hash_set<int> infinite;
  for (const Operation& operation : operations) {
    for (const int input : operation.inputs) {
      if (!infinite.contains(input) || operation.kind == OperationKind::kMaxPool) continue;
      if (operation.kind == OperationKind::kAlias) {
        infinite.insert(operation.outputs.begin(), operation.outputs.end());
        continue;
      }
      return absl::UnimplementedError(
          absl::StrCat("'", operation.nodes[0]->name(), "' reads a tensor padded with infinity"));
    }
    if (operation.kind == OperationKind::kPad && std::isinf(operation.alpha)) {
      infinite.insert(operation.outputs.begin(), operation.outputs.end());
    }
  }
  return absl::OkStatus();
}

constexpr int kNone = -1;
constexpr size_t kLeastPage = 4096;

// Returns true if the library may read XNN_EXTRA_BYTES past the end of the memory because they lie on the same page as
// its last byte. The values read there do not affect the result.
bool MayReadBeyond(const char* memory, size_t bytes) {
  const size_t end = reinterpret_cast<uintptr_t>(memory + bytes) % kLeastPage;
  return end != 0 && kLeastPage - end >= XNN_EXTRA_BYTES;
}

// Memory that is shared by tensors with the same elements under different shapes.
struct Place {
  enum class Home { kInput, kOutput, kScratch, kConstant };
  Home home = Home::kScratch;
  int index = 0;  // Index of the partition's input or output.
  size_t bytes = 0;
  size_t offset = 0;  // In the scratch memory, if is_planned: its own home, or where it goes when a read beyond its
                      // home is forbidden.
  bool is_planned = false;
  bool is_read_by_library = false;
  int first = 0, last = 0;  // First step that writes it and last step that reads it.
  std::vector<float> constant;
};

struct Step {
  Operation operation;
  OperatorPointer op;                // Null for the delegate's own loops.
  std::vector<int> inputs, outputs;  // Indices of places.
  std::string name;
};

struct Move {
  int from;  // Index of a place.
  int output;
};

class Compiled final : public CompiledPartition {
 public:
  explicit Compiled(int num_threads) : num_threads_(num_threads) {}

  absl::Status Build(const Partition& partition);

  int64_t scratch_bytes() const override { return scratch_bytes_; }
  int64_t constant_bytes() const override { return constant_bytes_; }
  std::vector<std::string> Describe() const override;
  absl::Status Run(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                   const PieceCallback& on_piece) override;

 private:
  void FindPlaces(const Partition& partition, const std::vector<Operation>& operations);
  int AddPlace(Place::Home home, int index, size_t bytes);
  absl::Status MakeSteps(std::vector<Operation> operations);
  absl::Status PlaceScratch();
  absl::Status CheckInputs(absl::Span<const char* const> inputs) const;
  // Computes the addresses of the places for this run.
  void Locate(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch);
  absl::Status SetUp(pthreadpool_t pool);
  absl::Status RunStep(const Step& step, pthreadpool_t pool) const;
  const float* Input(const Step& step, size_t i) const {
    return reinterpret_cast<const float*>(addresses_[step.inputs[i]]);
  }

  const int num_threads_;
  std::vector<Place> places_;
  std::vector<int> place_of_;  // Indexed by tensor.
  std::vector<int> input_places_;
  std::vector<Step> steps_;
  std::vector<Move> moves_;  // Outputs that no step writes directly.
  bool loses_nan_ = false;
  int64_t scratch_bytes_ = 0, constant_bytes_ = 0;
  std::vector<char*> addresses_;  // Indexed by place: addresses in the previous run.
  std::vector<char*> located_;    // Indexed by place: addresses in this run.
  bool is_set_up_ = false;
};

size_t BytesOf(const DelegateTensor& tensor) { return Product(tensor.shape, 0, tensor.shape.rank()) * sizeof(float); }

int Compiled::AddPlace(Place::Home home, int index, size_t bytes) {
  Place& place = places_.emplace_back();
  place.home = home;
  place.index = index;
  place.bytes = bytes;
  return static_cast<int>(places_.size()) - 1;
}

void Compiled::FindPlaces(const Partition& partition, const std::vector<Operation>& operations) {
  place_of_.assign(partition.tensors.size(), kNone);
  for (size_t i = 0; i < partition.inputs.size(); ++i) {
    const int tensor = partition.inputs[i];
    place_of_[tensor] = AddPlace(Place::Home::kInput, static_cast<int>(i), BytesOf(partition.tensors[tensor]));
    input_places_.push_back(place_of_[tensor]);
  }
  for (const Operation& operation : operations) {
    for (const int input : operation.inputs) {
      if (place_of_[input] != kNone) continue;
      place_of_[input] = AddPlace(Place::Home::kConstant, 0, BytesOf(partition.tensors[input]));
      std::vector<float>& constant = places_.back().constant;
      constant = Floats(*partition.tensors[input].constant);
      constant.resize(constant.size() + XNN_EXTRA_BYTES / sizeof(float));
    }
    for (const int output : operation.outputs) {
      place_of_[output] = operation.kind == OperationKind::kAlias || operation.is_in_place()
                              ? place_of_[operation.inputs[0]]
                              : AddPlace(Place::Home::kScratch, 0, BytesOf(partition.tensors[output]));
    }
  }
  for (size_t i = 0; i < partition.outputs.size(); ++i) {
    const int number = place_of_[partition.outputs[i]];
    Place& place = places_[number];
    if (place.home == Place::Home::kScratch) {
      place.home = Place::Home::kOutput;
      place.index = static_cast<int>(i);
    } else {
      moves_.push_back({number, static_cast<int>(i)});
    }
  }
}

absl::Status Compiled::MakeSteps(std::vector<Operation> operations) {
  for (Operation& operation : operations) {
    if (operation.kind == OperationKind::kAlias) continue;
    const auto number = static_cast<int>(steps_.size());
    Step& step = steps_.emplace_back();
    loses_nan_ |= operation.loses_nan() || operation.has_clamp();
    for (const int input : operation.inputs) {
      Place& place = places_[place_of_[input]];
      place.last = number + 1;
      place.is_read_by_library |= operation.is_library();
      step.inputs.push_back(place_of_[input]);
    }
    for (const int output : operation.outputs) {
      Place& place = places_[place_of_[output]];
      if (!operation.is_in_place()) place.first = number + 1;
      place.last = std::max(place.last, number + 1);
      step.outputs.push_back(place_of_[output]);
    }
    step.name = std::string(operation.nodes.back()->name());
    if (operation.is_library()) {
      absl::StatusOr<OperatorPointer> op = MakeOperator(operation);
      PF_RETURN_IF_ERROR(Annotate(op.status(), operation.nodes[0]->Describe()));
      step.op = *std::move(op);
    }
    operation.filter.reset();  // The operator has packed it.
    step.operation = std::move(operation);
  }
  return absl::OkStatus();
}

absl::Status Compiled::PlaceScratch() {
  const auto end = static_cast<int>(steps_.size()) + 1;
  for (const Move& move : moves_) places_[move.from].last = end;
  std::vector<Buffer> buffers;
  std::vector<Place*> owners;
  for (Place& place : places_) {
    const bool is_outside = place.home == Place::Home::kInput || place.home == Place::Home::kOutput;
    if (place.home == Place::Home::kConstant || (is_outside && !place.is_read_by_library)) continue;
    place.is_planned = true;
    Buffer& buffer = buffers.emplace_back();
    buffer.bytes = static_cast<int64_t>(place.bytes + XNN_EXTRA_BYTES);
    buffer.first = place.first;
    buffer.last = place.home == Place::Home::kOutput ? end : place.last;
    owners.push_back(&place);
  }
  PF_ASSIGN_OR_RETURN(scratch_bytes_, PlaceBuffers(&buffers));
  for (size_t i = 0; i < owners.size(); ++i) owners[i]->offset = static_cast<size_t>(buffers[i].offset);
  return absl::OkStatus();
}

absl::Status Compiled::Build(const Partition& partition) {
  const int64_t bytes_before = LibraryBytes();
  std::vector<Operation> operations;
  int64_t weight_bytes = 0;
  for (const DelegateNode& node : partition.nodes) {
    absl::StatusOr<Operation> operation = Translate(partition, node);
    PF_RETURN_IF_ERROR(Annotate(operation.status(), node.node->Describe()));
    if (operation->filter.has_value()) weight_bytes += static_cast<int64_t>(operation->filter->bytes().size());
    operations.push_back(*std::move(operation));
  }
  Fuse(partition, &operations);
  PF_RETURN_IF_ERROR(CheckInfinitePads(operations));
  FindPlaces(partition, operations);
  PF_RETURN_IF_ERROR(MakeSteps(std::move(operations)));
  PF_RETURN_IF_ERROR(PlaceScratch());
  // Makes the library allocate its address tables now, so that a run does not allocate. The memory is not accessed.
  for (const Place& place : places_) {
    static char stand_in[64];
    located_.push_back(
        place.constant.empty() ? stand_in : const_cast<char*>(reinterpret_cast<const char*>(place.constant.data())));
  }
  addresses_ = located_;
  PF_ASSIGN_OR_RETURN(const PoolLease lease, PoolLease::Take(num_threads_));
  PF_RETURN_IF_ERROR(SetUp(lease.get()));
  is_set_up_ = false;
  constant_bytes_ = std::max(weight_bytes, LibraryBytes() - bytes_before);
  for (const Place& place : places_) constant_bytes_ += static_cast<int64_t>(place.constant.size() * sizeof(float));
  return absl::OkStatus();
}

absl::Status Compiled::SetUp(pthreadpool_t pool) {
  std::vector<const float*> inputs;
  for (const Step& step : steps_) {
    if (step.op == nullptr) continue;
    inputs.clear();
    for (size_t i = 0; i < step.inputs.size(); ++i) inputs.push_back(Input(step, i));
    PF_RETURN_IF_ERROR(SetUpOperator(step.operation, step.op.get(), inputs.data(),
                                     reinterpret_cast<float*>(addresses_[step.outputs[0]]), pool));
  }
  return absl::OkStatus();
}

std::vector<std::string> Compiled::Describe() const {
  std::vector<std::string> lines;
  for (const Step& step : steps_) {
    const Operation& operation = step.operation;
    std::string line = absl::StrCat(step.name, ": ", NameOf(operation.kind));
    if (operation.kind == OperationKind::kConvolution || operation.kind == OperationKind::kTransposedConvolution) {
      const WindowGeometry& window = operation.window;
      absl::StrAppend(&line, " ", window.is_depthwise ? "by channel, " : "", window.kernel_height, "x",
                      window.kernel_width);
    }
    if (!operation.bias.empty() && operation.kind != OperationKind::kBias) absl::StrAppend(&line, " + bias");
    if (operation.has_clamp() && operation.kind != OperationKind::kClamp) absl::StrAppend(&line, " + clamp");
    lines.push_back(std::move(line));
  }
  if (!moves_.empty()) lines.push_back(absl::StrCat("copies of ", moves_.size(), " outputs"));
  return lines;
}

absl::Status Compiled::CheckInputs(absl::Span<const char* const> inputs) const {
  if (!loses_nan_) return absl::OkStatus();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (AreFinite({inputs[i], places_[input_places_[i]].bytes})) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("xnnpack: an input of the partition that begins with '", steps_[0].operation.nodes[0]->name(),
                     "' holds NaN or infinity, for which XNNPACK and TensorFlow differ; choose another delegate"));
  }
  return absl::OkStatus();
}

void Compiled::Locate(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch) {
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    char* home = nullptr;
    switch (place.home) {
      case Place::Home::kInput:
        home = const_cast<char*>(inputs[place.index]);
        break;
      case Place::Home::kOutput:
        home = outputs[place.index];
        break;
      case Place::Home::kScratch:
        home = scratch + place.offset;
        break;
      case Place::Home::kConstant:
        home = const_cast<char*>(reinterpret_cast<const char*>(place.constant.data()));
        break;
    }
    const bool is_outside = place.home == Place::Home::kInput || place.home == Place::Home::kOutput;
    const bool is_staged = is_outside && place.is_planned && !MayReadBeyond(home, place.bytes);
    located_[i] = is_staged ? scratch + place.offset : home;
  }
}

absl::Status Compiled::RunStep(const Step& step, pthreadpool_t pool) const {
  const Operation& operation = step.operation;
  if (step.op != nullptr) return ToStatus(xnn_run_operator(step.op.get(), pool), step.name);
  if (operation.kind == OperationKind::kCopy) {
    for (const BlockCopy& copy : operation.copies) {
      CopyBlock(copy, reinterpret_cast<const float*>(addresses_[place_of_[copy.input]]),
                reinterpret_cast<float*>(addresses_[place_of_[copy.output]]), pool);
    }
    return absl::OkStatus();
  }
  if (operation.kind == OperationKind::kBias) {
    AddBias(operation, reinterpret_cast<float*>(addresses_[step.outputs[0]]), pool);
    return absl::OkStatus();
  }
  ApplyLoop(operation.kind, operation.rows, Input(step, 0), reinterpret_cast<float*>(addresses_[step.outputs[0]]),
            pool);
  return absl::OkStatus();
}

absl::Status Compiled::Run(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                           const PieceCallback& on_piece) {
  PF_RETURN_IF_ERROR(CheckInputs(inputs));
  PF_ASSIGN_OR_RETURN(const PoolLease lease, PoolLease::Take(num_threads_));
  Locate(inputs, outputs, scratch);
  if (!is_set_up_ || located_ != addresses_) {
    addresses_ = located_;
    is_set_up_ = false;
    PF_RETURN_IF_ERROR(SetUp(lease.get()));
    is_set_up_ = true;
  }
  for (const int number : input_places_) {
    const char* const home = inputs[places_[number].index];
    if (addresses_[number] != home) std::memcpy(addresses_[number], home, places_[number].bytes);
  }
  for (const Step& step : steps_) {
    if (!on_piece) {
      PF_RETURN_IF_ERROR(RunStep(step, lease.get()));
      continue;
    }
    const absl::Time start = absl::Now();
    PF_RETURN_IF_ERROR(RunStep(step, lease.get()));
    on_piece(step.name, std::max(absl::ZeroDuration(), absl::Now() - start));
  }
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].home != Place::Home::kOutput) continue;
    char* const home = outputs[places_[i].index];
    if (addresses_[i] != home) std::memcpy(home, addresses_[i], places_[i].bytes);
  }
  for (const Move& move : moves_) std::memcpy(outputs[move.output], addresses_[move.from], places_[move.from].bytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition, int num_threads) {
  auto compiled = std::make_unique<Compiled>(num_threads);
  PF_RETURN_IF_ERROR(compiled->Build(partition));
  return compiled;
}

}  // namespace xnnpack
}  // namespace permafrost
