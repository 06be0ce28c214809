// The C interface for kernels from shared libraries: of ops that Permafrost does not know, and faster ones of ops that
// it knows. Built on permafrost_delegate.h, whose rules for versions, errors, memory and threads hold here too.
//
// A library exports permafrost_custom_ops_entry, beside permafrost_delegate_entry if it likes:
//
//   PERMAFROST_EXPORT int32_t permafrost_custom_ops_entry(const permafrost_host* host, permafrost_custom_ops* ops,
//                                                         char* error, size_t error_size);
//
// docs/writing_a_custom_op.md walks through an example.
#ifndef PERMAFROST_CUSTOM_OP_H_
#define PERMAFROST_CUSTOM_OP_H_

#include "permafrost_delegate.h"

#ifdef __cplusplus
extern "C" {
#endif

// Flags of a kernel.
enum {
  // The outputs depend on more than inputs and attributes, or somebody else sees that the node ran: it is never
  // computed
  // ahead or left out.
  PERMAFROST_STATEFUL = 1
};

// Where infer_shapes puts its answer.
typedef struct permafrost_shapes {
  size_t struct_size;
  // Sets the shape of an output. PERMAFROST_FAILED for an output that does not exist or a negative dimension.
  int32_t (*set)(const struct permafrost_shapes* shapes, int32_t output, const int64_t* dims, int32_t rank);
  // With PERMAFROST_NEEDS_VALUE: the input without whose value the shapes are not known. Permafrost asks again during
  // the run, when the input is a constant for this call.
  int32_t needs_value_of;
  void* handle;
} permafrost_shapes;

// The kernel of one op. All that it points to lives until permafrost_custom_ops::destroy.
typedef struct permafrost_kernel {
  size_t struct_size;
  const char* op;
  // What the op takes and gives, each list ended by NULL; an argument is one of
  //   "name: float"        always of that type
  //   "name: T"            of the type that the attribute T holds
  //   "name: N * float"    as many as the attribute N says, also "N * T"
  //   "name: list(T)"      one of each type in the list that the attribute T holds
  // For an op that Permafrost knows both are NULL.
  const char* const* inputs;
  const char* const* outputs;
  uint32_t flags;
  void* self;  // Handed to the functions below.
  // Required. The shapes of the outputs; in the partition their rank is -1. PERMAFROST_NO: not these inputs. Then
  // Permafrost's own kernel runs the node; where there is none it is an error.
  int32_t (*infer_shapes)(void* self, const permafrost_partition* single, permafrost_shapes* shapes, char* error,
                          size_t error_size);
  // Required. Makes the node ready to run with these shapes; `run` of what it fills in computes. PERMAFROST_NO as
  // above.
  int32_t (*prepare)(void* self, const permafrost_partition* single, int32_t num_threads, permafrost_compiled* compiled,
                     char* error, size_t error_size);
} permafrost_kernel;

// Filled in by the entry, which finds it zero but for struct_size.
typedef struct permafrost_custom_ops {
  size_t struct_size;
  int32_t major, minor;  // PERMAFROST_ABI_MAJOR and _MINOR of the header that the library was built with.
  int32_t num_kernels;
  const permafrost_kernel* const* kernels;
  void* self;
  void (*destroy)(void* self);  // May be NULL. Called before the library is unloaded, and only if the entry succeeded.
} permafrost_custom_ops;

typedef int32_t (*permafrost_custom_ops_entry_function)(const permafrost_host* host, permafrost_custom_ops* ops,
                                                        char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif  // PERMAFROST_CUSTOM_OP_H_
