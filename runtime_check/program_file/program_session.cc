// Prepares and runs the steps of a program file.
#include "runtime_check/program_file/program_session.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegate.h"
#include "runtime_check/kernel.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/program_file/program_signature.h"
#include "runtime_check/resources/memory_budget.h"
#include "runtime_check/threads/processors.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {
namespace {

// A step that was prepared.
struct PreparedStep {
  const ProgramFileStep* step = nullptr;
  ComputeFunction compute = nullptr;
  std::unique_ptr<KernelState> state;
  ProfileTicket ticket;
};

// The memory that all steps share.
struct ProgramMemory {
  explicit ProgramMemory(int64_t limit) : budget(limit) {}

  std::vector<Value> values;      // By tensor.
  std::vector<Tensor> constants;  // By tensor; of type kInvalid for others.
  char* scratch = nullptr;
  MemoryBudget budget;
};

// A place outside of a step's lists of inputs and outputs, which a kernel finds if a file has too few of them.
const Shape& NoShape() {
  static const auto* const shape = new Shape;
  return *shape;
}

class StepPreparation final : public PrepareContext {
 public:
  StepPreparation(const ProgramFileStep& step, const Kernel& kernel, const ProgramFile& program,
                  const ProgramMemory& memory, int num_threads, PreparedStep* prepared)
      : step_(step),
        kernel_(kernel),
        program_(program),
        memory_(memory),
        num_threads_(num_threads),
        prepared_(prepared),
        shapes_(step.outputs.size(), Shape::UnknownRank()) {}

  const Node& node() const override { return *step_.node; }
  int num_inputs() const override { return static_cast<int>(step_.inputs.size()); }
  DType input_type(int i) const override {
    return HasInput(i) ? program_.tensors()[step_.inputs[i]].dtype : DType::kInvalid;
  }
  const Shape& input_shape(int i) const override {
    return HasInput(i) ? program_.tensors()[step_.inputs[i]].shape : NoShape();
  }
  const Tensor* input_value(int i) const override {
    if (!HasInput(i)) return nullptr;
    const Tensor& constant = memory_.constants[step_.inputs[i]];
    return constant.dtype() == DType::kInvalid ? nullptr : &constant;
  }
  int num_outputs() const override { return static_cast<int>(step_.outputs.size()); }
  DType output_type(int i) const override {
    return HasOutput(i) ? program_.tensors()[step_.outputs[i]].dtype : DType::kInvalid;
  }
  void SetOutputShape(int i, Shape shape) override {
    if (HasOutput(i)) shapes_[i] = std::move(shape);
  }
  absl::Status NeedsValueOf(int i) override {
    return absl::DataLossError(absl::StrCat("input ", i, " is no constant, and the shapes depend on its value"));
  }
  void OutputShapeDependsOnValues(int i) override { HasOutput(i); }
  void SetState(std::unique_ptr<KernelState> state) override { prepared_->state = std::move(state); }
  void ReleaseInput(int /*i*/) override {}
  void RequestScratch(size_t bytes) override { scratch_bytes_ = bytes; }
  int num_threads() const override { return num_threads_; }
  const void* kernel_data() const override { return kernel_.data(); }
  void ComputeWith(ComputeFunction function) override { prepared_->compute = function; }

  size_t scratch_bytes() const { return scratch_bytes_; }

  // Returns DataLoss unless the step has all inputs and outputs that the kernel used, with the shapes that it computed.
  absl::Status CheckTensors() const {
    bool fits = !is_missing_;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      fits = fits && shapes_[i] == program_.tensors()[step_.outputs[i]].shape;
    }
    if (fits) return absl::OkStatus();
    return absl::DataLossError("the tensors of the step are not those of its kernel");
  }

 private:
  bool HasInput(int i) const {
    const bool has = static_cast<size_t>(i) < step_.inputs.size();
    is_missing_ |= !has;
    return has;
  }
  bool HasOutput(int i) const {
    const bool has = static_cast<size_t>(i) < step_.outputs.size();
    is_missing_ |= !has;
    return has;
  }

  const ProgramFileStep& step_;
  const Kernel& kernel_;
  const ProgramFile& program_;
  const ProgramMemory& memory_;
  int num_threads_;
  PreparedStep* prepared_;
  std::vector<Shape> shapes_;  // Of the outputs.
  size_t scratch_bytes_ = 0;
  mutable bool is_missing_ = false;
};

class StepContext final : public ComputeContext {
 public:
  StepContext(ProgramMemory* memory, ThreadPool* threads) : memory_(*memory), threads_(*threads) {}

  void SetStep(const PreparedStep* prepared) { prepared_ = prepared; }

  const Node& node() const override { return *step().node; }
  const Value& input_at(int i) const override {
    return static_cast<size_t>(i) < step().inputs.size() ? memory_.values[step().inputs[i]] : nothing_;
  }
  Value& output_at(int i) override {
    return static_cast<size_t>(i) < step().outputs.size() ? memory_.values[step().outputs[i]] : nothing_;
  }
  int num_inputs() const override { return static_cast<int>(step().inputs.size()); }
  int num_outputs() const override { return static_cast<int>(step().outputs.size()); }
  char* scratch() override { return memory_.scratch; }
  const KernelState* raw_state() const override { return prepared_->state.get(); }
  ThreadPool& threads() override { return threads_; }
  RunLog* log() override { return nullptr; }
  absl::Status AllocateOutput(int /*i*/, Shape /*shape*/) override {
    return absl::DataLossError("a shape that is known only during the run, in a program file");
  }
  MemoryBudget& budget() override { return memory_.budget; }
  ResourceStore* resources() override { return nullptr; }
  bool OwnsInput(int /*i*/) const override { return false; }

 private:
  const ProgramFileStep& step() const { return *prepared_->step; }

  ProgramMemory& memory_;
  ThreadPool& threads_;
  const PreparedStep* prepared_ = nullptr;
  Value nothing_;  // Of type kInvalid, which no view matches.
};

// Returns whether two tensors share memory.
bool Overlap(const ProgramFileTensor& a, const ProgramFileTensor& b) {
  return a.place == b.place && a.offset < b.offset + static_cast<uint64_t>(b.bytes) &&
         b.offset < a.offset + static_cast<uint64_t>(a.bytes);
}

// Returns DataLoss if a step overwrites what it reads or writes, other than in place where its kernel allows that.
absl::Status CheckMemory(const ProgramFile& program, const ProgramFileStep& step, const Kernel& kernel) {
  const std::vector<ProgramFileTensor>& tensors = program.tensors();
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const ProgramFileTensor& output = tensors[step.outputs[i]];
    bool is_clear = true;
    for (size_t j = 0; j < i; ++j) is_clear &= !Overlap(output, tensors[step.outputs[j]]);
    int num_in_place = 0;
    for (size_t j = 0; j < step.inputs.size(); ++j) {
      const ProgramFileTensor& input = tensors[step.inputs[j]];
      if (!Overlap(output, input)) continue;
      const bool may_be_in_place =
          std::find(kernel.in_place().begin(), kernel.in_place().end(), static_cast<int>(j)) != kernel.in_place().end();
      is_clear &= i == 0 && may_be_in_place && output.offset == input.offset && output.bytes == input.bytes &&
                  ++num_in_place == 1;
    }
    if (!is_clear) return absl::DataLossError(absl::StrCat("the memory of output ", i, " is in use"));
  }
  return absl::OkStatus();
}

// Returns the endpoint of that name, or -1.
int FindEndpoint(const std::vector<ProgramFileEndpoint>& endpoints, absl::string_view name) {
  for (size_t i = 0; i < endpoints.size(); ++i) {
    if (endpoints[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

absl::Status NotExpected(const ProgramFileEndpoint& input, absl::string_view what, absl::string_view found,
                         absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("input '", input.name, "': found ", what, " ", found, ", expected ", expected));
}

absl::Status CheckCount(absl::string_view what, size_t found, size_t expected) {
  if (found == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found ", found, " ", what, ", expected ", expected));
}

}  // namespace

class ProgramSession::Impl {
 public:
  Impl(const ProgramFile& program, SessionOptions options)
      : program_(program),
        options_(std::move(options)),
        threads_(options_.num_threads),
        memory_(options_.memory_limit),
        context_(&memory_, &threads_) {}

  absl::Status Build(absl::Span<const std::string> feeds, absl::Span<const std::string> fetches) {
    for (const std::string& name : feeds) {
      PF_RETURN_IF_ERROR(AddEndpoint("input", name, program_.inputs(), &feeds_));
    }
    PF_RETURN_IF_ERROR(CheckCount("inputs", feeds.size(), program_.inputs().size()));
    for (const std::string& name : fetches) {
      PF_RETURN_IF_ERROR(AddEndpoint("output", name, program_.outputs(), &fetches_));
    }
    PF_RETURN_IF_ERROR(PlaceTensors());
    size_t scratch_bytes = 0;
    steps_.reserve(program_.steps().size());
    for (const ProgramFileStep& step : program_.steps()) {
      const absl::Status status = Prepare(step, &scratch_bytes);
      if (!status.ok()) return Annotate(status, step.node->Describe());
    }
    PF_ASSIGN_OR_RETURN(scratch_, Allocate(scratch_bytes, &memory_.scratch));
    report_.arena_bytes = program_.arena_bytes() + static_cast<int64_t>(scratch_bytes);
    report_.num_steps = static_cast<int64_t>(steps_.size());
    return absl::OkStatus();
  }

  std::vector<TensorSpec> Inputs() const { return Specs(feeds_); }

  absl::StatusOr<std::vector<TensorSpec>> Plan(absl::Span<const Shape> shapes) {
    PF_RETURN_IF_ERROR(CheckCount("input shapes", shapes.size(), feeds_.size()));
    for (size_t i = 0; i < shapes.size(); ++i) PF_RETURN_IF_ERROR(CheckShape(*feeds_[i], shapes[i]));
    return Specs(fetches_);
  }

  absl::Status Execute(absl::Span<const Tensor> feeds) {
    ProcessorBinding binding;
    PF_RETURN_IF_ERROR(binding.Bind(options_.processors));
    PF_RETURN_IF_ERROR(CheckCount("inputs", feeds.size(), feeds_.size()));
    std::vector<Tensor> aligned;  // By input of the program.
    aligned.resize(feeds.size());
    for (size_t i = 0; i < feeds.size(); ++i) {
      const ProgramFileEndpoint& input = *feeds_[i];
      const ProgramFileTensor& tensor = program_.tensors()[input.tensor];
      if (feeds[i].dtype() != tensor.dtype) {
        return NotExpected(input, "type", DTypeName(feeds[i].dtype()), DTypeName(tensor.dtype));
      }
      PF_RETURN_IF_ERROR(CheckShape(input, feeds[i].shape()));
      PF_ASSIGN_OR_RETURN(aligned[tensor.offset], feeds[i].Aligned());
    }
    for (size_t i = 0; i < memory_.values.size(); ++i) {
      const ProgramFileTensor& tensor = program_.tensors()[i];
      // Kernels write only to outputs, although the type of an input's memory is not const.
      if (tensor.place == ProgramPlace::kInput) {
        memory_.values[i].data = const_cast<char*>(aligned[tensor.offset].bytes().data());
      }
    }
    Profiler* profiler =
        options_.profiler != nullptr && options_.profiler->is_recording() ? options_.profiler : nullptr;
    if (profiler != nullptr) profiler->BeginRun();
    for (PreparedStep& step : steps_) {
      context_.SetStep(&step);
      const int64_t start = profiler == nullptr ? 0 : profiler->Enter();
      const absl::Status status = RunKernel(step.compute, &context_);
      if (!status.ok()) return Annotate(status, step.step->node->Describe());
      if (profiler != nullptr) {
        if (!profiler->Knows(step.ticket)) profiler->Name(*step.step->node, false, &step.ticket);
        profiler->Leave(step.ticket, start, OutputBytes(step));
      }
    }
    if (profiler != nullptr) profiler->EndRun();
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds) {
    PF_RETURN_IF_ERROR(Execute(feeds));
    std::vector<Tensor> outputs;
    for (const ProgramFileEndpoint* fetch : fetches_) {
      const Value& value = memory_.values[fetch->tensor];
      char* data = nullptr;
      PF_ASSIGN_OR_RETURN(outputs.emplace_back(), Tensor::Allocate(value.dtype, value.shape, &data));
      CopyTo(value, data);
    }
    return outputs;
  }

  absl::Status RunInto(absl::Span<const Tensor> feeds, absl::Span<const absl::Span<char>> outputs) {
    PF_RETURN_IF_ERROR(CheckCount("outputs", outputs.size(), fetches_.size()));
    for (size_t i = 0; i < outputs.size(); ++i) {
      PF_RETURN_IF_ERROR(Annotate(
          CheckCount("bytes", outputs[i].size(), static_cast<size_t>(memory_.values[fetches_[i]->tensor].bytes)),
          absl::StrCat("output '", fetches_[i]->name, "'")));
    }
    PF_RETURN_IF_ERROR(Execute(feeds));
    for (size_t i = 0; i < outputs.size(); ++i) CopyTo(memory_.values[fetches_[i]->tensor], outputs[i].data());
    return absl::OkStatus();
  }

  const PlanReport& report() const { return report_; }
  int num_threads() const { return threads_.num_threads(); }

 private:
  using Endpoints = std::vector<const ProgramFileEndpoint*>;

  static absl::Status AddEndpoint(absl::string_view role, const std::string& name,
                                  const std::vector<ProgramFileEndpoint>& among, Endpoints* endpoints) {
    const int found = FindEndpoint(among, name);
    if (found < 0) {
      std::string names;
      for (const ProgramFileEndpoint& endpoint : among) {
        absl::StrAppend(&names, names.empty() ? "'" : ", '", endpoint.name, "'");
      }
      return absl::InvalidArgumentError(absl::StrCat(role, " '", name, "': the program has ", names));
    }
    if (std::find(endpoints->begin(), endpoints->end(), &among[found]) != endpoints->end()) {
      return absl::InvalidArgumentError(absl::StrCat(role, " '", name, "' is named twice"));
    }
    endpoints->push_back(&among[found]);
    return absl::OkStatus();
  }

  std::vector<TensorSpec> Specs(const Endpoints& endpoints) const {
    std::vector<TensorSpec> specs;
    for (const ProgramFileEndpoint* endpoint : endpoints) {
      const ProgramFileTensor& tensor = program_.tensors()[endpoint->tensor];
      specs.push_back({std::string(endpoint->name), tensor.dtype, tensor.shape});
    }
    return specs;
  }

  absl::Status CheckShape(const ProgramFileEndpoint& input, const Shape& shape) const {
    const Shape& expected = program_.tensors()[input.tensor].shape;
    return shape == expected ? absl::OkStatus() : NotExpected(input, "shape", shape.ToString(), expected.ToString());
  }

  absl::StatusOr<Tensor> Allocate(size_t bytes, char** data) {
    const auto size = static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX));
    PF_RETURN_IF_ERROR(memory_.budget.Take(size, "the memory of the activations"));
    return Tensor::Allocate(DType::kInt8, Shape({Tensor::InHugePages(size)}), data);
  }

  absl::Status PlaceTensors() {
    char* arena = nullptr;
    PF_ASSIGN_OR_RETURN(arena_, Allocate(static_cast<size_t>(program_.arena_bytes()), &arena));
    const std::vector<ProgramFileTensor>& tensors = program_.tensors();
    memory_.values.resize(tensors.size());
    memory_.constants.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      Value& value = memory_.values[i];
      value.dtype = tensors[i].dtype;
      value.shape = tensors[i].shape;
      value.bytes = tensors[i].bytes;
      if (tensors[i].place == ProgramPlace::kArena) value.data = arena + tensors[i].offset;
      if (tensors[i].place != ProgramPlace::kConstant) continue;
      PF_ASSIGN_OR_RETURN(const Tensor constant, program_.Constant(static_cast<int>(i)));
      if (!constant.IsAligned()) {
        PF_RETURN_IF_ERROR(memory_.budget.Take(value.bytes, "an aligned copy of a constant"));
        report_.constant_bytes += value.bytes;
      }
      PF_ASSIGN_OR_RETURN(memory_.constants[i], constant.Aligned());
      value.data = const_cast<char*>(memory_.constants[i].bytes().data());
    }
    return absl::OkStatus();
  }

  absl::Status Prepare(const ProgramFileStep& step, size_t* scratch_bytes) {
    const Kernel* const kernel = FindKernel(step.node->op());
    PF_RETURN_IF_ERROR(CheckSignature(program_, step, kernel));
    // Kernels of the first kind read the graph or state of a session, which a program file does not have.
    if (kernel->uses_state() || kernel->is_done_by_session() || kernel->is_alias() || kernel->compute() == nullptr) {
      return absl::DataLossError("an op that a program file cannot contain");
    }
    PF_RETURN_IF_ERROR(CheckMemory(program_, step, *kernel));
    PreparedStep& prepared = steps_.emplace_back();
    prepared.step = &step;
    prepared.compute = kernel->compute();
    StepPreparation preparation(step, *kernel, program_, memory_, threads_.num_threads(), &prepared);
    PF_RETURN_IF_ERROR(kernel->prepare()(&preparation));
    PF_RETURN_IF_ERROR(preparation.CheckTensors());
    *scratch_bytes = std::max(*scratch_bytes, preparation.scratch_bytes());
    return absl::OkStatus();
  }

  int64_t OutputBytes(const PreparedStep& step) const {
    int64_t bytes = 0;
    for (const int output : step.step->outputs) bytes += memory_.values[output].bytes;
    return bytes;
  }

  static void CopyTo(const Value& value, char* to) {
    if (value.bytes > 0) std::memcpy(to, value.data, static_cast<size_t>(value.bytes));
  }

  const ProgramFile& program_;
  SessionOptions options_;
  ThreadPool threads_;
  ProgramMemory memory_;
  StepContext context_;
  Endpoints feeds_, fetches_;
  std::vector<PreparedStep> steps_;
  Tensor arena_, scratch_;
  PlanReport report_;
};

ProgramSession::ProgramSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ProgramSession::~ProgramSession() = default;

absl::StatusOr<std::unique_ptr<ProgramSession>> ProgramSession::Create(const ProgramFile& program,
                                                                       absl::Span<const std::string> feeds,
                                                                       absl::Span<const std::string> fetches,
                                                                       SessionOptions options) {
  auto impl = std::make_unique<Impl>(program, std::move(options));
  PF_RETURN_IF_ERROR(impl->Build(feeds, fetches));
  return std::unique_ptr<ProgramSession>(new ProgramSession(std::move(impl)));
}

std::vector<TensorSpec> ProgramSession::Inputs() const { return impl_->Inputs(); }
absl::StatusOr<std::vector<TensorSpec>> ProgramSession::Plan(absl::Span<const Shape> input_shapes) {
  return impl_->Plan(input_shapes);
}
absl::StatusOr<std::vector<Tensor>> ProgramSession::Run(absl::Span<const Tensor> feeds) { return impl_->Run(feeds); }
absl::Status ProgramSession::RunInto(absl::Span<const Tensor> feeds, absl::Span<const absl::Span<char>> outputs) {
  return impl_->RunInto(feeds, outputs);
}
const PlanReport& ProgramSession::report() const { return impl_->report(); }
int ProgramSession::num_threads() const { return impl_->num_threads(); }

}  // namespace permafrost
