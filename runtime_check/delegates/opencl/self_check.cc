// Compares launches on the device with the same kernels on the host.
#include "runtime_check/delegates/opencl/self_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/opencl/host_kernels.h"

namespace permafrost {
namespace opencl {
namespace {

// Work items that are computed on the host, evenly spread: enough to reach all parts of a vector and of a work group.
constexpr int64_t kMostItems = 96;
// Largest difference, relative to the result or to the root mean square of all results. The order of operations is the
// same on the host, so only the contraction of products and sums, and the functions of the device's library differ. A
// wrong result is off by far more.
constexpr double kTolerance = 1e-3;
// Marks elements that the host did not compute: a NaN that no operation makes.
constexpr uint32_t kUntouched = 0x7fa12345;

// Numbers between -2 and 2.
class Noise {
 public:
  uint32_t Word() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;  // Knuth's MMIX generator.
    return static_cast<uint32_t>(state_ >> 33);
  }
  float Float() { return static_cast<float>(Word() % 65536) / 16384.0f - 2.0f; }

 private:
  uint64_t state_ = 1;
};

// The content of one storage, as 32-bit words.
std::vector<uint32_t> Content(const LoweredPartition& partition, const Argument& argument) {
  const auto count = static_cast<size_t>((partition.bytes[argument.storage] + 3) / 4 + 1);
  std::vector<uint32_t> words(count);
  Noise noise;
  if (argument.kind == Argument::Kind::kOutput) {
    std::fill(words.begin(), words.end(), kUntouched);
    return words;
  }
  const auto check = std::find_if(partition.checks.begin(), partition.checks.end(),
                                  [&](const IndexCheck& one) { return one.storage == argument.storage; });
  for (size_t i = 0; i < count; ++i) {
    if (check != partition.checks.end()) {
      words[i] = check->is_wide && i % 2 == 1 ? 0 : static_cast<uint32_t>(noise.Word() % check->end);
    } else if (argument.element_bytes == 1) {
      words[i] = noise.Word() & 0x01010101;
    } else {
      const float value = noise.Float();
      std::memcpy(&words[i], &value, sizeof(value));
    }
  }
  return words;
}

// The memory of a launch: one buffer for each storage.
class Buffers {
 public:
  Buffers(const LoweredPartition& partition, Device* device) : partition_(partition), device_(device) {}

  absl::Status Add(const Argument& argument) {
    if (content_.count(argument.storage) != 0) return absl::OkStatus();
    std::vector<uint32_t>& words = content_[argument.storage] = Content(partition_, argument);
    PF_ASSIGN_OR_RETURN(memory_[argument.storage],
                        device_->MakeBuffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, words.size() * 4, words.data()));
    return absl::OkStatus();
  }
  std::vector<uint32_t>& content(int storage) { return content_[storage]; }
  cl_mem memory(int storage) { return memory_[storage].get(); }

 private:
  const LoweredPartition& partition_;
  Device* const device_;
  std::map<int, std::vector<uint32_t>> content_;  // By storage.
  std::map<int, Owned<cl_mem>> memory_;
};

absl::Status Compare(const Launch& launch, const Device& device, const std::vector<uint32_t>& on_host,
                     const std::vector<uint32_t>& on_device) {
  const auto at = [](const std::vector<uint32_t>& words, size_t i) {
    float value;
    std::memcpy(&value, &words[i], sizeof(value));
    return static_cast<double>(value);
  };
  double squares = 0;
  int64_t count = 0;
  for (size_t i = 0; i < on_host.size(); ++i) {
    if (on_host[i] == kUntouched || !std::isfinite(at(on_host, i))) continue;
    squares += at(on_host, i) * at(on_host, i);
    ++count;
  }
  const double rms = count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
  for (size_t i = 0; i < on_host.size(); ++i) {
    if (on_host[i] == kUntouched) continue;
    const double expected = at(on_host, i), found = at(on_device, i);
    const bool is_equal = std::isfinite(expected)
                              ? std::fabs(found - expected) <= kTolerance * std::max(std::fabs(expected), rms)
                              : !std::isfinite(found);
    if (is_equal) continue;
    return absl::FailedPreconditionError(absl::StrCat("kernel '", launch.kernel, "' (", launch.description,
                                                      ") computes wrong on ", device.info().name, ": element ", i,
                                                      " is ", found, ", expected ", expected));
  }
  return absl::OkStatus();
}

absl::Status CheckLaunch(const LoweredPartition& partition, const Launch& launch, cl_mem constants, Device* device) {
  const Library& library = device->library();
  PF_ASSIGN_OR_RETURN(const Owned<cl_kernel> kernel, device->MakeKernel(launch.source, launch.kernel));
  PF_ASSIGN_OR_RETURN(const Owned<cl_command_queue> queue, device->MakeQueue());
  Buffers buffers(partition, device);
  cl_uint index = 0;
  const auto set = [&](size_t size, const void* value) {
    return ToStatus(library.SetKernelArg(kernel.get(), index++, size, value), "SetKernelArg");
  };
  const auto set_int = [&](int64_t number) {
    const auto value = static_cast<cl_int>(number);
    return set(sizeof(value), &value);
  };
  PF_RETURN_IF_ERROR(set(sizeof(cl_mem), &constants));
  PF_RETURN_IF_ERROR(set_int(launch.table));
  PF_RETURN_IF_ERROR(set_int(launch.items));
  for (const Argument& argument : launch.arguments) {
    if (argument.kind != Argument::Kind::kNumber) {
      cl_mem memory = constants;
      if (argument.storage != kConstants) {
        PF_RETURN_IF_ERROR(buffers.Add(argument));
        memory = buffers.memory(argument.storage);
      }
      PF_RETURN_IF_ERROR(set(sizeof(cl_mem), &memory));
    }
    PF_RETURN_IF_ERROR(set_int(argument.number));
  }
  PF_RETURN_IF_ERROR(device->Enqueue(queue.get(), kernel.get(), launch.items));
  std::map<int, std::vector<uint32_t>> results;  // By storage.
  for (const Argument& argument : launch.arguments) {
    if (argument.kind != Argument::Kind::kOutput) continue;
    std::vector<uint32_t>& words = results[argument.storage];
    words.resize(buffers.content(argument.storage).size());
    PF_RETURN_IF_ERROR(ToStatus(library.EnqueueReadBuffer(queue.get(), buffers.memory(argument.storage), CL_TRUE, 0,
                                                          words.size() * 4, words.data(), 0, nullptr, nullptr),
                                "EnqueueReadBuffer"));
  }
  std::vector<char*> addresses;
  for (const Argument& argument : launch.arguments) {
    const bool is_buffer = argument.kind != Argument::Kind::kNumber && argument.storage != kConstants;
    addresses.push_back(is_buffer ? reinterpret_cast<char*>(buffers.content(argument.storage).data()) : nullptr);
  }
  std::vector<int64_t> items;
  const int64_t count = std::min(launch.items, kMostItems);
  for (int64_t i = 0; i < count; ++i) items.push_back(count == 1 ? 0 : i * (launch.items - 1) / (count - 1));
  if (!RunOnHost(launch, partition.constants, addresses, items)) {
    return absl::InternalError(absl::StrCat("kernel '", launch.kernel, "' cannot be checked"));
  }
  for (const auto& [storage, words] : results) {
    PF_RETURN_IF_ERROR(Compare(launch, *device, buffers.content(storage), words));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLaunches(const LoweredPartition& partition, Device* device) {
  // Each program is checked by its smallest launch.
  std::map<std::pair<std::string, std::string>, const Launch*> smallest;
  for (const Launch& launch : partition.launches) {
    const Launch*& known = smallest[{launch.kernel, launch.source}];
    if (known == nullptr || launch.items < known->items) known = &launch;
  }
  Owned<cl_mem> constants;
  for (const auto& [program, launch] : smallest) {
    const std::string key = absl::StrCat(program.first, "\n", program.second);
    if (const std::optional<absl::Status> known = device->Verdict(key); known.has_value()) {
      PF_RETURN_IF_ERROR(*known);
      continue;
    }
    if (constants.get() == nullptr) {
      PF_ASSIGN_OR_RETURN(constants,
                          device->MakeBuffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, partition.constants.size() * 4,
                                             const_cast<uint32_t*>(partition.constants.data())));
    }
    const absl::Status status = CheckLaunch(partition, *launch, constants.get(), device);
    if (status.ok() || absl::IsFailedPrecondition(status)) device->SetVerdict(key, status);
    if (status.ok()) device->SetChecked(key);
    PF_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace opencl
}  // namespace permafrost
