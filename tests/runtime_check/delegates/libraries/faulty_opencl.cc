// An OpenCL library for tests: passes all calls on to the installed one, until it is told to fail.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::atomic<long> calls{0}, fails_from{0}, objects{0}, sources{0};
std::atomic<cl_int> code{CL_DEVICE_NOT_AVAILABLE};
std::atomic<bool> corrupts{false};
std::string rejected;
// Objects that the library hides: 0 none, 1 all drivers, with the error of the ICD loader, 2 all drivers, 3 all
// devices.
std::atomic<int> hidden{0};
// In place of the limits of the device; 0: those of the device.
std::atomic<cl_ulong> most_buffer_bytes{0}, memory_bytes{0};

template <typename F>
F Real(const char* name) {
  static void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const function = library == nullptr ? nullptr : dlsym(library, name);
  if (function == nullptr) std::abort();
  return reinterpret_cast<F>(function);
}

// Counts a call. True if it must fail: a lost device fails from the Nth call on.
bool Fails() {
  const long from = fails_from;
  return ++calls >= from && from > 0;
}

}  // namespace

extern "C" {

// Fails the Nth call from now on and all calls behind it, except those that release objects; 0: none.
void faulty_opencl_fail(long from, cl_int with) {
  calls = 0;
  code = with;
  fails_from = from;
}
// Changes what is read from the device.
void faulty_opencl_corrupt(bool whether) { corrupts = whether; }
// Makes the compiler reject sources with this text.
void faulty_opencl_reject(const char* text) { rejected = text; }
void faulty_opencl_hide(int what) { hidden = what; }
void faulty_opencl_limit(unsigned long most_bytes_of_a_buffer, unsigned long bytes_of_the_device) {
  most_buffer_bytes = most_bytes_of_a_buffer;
  memory_bytes = bytes_of_the_device;
}
long faulty_opencl_calls() { return calls; }
// The number of programs that were made from a source.
long faulty_opencl_sources() { return sources; }
// The number of objects that exist.
long faulty_opencl_objects() { return objects; }

#define STATUS(name, parameters, arguments)                  \
  CL_API_ENTRY cl_int CL_API_CALL name parameters {          \
    if (Fails()) return code;                                \
    static const auto real = Real<decltype(&::name)>(#name); \
    return real arguments;                                   \
  }
#define MAKE(type, name, parameters, arguments)              \
  CL_API_ENTRY type CL_API_CALL name parameters {            \
    if (Fails()) {                                           \
      *e = code;                                             \
      return nullptr;                                        \
    }                                                        \
    static const auto real = Real<decltype(&::name)>(#name); \
    const type made = real arguments;                        \
    if (made != nullptr) ++objects;                          \
    return made;                                             \
  }
#define RELEASE(name, type)                                  \
  CL_API_ENTRY cl_int CL_API_CALL name(type object) {        \
    static const auto real = Real<decltype(&::name)>(#name); \
    --objects;                                               \
    return real(object);                                     \
  }

STATUS(clGetPlatformInfo, (cl_platform_id p, cl_platform_info w, size_t n, void* v, size_t* s), (p, w, n, v, s))
MAKE(cl_context, clCreateContext,
     (const cl_context_properties* p, cl_uint n, const cl_device_id* d,
      void(CL_CALLBACK* f)(const char*, const void*, size_t, void*), void* u, cl_int* e),
     (p, n, d, f, u, e))
MAKE(cl_command_queue, clCreateCommandQueue, (cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int* e),
     (c, d, p, e))
MAKE(cl_mem, clCreateBuffer, (cl_context c, cl_mem_flags f, size_t n, void* h, cl_int* e), (c, f, n, h, e))
MAKE(cl_kernel, clCreateKernel, (cl_program p, const char* n, cl_int* e), (p, n, e))
MAKE(cl_program, clCreateProgramWithBinary,
     (cl_context c, cl_uint n, const cl_device_id* d, const size_t* s, const unsigned char** b, cl_int* t, cl_int* e),
     (c, n, d, s, b, t, e))
STATUS(clBuildProgram,
       (cl_program p, cl_uint n, const cl_device_id* d, const char* o, void(CL_CALLBACK* f)(cl_program, void*),
        void* u),
       (p, n, d, o, f, u))
STATUS(clGetProgramInfo, (cl_program p, cl_program_info w, size_t n, void* v, size_t* s), (p, w, n, v, s))
STATUS(clGetProgramBuildInfo, (cl_program p, cl_device_id d, cl_program_build_info w, size_t n, void* v, size_t* s),
       (p, d, w, n, v, s))
STATUS(clSetKernelArg, (cl_kernel k, cl_uint i, size_t n, const void* v), (k, i, n, v))
STATUS(clGetKernelWorkGroupInfo,
       (cl_kernel k, cl_device_id d, cl_kernel_work_group_info w, size_t n, void* v, size_t* s), (k, d, w, n, v, s))
STATUS(clEnqueueNDRangeKernel,
       (cl_command_queue q, cl_kernel k, cl_uint d, const size_t* o, const size_t* g, const size_t* l, cl_uint n,
        const cl_event* w, cl_event* v),
       (q, k, d, o, g, l, n, w, v))
STATUS(clEnqueueWriteBuffer,
       (cl_command_queue q, cl_mem b, cl_bool s, size_t o, size_t c, const void* h, cl_uint n, const cl_event* w,
        cl_event* v),
       (q, b, s, o, c, h, n, w, v))
STATUS(clEnqueueUnmapMemObject, (cl_command_queue q, cl_mem b, void* h, cl_uint n, const cl_event* w, cl_event* v),
       (q, b, h, n, w, v))
STATUS(clGetEventProfilingInfo, (cl_event v, cl_profiling_info w, size_t n, void* h, size_t* s), (v, w, n, h, s))
RELEASE(clReleaseContext, cl_context)
RELEASE(clReleaseCommandQueue, cl_command_queue)
RELEASE(clReleaseMemObject, cl_mem)
RELEASE(clReleaseProgram, cl_program)
RELEASE(clReleaseKernel, cl_kernel)
RELEASE(clReleaseEvent, cl_event)

CL_API_ENTRY cl_int CL_API_CALL clGetPlatformIDs(cl_uint n, cl_platform_id* p, cl_uint* c) {
  if (Fails()) return code;
  if (hidden == 1) return -1001;  // CL_PLATFORM_NOT_FOUND_KHR.
  static const auto real = Real<decltype(&::clGetPlatformIDs)>("clGetPlatformIDs");
  const cl_int status = real(n, p, c);
  if (hidden == 2 && c != nullptr) *c = 0;
  return status;
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id p, cl_device_type t, cl_uint n, cl_device_id* d,
                                               cl_uint* c) {
  if (Fails()) return code;
  if (hidden == 3) return CL_DEVICE_NOT_FOUND;
  static const auto real = Real<decltype(&::clGetDeviceIDs)>("clGetDeviceIDs");
  return real(p, t, n, d, c);
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id d, cl_device_info w, size_t n, void* v, size_t* s) {
  if (Fails()) return code;
  static const auto real = Real<decltype(&::clGetDeviceInfo)>("clGetDeviceInfo");
  const cl_int status = real(d, w, n, v, s);
  const cl_ulong limit = w == CL_DEVICE_MAX_MEM_ALLOC_SIZE ? most_buffer_bytes.load()
                         : w == CL_DEVICE_GLOBAL_MEM_SIZE  ? memory_bytes.load()
                                                           : 0;
  if (limit > 0 && n == sizeof(limit)) std::memcpy(v, &limit, sizeof(limit));
  return status;
}

// A lost device does nothing any more, so the queue is finished, too, where the call fails.
CL_API_ENTRY cl_int CL_API_CALL clFinish(cl_command_queue q) {
  static const auto real = Real<decltype(&::clFinish)>("clFinish");
  const cl_int status = real(q);
  return Fails() ? code.load() : status;
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithSource(cl_context c, cl_uint n, const char** t, const size_t* s,
                                                              cl_int* e) {
  if (Fails()) {
    *e = code;
    return nullptr;
  }
  ++sources;
  std::string text(t[0], s[0]);
  if (!rejected.empty() && text.find(rejected) != std::string::npos) text += "\n#error this driver has a bug\n";
  const char* const changed = text.c_str();
  const size_t size = text.size();
  static const auto real = Real<decltype(&::clCreateProgramWithSource)>("clCreateProgramWithSource");
  const char* texts[] = {changed};
  const cl_program made = real(c, n, texts, &size, e);
  if (made != nullptr) ++objects;
  return made;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue q, cl_mem b, cl_bool s, size_t o, size_t c,
                                                    void* h, cl_uint n, const cl_event* w, cl_event* v) {
  if (Fails()) return code;
  static const auto real = Real<decltype(&::clEnqueueReadBuffer)>("clEnqueueReadBuffer");
  const cl_int status = real(q, b, corrupts ? CL_TRUE : s, o, c, h, n, w, v);
  if (corrupts && c >= sizeof(float)) {
    const float wrong = 12345;
    std::memcpy(h, &wrong, sizeof(wrong));
  }
  return status;
}

CL_API_ENTRY void* CL_API_CALL clEnqueueMapBuffer(cl_command_queue q, cl_mem b, cl_bool s, cl_map_flags f, size_t o,
                                                  size_t c, cl_uint n, const cl_event* w, cl_event* v, cl_int* e) {
  if (Fails()) {
    *e = code;
    return nullptr;
  }
  static const auto real = Real<decltype(&::clEnqueueMapBuffer)>("clEnqueueMapBuffer");
  return real(q, b, s, f, o, c, n, w, v, e);
}

}  // extern "C"
