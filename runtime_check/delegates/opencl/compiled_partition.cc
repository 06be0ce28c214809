// Places the storages of a partition, and enqueues its launches.
//
// On a device that computes in the memory of the host, storages lie in the scratch memory and in the buffers of the
// session, which become buffers of OpenCL for the time of a run, without copies. On any other device they lie in one
// buffer of the device, with which inputs and outputs are exchanged.
#include "runtime_check/delegates/opencl/compiled_partition.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/opencl/lowering.h"
#include "runtime_check/delegates/opencl/self_check.h"
#include "runtime_check/planning/buffer_placement.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace opencl {
namespace {

constexpr int kNone = -1;
// In place of the number of a launch.
constexpr int kToDevice = -1, kFromDevice = -2;
// Launches between two polls for cancellation, if a run can be cancelled. Waiting for the device costs about 20 us.
constexpr size_t kLaunchesPerPoll = 16;

template <typename T>
absl::Status CheckIndices(const IndexCheck& check, const char* bytes) {
  for (int64_t i = 0; i < check.count; ++i) {
    T index;
    std::memcpy(&index, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if (index < 0 || index >= check.end) {
      return absl::InvalidArgumentError(
          absl::StrCat(check.name, ": index ", index, " at position ", i, ", expected 0 to ", check.end - 1));
    }
  }
  return absl::OkStatus();
}

class Compiled final : public CompiledPartition {
 public:
  explicit Compiled(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  absl::Status Init(const Partition& partition) {
    PF_ASSIGN_OR_RETURN(LoweredPartition lowered, Lower(partition));
    PF_RETURN_IF_ERROR(CheckLaunches(lowered, device_.get()));
    launches_ = std::move(lowered.launches);
    constants_ = std::move(lowered.constants);
    checks_ = std::move(lowered.checks);
    bytes_ = std::move(lowered.bytes);
    inputs_ = partition.inputs;
    for (const int output : partition.outputs) outputs_.push_back(lowered.storage[output]);
    PF_RETURN_IF_ERROR(Place());
    PF_ASSIGN_OR_RETURN(queue_, device_->MakeQueue());
    const bool shares = device_->info().has_host_memory;
    PF_ASSIGN_OR_RETURN(constants_buffer_,
                        device_->MakeBuffer(CL_MEM_READ_ONLY | (shares ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR),
                                            constants_.size() * sizeof(uint32_t), constants_.data()));
    constant_bytes_ = static_cast<int64_t>(constants_.size() * sizeof(uint32_t));
    const uint64_t needed = static_cast<uint64_t>(constant_bytes_) + (shares ? 0 : static_cast<uint64_t>(pool_bytes_));
    if (needed > device_->info().memory_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("the partition needs ", needed, " bytes, and ",
                                                       device_->info().name, " has ", device_->info().memory_bytes));
    }
    if (!shares) {
      constants_ = {};
      if (pool_bytes_ > 0) {
        PF_ASSIGN_OR_RETURN(pool_, device_->MakeBuffer(CL_MEM_READ_WRITE, pool_bytes_, nullptr));
      }
    }
    for (Launch& launch : launches_) PF_RETURN_IF_ERROR(Annotate(MakeKernel(&launch), launch.name));
    device_->KeepPrograms();
    return absl::OkStatus();
  }

  int64_t scratch_bytes() const override { return device_->info().has_host_memory ? pool_bytes_ : 0; }
  int64_t constant_bytes() const override { return constant_bytes_; }
  std::vector<std::string> Describe() const override {
    std::vector<std::string> lines;
    for (const Launch& launch : launches_) {
      lines.push_back(absl::StrCat(launch.name, ": ", launch.description, " (", launch.kernel, ")"));
    }
    return lines;
  }

  absl::Status Run(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                   const PieceCallback& on_piece) override {
    for (const IndexCheck& check : checks_) {
      const auto input = std::find(inputs_.begin(), inputs_.end(), check.storage) - inputs_.begin();
      PF_RETURN_IF_ERROR(check.is_wide ? CheckIndices<int64_t>(check, inputs[input])
                                       : CheckIndices<int32_t>(check, inputs[input]));
    }
    const absl::Time start = on_piece ? absl::Now() : absl::Time();
    PF_RETURN_IF_ERROR(StartProfile(on_piece != nullptr));
    Buffers buffers;
    absl::Status status = Bind(inputs, outputs, scratch, &buffers);
    if (status.ok()) status = Enqueue();
    if (status.ok()) status = Collect(outputs, buffers);
    // No kernel may use the memory of the caller after the return.
    const absl::Status finished = ToStatus(device_->library().Finish(queue_.get()), "Finish");
    if (status.ok()) status = finished;
    if (status.ok() && on_piece) ReportTimes(absl::Now() - start, on_piece);
    events_.clear();
    return status;
  }

 private:
  // The buffers of a run, by address.
  struct Buffers {
    std::map<const char*, Owned<cl_mem>> owned;
  };

  // A command of a profiled run: a launch, or a copy.
  struct Event {
    int launch;  // kToDevice or kFromDevice for a copy.
    Owned<cl_event> event;
  };
  // Times of a command on the clock of the device, in nanoseconds.
  struct Times {
    cl_ulong queued = 0, start = 0, end = 0;
  };

  absl::Status StartProfile(bool profiles) {
    events_.clear();
    is_profiled_ = profiles;
    if (!profiles || queue_profiles_) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(queue_, device_->MakeQueue(/*profiles=*/true));
    queue_profiles_ = true;
    return absl::OkStatus();
  }

  // Calls `enqueue(event)`, and keeps the event of a profiled run.
  template <typename F>
  absl::Status Record(int launch, absl::string_view call, F enqueue) {
    if (!is_profiled_) return ToStatus(enqueue(nullptr), call);
    cl_event event = nullptr;
    const cl_int code = enqueue(&event);
    if (event != nullptr) events_.push_back({launch, Owned<cl_event>(event, device_->library().ReleaseEvent)});
    return ToStatus(code, call);
  }

  absl::StatusOr<Times> TimesOf(cl_event event) const {
    Times times;
    for (const auto& [what, to] : {std::make_pair(CL_PROFILING_COMMAND_QUEUED, &times.queued),
                                   std::make_pair(CL_PROFILING_COMMAND_START, &times.start),
                                   std::make_pair(CL_PROFILING_COMMAND_END, &times.end)}) {
      PF_RETURN_IF_ERROR(ToStatus(device_->library().GetEventProfilingInfo(event, static_cast<cl_profiling_info>(what),
                                                                           sizeof(*to), to, nullptr),
                                  "GetEventProfilingInfo"));
    }
    return times;
  }

  // Divides the duration of a run into launches, copies, the time in which the device had commands and ran none, and
  // the rest, in which the host made and read buffers.
  void ReportTimes(absl::Duration duration, const PieceCallback& on_piece) {
    if (descriptions_.empty()) descriptions_ = Describe();
    absl::Duration rest = duration, to_device, from_device, queue;
    std::vector<absl::Duration> launches(launches_.size());
    cl_ulong last_end = 0;
    for (const Event& event : events_) {
      const absl::StatusOr<Times> times = TimesOf(event.event.get());
      if (!times.ok() || times->end < times->start) {
        on_piece("the whole partition: the driver reports no times", duration);
        return;
      }
      const absl::Duration own = absl::Nanoseconds(times->end - times->start);
      (event.launch == kToDevice     ? to_device
       : event.launch == kFromDevice ? from_device
                                     : launches[event.launch]) += own;
      const cl_ulong ready = std::max(times->queued, last_end);
      const absl::Duration waited = absl::Nanoseconds(times->start > ready ? times->start - ready : 0);
      queue += waited;
      rest -= own + waited;
      last_end = std::max(last_end, times->end);
    }
    for (size_t i = 0; i < launches.size(); ++i) on_piece(descriptions_[i], launches[i]);
    if (!device_->info().has_host_memory) {
      on_piece("copies to the device", to_device);
      on_piece("copies from the device", from_device);
    }
    on_piece("queue: the device waits", queue);
    on_piece("host: buffers and calls", std::max(rest, absl::ZeroDuration()));
  }

  absl::Status Place() {
    const size_t count = bytes_.size();
    const bool shares = device_->info().has_host_memory;
    const auto end = static_cast<int>(launches_.size()) + 1;
    std::vector<Buffer> buffers(count);
    std::vector<bool> is_used(count, false);
    for (size_t i = 0; i < count; ++i) {
      // A buffer of OpenCL has at least one byte.
      buffers[i] = {std::max<int64_t>(bytes_[i], 1), end, 0, 0};
    }
    for (size_t i = 0; i < launches_.size(); ++i) {
      for (const Argument& argument : launches_[i].arguments) {
        if (argument.kind == Argument::Kind::kNumber || argument.storage == kConstants) continue;
        Buffer& buffer = buffers[argument.storage];
        buffer.first = std::min(buffer.first, static_cast<int>(i) + 1);
        buffer.last = std::max(buffer.last, static_cast<int>(i) + 1);
        is_used[argument.storage] = true;
      }
    }
    is_given_.assign(count, false);
    for (const int input : inputs_) {
      is_given_[input] = shares;
      is_used[input] = true;
      buffers[input].first = 0;
      buffers[input].last = std::max(buffers[input].last, 0);
    }
    for (const int output : outputs_) {
      is_given_[output] = shares;
      is_used[output] = true;
      buffers[output].first = std::min(buffers[output].first, end);
      buffers[output].last = end;
    }
    std::vector<Buffer> placed;
    std::vector<size_t> storages;
    for (size_t i = 0; i < count; ++i) {
      if (!is_used[i] || is_given_[i]) continue;
      placed.push_back(buffers[i]);
      storages.push_back(i);
    }
    PF_ASSIGN_OR_RETURN(pool_bytes_, PlaceBuffers(&placed));
    if (pool_bytes_ / 4 > std::numeric_limits<int32_t>::max()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the partition needs ", pool_bytes_, " bytes between its nodes"));
    }
    offsets_.assign(count, kNone);
    for (size_t i = 0; i < storages.size(); ++i) offsets_[storages[i]] = placed[i].offset;
    return absl::OkStatus();
  }

  absl::Status MakeKernel(Launch* launch) {
    PF_ASSIGN_OR_RETURN(Owned<cl_kernel> kernel, device_->MakeKernel(launch->source, launch->kernel));
    launch->source.clear();
    launch->source.shrink_to_fit();
    const Library& library = device_->library();
    cl_uint index = 0;
    const cl_mem constants = constants_buffer_.get();
    PF_RETURN_IF_ERROR(
        ToStatus(library.SetKernelArg(kernel.get(), index++, sizeof(cl_mem), &constants), "SetKernelArg"));
    for (const int64_t number : {launch->table, launch->items})
      PF_RETURN_IF_ERROR(SetInt(kernel.get(), index++, number));
    for (const Argument& argument : launch->arguments) {
      if (argument.kind == Argument::Kind::kNumber) {
        PF_RETURN_IF_ERROR(SetInt(kernel.get(), index++, argument.number));
        continue;
      }
      if (argument.storage == kConstants) {
        PF_RETURN_IF_ERROR(
            ToStatus(library.SetKernelArg(kernel.get(), index, sizeof(cl_mem), &constants), "SetKernelArg"));
      } else {
        parameters_.push_back({kernel.get(), index, argument.storage});
      }
      const int64_t offset = argument.storage == kConstants || is_given_[argument.storage]
                                 ? 0
                                 : offsets_[argument.storage] / argument.element_bytes;
      PF_RETURN_IF_ERROR(SetInt(kernel.get(), index + 1, offset + argument.number));
      index += 2;
    }
    kernels_.push_back(std::move(kernel));
    return absl::OkStatus();
  }

  absl::Status SetInt(cl_kernel kernel, cl_uint index, int64_t number) const {
    const auto value = static_cast<cl_int>(number);
    return ToStatus(device_->library().SetKernelArg(kernel, index, sizeof(value), &value), "SetKernelArg");
  }

  // Makes the buffers of this run the arguments of the kernels.
  absl::Status Bind(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                    Buffers* buffers) {
    const Library& library = device_->library();
    std::vector<cl_mem> memory(bytes_.size(), pool_.get());
    if (device_->info().has_host_memory) {
      const auto share = [&](const char* host, int64_t bytes, cl_mem_flags flags) -> absl::StatusOr<cl_mem> {
        Owned<cl_mem>& owned = buffers->owned[host];
        if (owned.get() == nullptr) {
          PF_ASSIGN_OR_RETURN(owned, device_->MakeBuffer(flags | CL_MEM_USE_HOST_PTR, std::max<int64_t>(bytes, 1),
                                                         const_cast<char*>(host)));
        }
        return owned.get();
      };
      if (pool_bytes_ > 0) {
        PF_ASSIGN_OR_RETURN(const cl_mem pool, share(scratch, pool_bytes_, CL_MEM_READ_WRITE));
        std::fill(memory.begin(), memory.end(), pool);
      }
      for (size_t i = 0; i < inputs.size(); ++i) {
        PF_ASSIGN_OR_RETURN(memory[inputs_[i]], share(inputs[i], bytes_[inputs_[i]], CL_MEM_READ_ONLY));
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        PF_ASSIGN_OR_RETURN(memory[outputs_[i]], share(outputs[i], bytes_[outputs_[i]], CL_MEM_READ_WRITE));
      }
    } else {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (bytes_[inputs_[i]] == 0) continue;
        PF_RETURN_IF_ERROR(Record(kToDevice, "EnqueueWriteBuffer", [&](cl_event* event) {
          return library.EnqueueWriteBuffer(queue_.get(), pool_.get(), CL_FALSE, offsets_[inputs_[i]],
                                            bytes_[inputs_[i]], inputs[i], 0, nullptr, event);
        }));
      }
      if (is_bound_) return absl::OkStatus();
    }
    for (const Parameter& parameter : parameters_) {
      PF_RETURN_IF_ERROR(
          ToStatus(library.SetKernelArg(parameter.kernel, parameter.index, sizeof(cl_mem), &memory[parameter.storage]),
                   "SetKernelArg"));
    }
    is_bound_ = true;
    return absl::OkStatus();
  }

  absl::Status Enqueue() {
    const Library& library = device_->library();
    const bool is_polled = CancellationOfThread() != nullptr;
    for (size_t i = 0; i < launches_.size(); ++i) {
      cl_event event = nullptr;
      PF_RETURN_IF_ERROR(Annotate(
          device_->Enqueue(queue_.get(), kernels_[i].get(), launches_[i].items, is_profiled_ ? &event : nullptr),
          launches_[i].name));
      if (event != nullptr) events_.push_back({static_cast<int>(i), Owned<cl_event>(event, library.ReleaseEvent)});
      if (is_polled && (i + 1) % kLaunchesPerPoll == 0) {
        PF_RETURN_IF_ERROR(ToStatus(library.Finish(queue_.get()), "Finish"));
        PF_RETURN_IF_ERROR(CheckNotCancelled());
      }
    }
    return absl::OkStatus();
  }

  // Makes the results visible to the host.
  absl::Status Collect(absl::Span<char* const> outputs, const Buffers& buffers) {
    const Library& library = device_->library();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t bytes = bytes_[outputs_[i]];
      if (bytes == 0) continue;
      if (!device_->info().has_host_memory) {
        PF_RETURN_IF_ERROR(Record(kFromDevice, "EnqueueReadBuffer", [&](cl_event* event) {
          return library.EnqueueReadBuffer(queue_.get(), pool_.get(), CL_FALSE, offsets_[outputs_[i]], bytes,
                                           outputs[i], 0, nullptr, event);
        }));
        continue;
      }
      const cl_mem buffer = buffers.owned.at(outputs[i]).get();
      cl_int code = CL_SUCCESS;
      void* const mapped =
          library.EnqueueMapBuffer(queue_.get(), buffer, CL_TRUE, CL_MAP_READ, 0, bytes, 0, nullptr, nullptr, &code);
      PF_RETURN_IF_ERROR(ToStatus(code, "EnqueueMapBuffer"));
      PF_RETURN_IF_ERROR(ToStatus(library.EnqueueUnmapMemObject(queue_.get(), buffer, mapped, 0, nullptr, nullptr),
                                  "EnqueueUnmapMemObject"));
    }
    return absl::OkStatus();
  }

  struct Parameter {
    cl_kernel kernel;
    cl_uint index;
    int storage;
  };

  const std::shared_ptr<Device> device_;
  std::vector<Launch> launches_;
  std::vector<uint32_t> constants_;  // Empty if they were copied to the device.
  std::vector<IndexCheck> checks_;
  std::vector<int> inputs_, outputs_;  // Storages.
  std::vector<int64_t> bytes_;         // By storage.
  std::vector<int64_t> offsets_;       // By storage: in the pool; kNone if it has none.
  std::vector<bool> is_given_;         // By storage: lies in memory of the caller.
  std::vector<Parameter> parameters_;  // Parameters of kernels that are storages.
  std::vector<std::string> descriptions_;
  int64_t pool_bytes_ = 0, constant_bytes_ = 0;
  bool is_bound_ = false;
  bool is_profiled_ = false, queue_profiles_ = false;
  std::vector<Event> events_;  // Of a profiled run.
  Owned<cl_mem> constants_buffer_, pool_;
  std::vector<Owned<cl_kernel>> kernels_;  // By launch.
  Owned<cl_command_queue> queue_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledPartition>> CompilePartition(const std::shared_ptr<Device>& device,
                                                                    const Partition& partition) {
  auto compiled = std::make_unique<Compiled>(device);
  PF_RETURN_IF_ERROR(compiled->Init(partition));
  return std::unique_ptr<CompiledPartition>(std::move(compiled));
}

}  // namespace opencl
}  // namespace permafrost
