// The C interface for kernels in shared libraries: kernels of ops that Permafrost does not know, and faster kernels of
// known ops. It is based on permafrost_delegate.h, whose rules for versions, errors, memory and threads apply here too.
//
// A library exports permafrost_custom_ops_entry, optionally together with permafrost_delegate_entry:
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
  // The outputs depend on more than inputs and attributes, or the node has side effects. Such a node is never constant
  // folded or removed.
  PERMAFROST_STATEFUL = 1
};

// The result of infer_shapes.
typedef struct permafrost_shapes {
  size_t struct_size;
  // Sets the shape of an output. PERMAFROST_FAILED for an output that does not exist or a negative dimension.
  int32_t (*set)(const struct permafrost_shapes* shapes, int32_t output, const int64_t* dims, int32_t rank);
  // Set with PERMAFROST_NEEDS_VALUE: the input whose value determines the shapes. Permafrost calls infer_shapes again
  // during the run, with that input as a constant for the call.
  int32_t needs_value_of;
  void* handle;
} permafrost_shapes;

// The kernel of one op. All pointers are valid until permafrost_custom_ops::destroy.
typedef struct permafrost_kernel {
  size_t struct_size;
  const char* op;
  // The inputs and outputs of the op, each list ended by NULL; an argument is one of
  //   "name: float"        always of that type
  //   "name: T"            of the type that the attribute T holds
  //   "name: N * float"    as many as the attribute N says, also "N * T"
  //   "name: list(T)"      one of each type in the list that the attribute T holds
  // Both are NULL for an op that Permafrost knows.
  const char* const* inputs;
  const char* const* outputs;
  uint32_t flags;
  void* self;  // Passed to the functions below.
  // Required. Infers the shapes of the outputs; in the partition their rank is -1. PERMAFROST_NO: the inputs are not
  // supported. Permafrost's own kernel then runs the node; without one it is an error.
  int32_t (*infer_shapes)(void* self, const permafrost_partition* single, permafrost_shapes* shapes, char* error,
                          size_t error_size);
  // Required. Prepares the node for runs with these shapes and fills in `compiled`, whose `run` computes it.
  // PERMAFROST_NO as above.
  int32_t (*prepare)(void* self, const permafrost_partition* single, int32_t num_threads, permafrost_compiled* compiled,
                     char* error, size_t error_size);
} permafrost_kernel;

// Filled in by the entry. All members except struct_size are initially zero.
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
