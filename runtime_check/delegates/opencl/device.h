// The device that the delegate uses, with its context and compiled programs.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_DEVICE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_DEVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime_check/delegates/opencl/library.h"
#include "runtime_check/delegates/opencl/opencl_delegate.h"

namespace permafrost {
namespace opencl {

struct DeviceInfo {
  std::string name, driver;      // Identify the device and the version of its driver.
  bool has_host_memory = false;  // The device computes in the memory of the host: buffers of the host are not copied.
  bool divides_exactly = false;  // Divisions and square roots can be rounded correctly.
  uint64_t most_buffer_bytes = 0, memory_bytes = 0;
  size_t most_group_items = 1;
  bool is_processor = false;
  double compute_units = 1, megahertz = 1000;
};

// Thread-safe, except for the objects of OpenCL that it returns. Must outlive them.
class Device {
 public:
  // Opens the first GPU of all drivers; without one, the first accelerator, and then the first processor. Returns
  // Unavailable if there is none.
  static absl::StatusOr<std::shared_ptr<Device>> Open(const OpenClOptions& options);

  const Library& library() const { return library_; }
  const DeviceInfo& info() const { return info_; }
  cl_context context() const { return context_.get(); }

  // Returns the compiled program of a source text. Sources are compiled once. Returns Internal, with the compiler's
  // log, if it fails to compile.
  absl::StatusOr<cl_program> Program(const std::string& source);

  // Makes a queue; with `profiles`, its events have times.
  absl::StatusOr<Owned<cl_command_queue>> MakeQueue(bool profiles = false) const;
  // Starts a kernel with that number of work items, or a few more, which have no effect. Sets *event unless it is null.
  absl::Status Enqueue(cl_command_queue queue, cl_kernel kernel, int64_t items, cl_event* event = nullptr) const;
  // Makes a buffer. With CL_MEM_USE_HOST_PTR, `host` must outlive it. Returns ResourceExhausted for a size beyond the
  // device's limits.
  absl::StatusOr<Owned<cl_mem>> MakeBuffer(cl_mem_flags flags, uint64_t bytes, void* host) const;
  absl::StatusOr<Owned<cl_kernel>> MakeKernel(const std::string& source, const std::string& name);

  // The result of a self-check of this device, once it is known.
  std::optional<absl::Status> Verdict(const std::string& key);
  void SetVerdict(const std::string& key, absl::Status status);
  // As SetVerdict for a success that depends on nothing but the key, the device and its driver: KeepPrograms stores it.
  void SetChecked(const std::string& key);

  // Stores the programs and checks that are new in OpenClOptions::blobs. To be called after the kernels ran, because
  // some drivers compile only then.
  void KeepPrograms();

 private:
  // A program, and whether the storage has it.
  struct Built {
    absl::StatusOr<Owned<cl_program>> program;
    bool is_kept = false;
  };

  Device(const Library& library, cl_device_id id) : library_(library), id_(id) {}
  absl::Status Init(const OpenClOptions& options);
  std::string BuildOptions() const;
  // The key of a blob: kind, device, driver and options of the compiler, and `text`.
  std::string BlobKey(absl::string_view kind, absl::string_view text) const;
  // Returns the program of a source from the storage. Any error means that it has to be compiled.
  absl::StatusOr<Owned<cl_program>> LoadProgram(const std::string& source) const;
  absl::StatusOr<Owned<cl_program>> CompileProgram(const std::string& source) const;
  absl::StatusOr<std::string> BinaryOf(cl_program program) const;
  absl::StatusOr<std::string> Text(cl_device_info what) const;

  const Library& library_;
  const cl_device_id id_;
  DeviceInfo info_;
  Owned<cl_context> context_;
  std::mutex mutex_;
  std::shared_ptr<DelegateBlobs> blobs_;  // May be null.
  // Guarded by mutex_.
  std::map<std::string, Built> programs_;  // By source.
  std::map<std::string, absl::Status> verdicts_;
  std::set<uint64_t> checked_;  // Hashes of keys.
  bool has_new_checks_ = false;
};

}  // namespace opencl
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_DEVICE_H_
