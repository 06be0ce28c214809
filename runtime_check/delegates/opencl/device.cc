// Selects a device, and compiles programs for it.
#include "runtime_check/delegates/opencl/device.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/content_hash.h"
#include "graph/base/status.h"

namespace permafrost {
namespace opencl {
namespace {

// Bounds what a driver can make us allocate.
constexpr cl_uint kMostDevices = 64;
constexpr size_t kMostText = 1 << 16;
constexpr size_t kMostBinary = 64 << 20;
// Kinds of blobs. The number changes with the meaning of what is kept.
constexpr absl::string_view kProgramKind = "opencl program 1", kChecksKind = "opencl checks 1";
constexpr size_t kHashDigits = 16;
// Work items of a group: enough for the widest vectors of processors and GPUs, and supported by every device of use.
constexpr size_t kGroupItems = 64;

absl::StatusOr<cl_device_id> FindDevice(const Library& library) {
  // PoCL 3.1 initialises its devices in the first call, and reports none to other threads meanwhile.
  static auto* const mutex = new std::mutex();
  const std::lock_guard<std::mutex> lock(*mutex);
  cl_platform_id platforms[kMostDevices];
  cl_uint num_platforms = 0;
  PF_RETURN_IF_ERROR(ToStatus(library.GetPlatformIDs(kMostDevices, platforms, &num_platforms), "GetPlatformIDs"));
  num_platforms = std::min(num_platforms, kMostDevices);
  for (const cl_device_type type : {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CPU}) {
    for (cl_uint i = 0; i < num_platforms; ++i) {
      cl_device_id device = nullptr;
      cl_uint num_devices = 0;
      if (library.GetDeviceIDs(platforms[i], type, 1, &device, &num_devices) != CL_SUCCESS || num_devices == 0)
        continue;
      cl_bool is_available = CL_FALSE, has_compiler = CL_FALSE;
      library.GetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof(is_available), &is_available, nullptr);
      library.GetDeviceInfo(device, CL_DEVICE_COMPILER_AVAILABLE, sizeof(has_compiler), &has_compiler, nullptr);
      if (is_available && has_compiler) return device;
    }
  }
  return absl::UnavailableError(
      absl::StrCat("found ", num_platforms, " OpenCL drivers, but no available device with a compiler"));
}

template <typename T>
absl::StatusOr<T> Number(const Library& library, cl_device_id device, cl_device_info what) {
  T value = {};
  PF_RETURN_IF_ERROR(ToStatus(library.GetDeviceInfo(device, what, sizeof(value), &value, nullptr), "GetDeviceInfo"));
  return value;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Device>> Device::Open(const OpenClOptions& options) {
  PF_ASSIGN_OR_RETURN(const Library* const library, LoadLibrary(options.loader));
  PF_ASSIGN_OR_RETURN(const cl_device_id id, FindDevice(*library));
  std::shared_ptr<Device> device(new Device(*library, id));
  PF_RETURN_IF_ERROR(device->Init(options));
  return device;
}

absl::StatusOr<std::string> Device::Text(cl_device_info what) const {
  size_t size = 0;
  PF_RETURN_IF_ERROR(ToStatus(library_.GetDeviceInfo(id_, what, 0, nullptr, &size), "GetDeviceInfo"));
  if (size > kMostText) return absl::InternalError("OpenCL, clGetDeviceInfo: the text is too long");
  std::string text(size, '\0');
  PF_RETURN_IF_ERROR(ToStatus(library_.GetDeviceInfo(id_, what, size, text.data(), nullptr), "GetDeviceInfo"));
  return text.substr(0, text.find('\0'));
}

absl::Status Device::Init(const OpenClOptions& options) {
  PF_ASSIGN_OR_RETURN(info_.name, Text(CL_DEVICE_NAME));
  PF_ASSIGN_OR_RETURN(const std::string vendor, Text(CL_DEVICE_VENDOR));
  PF_ASSIGN_OR_RETURN(const std::string version, Text(CL_DEVICE_VERSION));
  PF_ASSIGN_OR_RETURN(const std::string driver, Text(CL_DRIVER_VERSION));
  info_.driver = absl::StrCat(vendor, ", ", version, ", driver ", driver);
  PF_ASSIGN_OR_RETURN(const auto type, Number<cl_device_type>(library_, id_, CL_DEVICE_TYPE));
  PF_ASSIGN_OR_RETURN(const auto is_unified, Number<cl_bool>(library_, id_, CL_DEVICE_HOST_UNIFIED_MEMORY));
  info_.has_host_memory = !options.copies_buffers && (is_unified || (type & CL_DEVICE_TYPE_CPU) != 0);
  PF_ASSIGN_OR_RETURN(const auto is_little, Number<cl_bool>(library_, id_, CL_DEVICE_ENDIAN_LITTLE));
  if (!is_little) return absl::UnavailableError(absl::StrCat(info_.name, ": found a big-endian device"));
  PF_ASSIGN_OR_RETURN(const auto floats, Number<cl_device_fp_config>(library_, id_, CL_DEVICE_SINGLE_FP_CONFIG));
  info_.divides_exactly = (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  if ((floats & CL_FP_INF_NAN) == 0)
    return absl::UnavailableError(absl::StrCat(info_.name, ": has no NaN and infinity"));
  PF_ASSIGN_OR_RETURN(info_.most_buffer_bytes, Number<cl_ulong>(library_, id_, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  PF_ASSIGN_OR_RETURN(info_.memory_bytes, Number<cl_ulong>(library_, id_, CL_DEVICE_GLOBAL_MEM_SIZE));
  PF_ASSIGN_OR_RETURN(info_.most_group_items, Number<size_t>(library_, id_, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  info_.is_processor = (type & CL_DEVICE_TYPE_CPU) != 0;
  PF_ASSIGN_OR_RETURN(info_.compute_units, Number<cl_uint>(library_, id_, CL_DEVICE_MAX_COMPUTE_UNITS));
  PF_ASSIGN_OR_RETURN(info_.megahertz, Number<cl_uint>(library_, id_, CL_DEVICE_MAX_CLOCK_FREQUENCY));
  cl_int code = CL_SUCCESS;
  const cl_context context = library_.CreateContext(nullptr, 1, &id_, nullptr, nullptr, &code);
  PF_RETURN_IF_ERROR(ToStatus(code, "CreateContext"));
  context_ = Owned<cl_context>(context, library_.ReleaseContext);
  blobs_ = options.blobs;
  if (blobs_ == nullptr) return absl::OkStatus();
  const std::string hashes = blobs_->Read(BlobKey(kChecksKind, "")).value_or("");
  for (size_t i = 0; i + kHashDigits <= hashes.size(); i += kHashDigits) {
    uint64_t hash = 0;
    if (absl::SimpleHexAtoi(absl::string_view(hashes).substr(i, kHashDigits), &hash)) checked_.insert(hash);
  }
  return absl::OkStatus();
}

std::string Device::BuildOptions() const {
  return absl::StrCat("-cl-std=CL1.2", info_.divides_exactly ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
}

std::string Device::BlobKey(absl::string_view kind, absl::string_view text) const {
  return absl::StrJoin(
      {kind, absl::string_view(info_.name), absl::string_view(info_.driver), absl::string_view(BuildOptions()), text},
      "\n");
}

absl::StatusOr<cl_program> Device::Program(const std::string& source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto found = programs_.find(source);
  if (found == programs_.end()) {
    Built built{LoadProgram(source), true};
    if (!built.program.ok()) {
      built = {CompileProgram(source), blobs_ == nullptr};
      // Only the compiler's verdict on a source is final.
      if (!built.program.ok() && !absl::IsFailedPrecondition(built.program.status())) return built.program.status();
    }
    found = programs_.emplace(source, std::move(built)).first;
  }
  const absl::StatusOr<Owned<cl_program>>& program = found->second.program;
  if (!program.ok()) return absl::InternalError(program.status().message());
  return program->get();
}

absl::StatusOr<Owned<cl_program>> Device::LoadProgram(const std::string& source) const {
  if (blobs_ == nullptr) return absl::NotFoundError("no program is kept");
  const std::optional<std::string> binary = blobs_->Read(BlobKey(kProgramKind, source));
  if (!binary.has_value() || binary->empty()) return absl::NotFoundError("no program is kept");
  const auto* const bytes = reinterpret_cast<const unsigned char*>(binary->data());
  const size_t size = binary->size();
  cl_int code = CL_SUCCESS, status = CL_SUCCESS;
  Owned<cl_program> program(library_.CreateProgramWithBinary(context_.get(), 1, &id_, &size,
                                                             const_cast<const unsigned char**>(&bytes), &status, &code),
                            library_.ReleaseProgram);
  PF_RETURN_IF_ERROR(ToStatus(code, "CreateProgramWithBinary"));
  PF_RETURN_IF_ERROR(ToStatus(status, "CreateProgramWithBinary"));
  PF_RETURN_IF_ERROR(ToStatus(library_.BuildProgram(program.get(), 1, &id_, BuildOptions().c_str(), nullptr, nullptr),
                              "BuildProgram"));
  return program;
}

// FailedPrecondition if the compiler rejects the source.
absl::StatusOr<Owned<cl_program>> Device::CompileProgram(const std::string& source) const {
  cl_int code = CL_SUCCESS;
  const char* text = source.c_str();
  const size_t size = source.size();
  Owned<cl_program> program(library_.CreateProgramWithSource(context_.get(), 1, &text, &size, &code),
                            library_.ReleaseProgram);
  PF_RETURN_IF_ERROR(ToStatus(code, "CreateProgramWithSource"));
  code = library_.BuildProgram(program.get(), 1, &id_, BuildOptions().c_str(), nullptr, nullptr);
  if (code == CL_BUILD_PROGRAM_FAILURE) {
    size_t log_size = 0;
    std::string log;
    if (library_.GetProgramBuildInfo(program.get(), id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &log_size) == CL_SUCCESS &&
        log_size <= kMostText) {
      log.resize(log_size);
      library_.GetProgramBuildInfo(program.get(), id_, CL_PROGRAM_BUILD_LOG, log_size, log.data(), nullptr);
      log.resize(std::min(log.find('\0'), log.size()));
    }
    return absl::FailedPreconditionError(absl::StrCat("the compiler of ", info_.name, " rejects a kernel: ", log));
  }
  PF_RETURN_IF_ERROR(ToStatus(code, "BuildProgram"));
  return program;
}

absl::StatusOr<std::string> Device::BinaryOf(cl_program program) const {
  size_t size = 0;
  PF_RETURN_IF_ERROR(ToStatus(library_.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr),
                              "GetProgramInfo"));
  if (size == 0 || size > kMostBinary) return absl::OutOfRangeError("the driver gives no binary of a usual size");
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  PF_RETURN_IF_ERROR(ToStatus(library_.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr),
                              "GetProgramInfo"));
  return binary;
}

void Device::KeepPrograms() {
  if (blobs_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [source, built] : programs_) {
    if (built.is_kept || !built.program.ok()) continue;
    built.is_kept = true;  // One attempt.
    const absl::StatusOr<std::string> binary = BinaryOf(built.program->get());
    if (binary.ok()) blobs_->Write(BlobKey(kProgramKind, source), *binary);
  }
  if (!has_new_checks_) return;
  has_new_checks_ = false;
  std::string hashes;
  for (const uint64_t hash : checked_) absl::StrAppend(&hashes, absl::Hex(hash, absl::kZeroPad16));
  blobs_->Write(BlobKey(kChecksKind, ""), hashes);
}

absl::StatusOr<Owned<cl_command_queue>> Device::MakeQueue(bool profiles) const {
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue =
      library_.CreateCommandQueue(context_.get(), id_, profiles ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
  PF_RETURN_IF_ERROR(ToStatus(code, "CreateCommandQueue"));
  return Owned<cl_command_queue>(queue, library_.ReleaseCommandQueue);
}

absl::StatusOr<Owned<cl_mem>> Device::MakeBuffer(cl_mem_flags flags, uint64_t bytes, void* host) const {
  if (bytes > info_.most_buffer_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a buffer of ", bytes, " bytes exceeds the limit of ", info_.name,
                                                     ", ", info_.most_buffer_bytes, " bytes"));
  }
  cl_int code = CL_SUCCESS;
  const cl_mem buffer = library_.CreateBuffer(context_.get(), flags, bytes, host, &code);
  PF_RETURN_IF_ERROR(ToStatus(code, "CreateBuffer"));
  return Owned<cl_mem>(buffer, library_.ReleaseMemObject);
}

absl::StatusOr<Owned<cl_kernel>> Device::MakeKernel(const std::string& source, const std::string& name) {
  PF_ASSIGN_OR_RETURN(const cl_program program, Program(source));
  cl_int code = CL_SUCCESS;
  const cl_kernel kernel = library_.CreateKernel(program, name.c_str(), &code);
  PF_RETURN_IF_ERROR(Annotate(ToStatus(code, "CreateKernel"), name));
  return Owned<cl_kernel>(kernel, library_.ReleaseKernel);
}

absl::Status Device::Enqueue(cl_command_queue queue, cl_kernel kernel, int64_t items, cl_event* event) const {
  const size_t group = std::min(kGroupItems, info_.most_group_items);
  const size_t all = (static_cast<size_t>(items) + group - 1) / group * group;
  return ToStatus(library_.EnqueueNDRangeKernel(queue, kernel, 1, nullptr, &all, &group, 0, nullptr, event),
                  "EnqueueNDRangeKernel");
}

std::optional<absl::Status> Device::Verdict(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = verdicts_.find(key);
  if (found != verdicts_.end()) return found->second;
  if (!checked_.empty() && checked_.count(HashContent(key)) > 0) return absl::OkStatus();
  return std::nullopt;
}

void Device::SetChecked(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  has_new_checks_ = checked_.insert(HashContent(key)).second || has_new_checks_;
}

void Device::SetVerdict(const std::string& key, absl::Status status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  verdicts_[key] = std::move(status);
}

}  // namespace opencl
}  // namespace permafrost
