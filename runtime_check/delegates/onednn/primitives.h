// The wrapper of oneDNN's C++ interface. It converts exceptions to statuses, and runs primitives without allocations.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PRIMITIVES_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PRIMITIVES_H_

#include <cstdint>
#include <exception>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/openmp.h"
#include "runtime_check/delegates/onednn/piece.h"

namespace permafrost {
namespace onednn {

const dnnl::engine& CpuEngine();

// Returns true if the library supports bfloat16 on this processor.
bool HasBf16();

// Returns true if the processor, under the library's setting, has native bfloat16 instructions.
bool HasBf16Instructions();

// Returns true if fast 8-bit convolutions are available (VNNI).
bool HasInt8();

dnnl::memory::data_type TypeOf(Element element);

// Calls f() and converts the exceptions of oneDNN to a status.
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

// Describes an image tensor: dimensions in oneDNN's order (N, C, H, W), memory in NHWC.
dnnl::memory::desc ImageDesc(int64_t batch, int64_t height, int64_t width, int64_t channels,
                             Element element = Element::kFloat);

// Returns true for the slow reference implementations of oneDNN.
bool IsReferenceImplementation(const char* name);

// A primitive with its arguments. Arguments are bound once, except those whose pointers are set before each run.
class BoundPrimitive {
 public:
  void Set(dnnl::primitive primitive) { primitive_ = std::move(primitive); }
  // Binds an argument whose memory never changes. Takes ownership of the memory object.
  void Bind(int argument, dnnl::memory memory);
  // Declares an argument whose pointer is set before each run. Returns its number for SetPointer.
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
