// The bridge to oneDNN's C++ interface: its exceptions become statuses, and its primitives run without allocating.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PRIMITIVES_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PRIMITIVES_H_

#include <omp.h>

#include <cstdint>
#include <exception>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/piece.h"

namespace permafrost {
namespace onednn {

const dnnl::engine& CpuEngine();

// Whether the library computes with bfloat16 on this processor.
bool HasBf16();

// Whether the processor, and the library's setting, has instructions of its own for that.
bool HasBf16Instructions();

// Whether it has fast convolutions of eight bits: VNNI.
bool HasInt8();

dnnl::memory::data_type TypeOf(Element element);

// Runs f(), which may throw what oneDNN throws.
template <typename F>
absl::Status Guarded(absl::string_view what, F f) {
  try {
    f();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat(what, ": oneDNN says ", error.what()));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  }
}

// An image tensor as oneDNN names its dimensions (N, C, H, W), in memory NHWC.
dnnl::memory::desc ImageDesc(int64_t batch, int64_t height, int64_t width, int64_t channels,
                             Element element = Element::kFloat);

// True for the implementations that oneDNN keeps for correctness alone.
bool IsReferenceImplementation(const char* name);

// OpenMP's number of threads, a setting of the calling thread, is given back at the end. oneDNN divides the work of a
// primitive by what it is while the primitive is made, and runs on as many while it runs.
class ThreadsInScope {
 public:
  explicit ThreadsInScope(int num_threads) : before_(omp_get_max_threads()), is_changed_(before_ != num_threads) {
    if (is_changed_) omp_set_num_threads(num_threads);
  }
  ~ThreadsInScope() {
    if (is_changed_) omp_set_num_threads(before_);
  }
  ThreadsInScope(const ThreadsInScope&) = delete;
  ThreadsInScope& operator=(const ThreadsInScope&) = delete;

 private:
  const int before_;
  const bool is_changed_;
};

// A primitive with its arguments bound, but for those that are set at each run.
class BoundPrimitive {
 public:
  void Set(dnnl::primitive primitive) { primitive_ = std::move(primitive); }
  // An argument whose memory never changes; the object lives here.
  void Bind(int argument, dnnl::memory memory);
  // An argument whose pointer is given at each run. Returns its number for SetPointer.
  int Declare(int argument, const dnnl::memory::desc& desc);
  void SetPointer(int number, void* pointer);
  absl::Status Run();

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<void*> pointers_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PRIMITIVES_H_
