// Initializes XNNPACK with an allocator that counts bytes per thread.
#include "runtime_check/delegates/xnnpack/library.h"

#include <malloc.h>
#include <stdlib.h>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/xnnpack/pools.h"
#include "third_party/deferred/deferred_library.h"
#include "third_party/deferred/load_status.h"

namespace permafrost {
namespace xnnpack {
namespace {

thread_local int64_t allocated_bytes = 0;

int64_t BytesOf(void* memory) { return memory == nullptr ? 0 : static_cast<int64_t>(malloc_usable_size(memory)); }

void* Count(void* memory) {
  allocated_bytes += BytesOf(memory);
  return memory;
}

void* Allocate(void*, size_t size) { return Count(malloc(size)); }

void* Reallocate(void*, void* memory, size_t size) {
  const int64_t before = BytesOf(memory);
  void* const moved = realloc(memory, size);
  if (moved == nullptr) return nullptr;
  allocated_bytes -= before;
  return Count(moved);
}

void Deallocate(void*, void* memory) {
  allocated_bytes -= BytesOf(memory);
  free(memory);
}

void* AllocateAligned(void*, size_t alignment, size_t size) {
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, size) == 0 ? Count(memory) : nullptr;
}

const char* Describe(enum xnn_status status) {
  switch (status) {
    case xnn_status_success:
      return "success";
    case xnn_status_uninitialized:
      return "it is not initialized";
    case xnn_status_invalid_parameter:
      return "a parameter is invalid";
    case xnn_status_invalid_state:
      return "an operator is in the wrong state";
    case xnn_status_unsupported_parameter:
      return "a parameter is unsupported";
    case xnn_status_unsupported_hardware:
      return "the processor is unsupported";
    case xnn_status_out_of_memory:
      return "out of memory";
  }
  return "an unknown error";
}

}  // namespace

absl::Status ToStatus(enum xnn_status status, absl::string_view call) {
  if (status == xnn_status_success) return absl::OkStatus();
  const std::string message = absl::StrCat("XNNPACK, ", call, ": ", Describe(status));
  switch (status) {
    case xnn_status_out_of_memory:
      return absl::ResourceExhaustedError(message);
    case xnn_status_unsupported_parameter:
    case xnn_status_unsupported_hardware:
      return absl::UnimplementedError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::Status InitializeLibrary() {
  static const struct xnn_allocator allocator = {nullptr,     &Allocate,        &Reallocate,
                                                 &Deallocate, &AllocateAligned, &Deallocate};
  static const absl::Status status = [] {
    if (absl::Status loaded = deferred::LoadStatus(deferred::Xnnpack()); !loaded.ok()) return loaded;
    UsePoolsOfLeases();
    return ToStatus(xnn_initialize(&allocator), "to initialise");
  }();
  return status;
}

int64_t LibraryBytes() { return allocated_bytes; }

}  // namespace xnnpack
}  // namespace permafrost
