// Contexts that present other types to a kernel than its node has, and the conversions.
#include "runtime_check/kernels/stand_in.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/tensor.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/scratch.h"

namespace permafrost {
namespace {

// Minimum number of elements per thread.
constexpr int64_t kGrain = 1 << 14;

// Returns the type that the kernel sees.
DType Seen(StandIn kind, DType dtype) {
  if (kind == StandIn::kNumberForString) return dtype == DType::kString ? DType::kInt64 : dtype;
  return dtype == DType::kHalf || dtype == DType::kBFloat16 ? DType::kFloat : dtype;
}

struct StandInState : KernelState {
  std::unique_ptr<KernelState> inner;
  int64_t inner_scratch = 0;
  // By input: the converted value if it is known before the run (empty if there is none), otherwise its offset in the
  // scratch memory; and the number of its first string less 1.
  std::vector<Tensor> known;
  std::vector<int64_t> input_parts, numbers_before;
  std::vector<int64_t> output_parts;  // By output; -1 for none.
  std::vector<bool> input_is_converted;
};

// Converts the strings or 16-bit floats of an input to `to`.
void ConvertInput(const StandInState& state, int i, DType dtype, const char* data, int64_t count, ThreadPool* threads,
                  char* to) {
  const Conversion* conversion = ConversionFor(dtype);
  const int64_t before = state.numbers_before[i];
  const auto convert = [&](int64_t begin, int64_t end) {
    if (dtype == DType::kString) {
      for (int64_t e = begin; e < end; ++e) reinterpret_cast<int64_t*>(to)[e] = before + e + 1;
    } else {
      conversion->widen(data + begin * conversion->narrow_size, to + begin * conversion->wide_size, end - begin);
    }
  };
  if (threads == nullptr) {
    convert(0, count);
  } else {
    threads->ParallelFor(count, kGrain, convert);
  }
}

class StandInPreparation final : public PrepareContext {
 public:
  StandInPreparation(PrepareContext* outer, StandIn kind, StandInState* state)
      : outer_(outer), kind_(kind), state_(state), output_shapes_(outer->num_outputs()) {}

  const Node& node() const override { return outer_->node(); }
  int num_inputs() const override { return outer_->num_inputs(); }
  DType input_type(int i) const override { return Seen(kind_, outer_->input_type(i)); }
  const Shape& input_shape(int i) const override { return outer_->input_shape(i); }
  const Tensor* input_value(int i) const override {
    const Tensor* value = outer_->input_value(i);
    if (value == nullptr || !state_->input_is_converted[i]) return value;
    Tensor& known = state_->known[i];
    if (known.dtype() == DType::kInvalid) {
      char* data = nullptr;
      absl::StatusOr<Tensor> made = Tensor::Allocate(input_type(i), value->shape(), &data);
      if (!made.ok()) return nullptr;  // The value is then converted during the run.
      ConvertInput(*state_, i, value->dtype(), value->bytes().data(), value->num_elements(), nullptr, data);
      known = *std::move(made);
    }
    return &known;
  }
  int num_outputs() const override { return outer_->num_outputs(); }
  DType output_type(int i) const override { return Seen(kind_, outer_->output_type(i)); }
  void SetOutputShape(int i, Shape shape) override {
    output_shapes_[i] = shape;
    outer_->SetOutputShape(i, std::move(shape));
  }
  absl::Status NeedsValueOf(int i) override { return outer_->NeedsValueOf(i); }
  void OutputShapeDependsOnValues(int i) override {
    output_shapes_[i].reset();
    outer_->OutputShapeDependsOnValues(i);
  }
  void SetState(std::unique_ptr<KernelState> state) override { state_->inner = std::move(state); }
  void ReleaseInput(int i) override {
    released_.push_back(i);
    outer_->ReleaseInput(i);
  }
  void RequestScratch(size_t bytes) override { scratch_bytes_ = bytes; }
  int num_threads() const override { return outer_->num_threads(); }
  const void* kernel_data() const override { return outer_->kernel_data(); }
  void ComputeWith(ComputeFunction function) override { outer_->ComputeWith(function); }

  // Called after the kernel's Prepare: requests the memory for all conversions and for the kernel.
  absl::Status Finish() {
    for (int i : released_) state_->known[i] = Tensor();
    if (scratch_bytes_ > INT64_MAX) return absl::InvalidArgumentError("more scratch memory than can be addressed");
    ScratchParts parts;
    PF_ASSIGN_OR_RETURN(state_->inner_scratch, parts.Add(static_cast<int64_t>(scratch_bytes_), 1));
    for (int i = 0; i < num_inputs(); ++i) {
      if (!state_->input_is_converted[i] || state_->known[i].dtype() != DType::kInvalid) continue;
      PF_ASSIGN_OR_RETURN(state_->input_parts[i],
                          parts.Add(input_shape(i).num_elements(), static_cast<int64_t>(SizeOf(input_type(i)))));
    }
    for (int i = 0; i < num_outputs(); ++i) {
      if (output_type(i) == outer_->output_type(i) || !output_shapes_[i].has_value()) continue;
      PF_ASSIGN_OR_RETURN(const int64_t count, output_shapes_[i]->CheckedNumElements());
      PF_ASSIGN_OR_RETURN(state_->output_parts[i], parts.Add(count, static_cast<int64_t>(SizeOf(output_type(i)))));
    }
    parts.Request(outer_);
    return absl::OkStatus();
  }

 private:
  PrepareContext* outer_;
  StandIn kind_;
  StandInState* state_;
  std::vector<std::optional<Shape>> output_shapes_;
  std::vector<int> released_;
  size_t scratch_bytes_ = 0;
};

class StandInComputation final : public ComputeContext {
 public:
  StandInComputation(ComputeContext* outer, StandIn kind) : outer_(outer), kind_(kind), state_(State()) {
    inputs_.reserve(outer->num_inputs());
    for (int i = 0; i < outer->num_inputs(); ++i) {
      const Value& value = outer->input_at(i);
      inputs_.push_back(value);
      if (!state_.input_is_converted[i]) continue;
      Value& seen = inputs_.back();
      seen.dtype = Seen(kind, value.dtype);
      if (state_.known[i].dtype() != DType::kInvalid) {
        seen.data = const_cast<char*>(state_.known[i].bytes().data());  // Safe: kernels write only to outputs.
        seen.bytes = static_cast<int64_t>(state_.known[i].bytes().size());
      } else if (value.data != nullptr || value.strings != nullptr) {  // Otherwise the value was released.
        seen.data = outer->scratch() + state_.input_parts[i];
        seen.bytes = BytesSeen(seen);
        ConvertInput(state_, i, value.dtype, value.data, value.shape.num_elements(), &outer->threads(), seen.data);
      }
      seen.strings = nullptr;
    }
    for (int i = 0; i < outer->num_outputs(); ++i) {
      Value& seen = outputs_.emplace_back(outer->output_at(i));
      seen.dtype = Seen(kind, seen.dtype);
      if (seen.dtype == outer->output_at(i).dtype) continue;
      seen.strings = nullptr;
      if (state_.output_parts[i] < 0) {
        seen.data = nullptr;
      } else {
        seen.data = outer->scratch() + state_.output_parts[i];
        seen.bytes = BytesSeen(seen);
      }
    }
    tensors_.resize(outputs_.size());
    reservations_.resize(outputs_.size());
  }

  const Node& node() const override { return outer_->node(); }
  const Value& input_at(int i) const override { return inputs_[i]; }
  Value& output_at(int i) override { return outputs_[i]; }
  int num_inputs() const override { return outer_->num_inputs(); }
  int num_outputs() const override { return outer_->num_outputs(); }
  char* scratch() override { return outer_->scratch() + state_.inner_scratch; }
  const KernelState* raw_state() const override { return state_.inner.get(); }
  ThreadPool& threads() override { return outer_->threads(); }
  RunLog* log() override { return outer_->log(); }
  MemoryBudget& budget() override { return outer_->budget(); }
  ResourceStore* resources() override { return outer_->resources(); }
  bool OwnsInput(int i) const override { return outer_->OwnsInput(i); }
  absl::Status AllocateOutput(int i, Shape shape) override {
    PF_RETURN_IF_ERROR(outer_->AllocateOutput(i, shape));
    const Value& made = outer_->output_at(i);
    Value& seen = outputs_[i];
    const DType dtype = Seen(kind_, made.dtype);
    seen = made;
    seen.dtype = dtype;
    if (dtype == made.dtype) return absl::OkStatus();
    int64_t bytes = 0;
    if (__builtin_mul_overflow(shape.num_elements(), static_cast<int64_t>(SizeOf(dtype)), &bytes)) {
      return absl::InvalidArgumentError(absl::StrCat("an output of shape ", shape.ToString(), " is too large"));
    }
    PF_ASSIGN_OR_RETURN(reservations_[i], Reservation::Take(&budget(), bytes, absl::StrCat("output ", i)));
    PF_ASSIGN_OR_RETURN(tensors_[i], Tensor::Allocate(dtype, std::move(shape), &seen.data));
    seen.bytes = bytes;
    seen.strings = nullptr;
    return absl::OkStatus();
  }

  // Called after the kernel's Compute.
  absl::Status ConvertOutputs() {
    for (int i = 0; i < num_outputs(); ++i) {
      Value& made = outer_->output_at(i);
      if (made.dtype == outputs_[i].dtype) continue;
      const int64_t count = made.shape.num_elements();
      const char* from = outputs_[i].data;
      if (made.dtype == DType::kString) {
        PF_RETURN_IF_ERROR(GiveStrings(reinterpret_cast<const int64_t*>(from), count, made.strings));
        continue;
      }
      const Conversion* conversion = ConversionFor(made.dtype);
      threads().ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
        conversion->narrow(from + begin * conversion->wide_size, made.data + begin * conversion->narrow_size,
                           end - begin);
      });
    }
    return absl::OkStatus();
  }

 private:
  // Returns the size that Finish has requested.
  static int64_t BytesSeen(const Value& seen) {
    return seen.shape.num_elements() * static_cast<int64_t>(SizeOf(seen.dtype));
  }

  const StandInState& State() const { return *static_cast<const StandInState*>(outer_->raw_state()); }

  absl::Status GiveStrings(const int64_t* numbers, int64_t count, std::vector<std::string>* strings) const {
    std::vector<const std::string*> all = {nullptr};
    for (int i = 0; i < num_inputs(); ++i) {
      if (outer_->input_at(i).dtype != DType::kString) continue;
      for (const std::string& string : *outer_->input_at(i).strings) all.push_back(&string);
    }
    strings->resize(static_cast<size_t>(count));
    for (int64_t e = 0; e < count; ++e) {
      if (numbers[e] < 0 || numbers[e] >= static_cast<int64_t>(all.size())) {
        return absl::InternalError(absl::StrCat("the kernel made the string number ", numbers[e], " of ", all.size()));
      }
      (*strings)[e] = numbers[e] == 0 ? std::string() : *all[numbers[e]];
    }
    return absl::OkStatus();
  }

  ComputeContext* outer_;
  StandIn kind_;
  const StandInState& state_;
  std::vector<Value> inputs_, outputs_;
  std::vector<Tensor> tensors_;
  std::vector<Reservation> reservations_;
};

}  // namespace

absl::Status PrepareWithStandIn(PrepareContext* context, StandIn kind, PrepareFunction prepare) {
  auto state = std::make_unique<StandInState>();
  bool any = false;
  int64_t numbers = 0;
  for (int i = 0; i < context->num_inputs(); ++i) {
    const DType dtype = context->input_type(i);
    const bool is_converted = Seen(kind, dtype) != dtype;
    state->input_is_converted.push_back(is_converted);
    state->numbers_before.push_back(numbers);
    if (is_converted && kind == StandIn::kNumberForString) numbers += context->input_shape(i).num_elements();
    any = any || is_converted;
  }
  for (int i = 0; i < context->num_outputs(); ++i)
    any = any || Seen(kind, context->output_type(i)) != context->output_type(i);
  if (!any) return prepare(context);
  state->known.resize(context->num_inputs());
  state->input_parts.assign(context->num_inputs(), -1);
  state->output_parts.assign(context->num_outputs(), -1);
  StandInPreparation inner(context, kind, state.get());
  PF_RETURN_IF_ERROR(prepare(&inner));
  PF_RETURN_IF_ERROR(inner.Finish());
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeWithStandIn(ComputeContext* context, StandIn kind, ComputeFunction compute) {
  bool any = false;
  const auto look = [&](DType dtype) { any = any || Seen(kind, dtype) != dtype; };
  for (int i = 0, count = context->num_inputs(); i < count; ++i) look(context->input_at(i).dtype);
  for (int i = 0, count = context->num_outputs(); i < count; ++i) look(context->output_at(i).dtype);
  if (!any) return compute(context);
  StandInComputation inner(context, kind);
  PF_RETURN_IF_ERROR(RunKernel(compute, &inner));
  return inner.ConvertOutputs();
}

}  // namespace permafrost
