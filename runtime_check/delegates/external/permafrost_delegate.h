// The C interface for delegates in shared libraries. It is plain C, and needs no other file of Permafrost: include it
// or copy it.
//
// A library exports permafrost_delegate_entry. Permafrost calls it once, with the table of its callbacks and an empty
// description of a delegate that the function fills in:
//
//   PERMAFROST_EXPORT int32_t permafrost_delegate_entry(const permafrost_host* host, permafrost_delegate* delegate,
//                                                       char* error, size_t error_size);
//
// docs/writing_a_delegate.md walks through an example.
//
// Versions. PERMAFROST_ABI_MAJOR changes when libraries must be rebuilt; Permafrost rejects a library of another major
// version, and a library should reject another `host->major`. A minor version only appends members to structs and
// tables. Each struct starts with its size at the time its creator was compiled: access a member that is newer than
// version 1.0 only if PERMAFROST_HAS returns true for it. Permafrost treats members that are zero or NULL as not set.
//
// Errors. A function that may fail returns PERMAFROST_OK (0) or another number from below, and writes a text that ends
// in '\0' to `error`, a buffer that the caller owns, with `error_size` bytes (at least 1). Use one line in lower case
// without a full stop, since Permafrost prepends the location. Exceptions must not pass through this interface.
//
// Memory. The creator of an object owns the memory that its pointers refer to. Memory passed by Permafrost is valid
// during the call, unless a comment here says otherwise.
//
// Threads. The functions of a delegate may be called from several threads concurrently; `run` of one compiled partition
// is called by one thread at a time.
#ifndef PERMAFROST_DELEGATE_H_
#define PERMAFROST_DELEGATE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERMAFROST_ABI_MAJOR 1
#define PERMAFROST_ABI_MINOR 1

#define PERMAFROST_EXPORT __attribute__((visibility("default")))

// True if *pointer, in the version of its creator, has the member.
#define PERMAFROST_HAS(pointer, member) \
  ((pointer)->struct_size >= (size_t)((const char*)(&(pointer)->member + 1) - (const char*)(pointer)))

// Return values of functions.
enum {
  PERMAFROST_OK = 0,
  PERMAFROST_NO = 1,          // Does not support this node or these shapes; `error` has the reason. Not a failure.
  PERMAFROST_FAILED = 2,      // `error` has the reason.
  PERMAFROST_NOT_FOUND = 3,   // The node does not have the attribute, and its op has no default.
  PERMAFROST_WRONG_KIND = 4,  // The attribute is of another kind, or malformed.
  PERMAFROST_NEEDS_VALUE = 5  // Returned by infer_shapes in permafrost_custom_op.h.
};

// Element types, with the numbers of TensorFlow's DataType. Strings, resources and variants are never passed.
enum {
  PERMAFROST_FLOAT = 1,
  PERMAFROST_DOUBLE = 2,
  PERMAFROST_INT32 = 3,
  PERMAFROST_UINT8 = 4,
  PERMAFROST_INT16 = 5,
  PERMAFROST_INT8 = 6,
  PERMAFROST_COMPLEX64 = 8,
  PERMAFROST_INT64 = 9,
  PERMAFROST_BOOL = 10,
  PERMAFROST_QINT8 = 11,
  PERMAFROST_QUINT8 = 12,
  PERMAFROST_QINT32 = 13,
  PERMAFROST_BFLOAT16 = 14,
  PERMAFROST_QINT16 = 15,
  PERMAFROST_QUINT16 = 16,
  PERMAFROST_UINT16 = 17,
  PERMAFROST_COMPLEX128 = 18,
  PERMAFROST_HALF = 19,
  PERMAFROST_UINT32 = 22,
  PERMAFROST_UINT64 = 23
};

// Codes of a tensor: real = scales[c] * (code - zero_points[c]), where c is the index along `axis`. Since version 1.1.
typedef struct permafrost_quantization {
  size_t struct_size;
  int32_t num_scales;          // 1, or the size of dimension `axis`.
  const float* scales;         // Positive and finite.
  const int32_t* zero_points;  // As many as scales.
  // -1 for one scale. A depthwise filter [height, width, channels, multiplier] with several scales has axis 2 and
  // channels * multiplier of them.
  int32_t axis;
} permafrost_quantization;

typedef struct permafrost_tensor {
  size_t struct_size;
  int32_t dtype;
  int32_t rank;         // -1: the shape is unknown (only where a comment allows it).
  const int64_t* dims;  // `rank` of them, all known.
  uint64_t num_bytes;   // Size of the elements, in row-major order without gaps.
  int32_t is_constant;  // The value is known before the run: constant_data returns it.
  const void* handle;   // For calls of constant_data.
  // Since 1.1. NULL unless a node of the partition computes with the scale of the tensor; also NULL if two nodes
  // compute with different ones.
  const permafrost_quantization* quantization;
} permafrost_tensor;

typedef struct permafrost_node {
  size_t struct_size;
  const char* name;  // Unique in the graph.
  const char* op;    // For example "Conv2D". Attributes have TensorFlow's meaning.
  int32_t num_inputs;
  const int32_t* inputs;  // Indices into permafrost_partition::tensors.
  int32_t num_outputs;
  const int32_t* outputs;
  const void* handle;  // For calls of the attribute getters.
} permafrost_node;

// A part of a graph that runs as one unit. Arrays hold pointers, so that structs can grow.
typedef struct permafrost_partition {
  size_t struct_size;
  int32_t num_tensors;
  const permafrost_tensor* const* tensors;
  int32_t num_nodes;
  const permafrost_node* const* nodes;  // In topological order.
  int32_t num_inputs;
  const int32_t* inputs;  // Tensors computed outside the partition, each once.
  int32_t num_outputs;
  const int32_t* outputs;  // Tensors read outside the partition, each once; all are outputs of nodes.
} permafrost_partition;

// The callbacks of Permafrost. Valid until the library is unloaded.
//
// The attribute getters return PERMAFROST_OK and set *value, or return PERMAFROST_NOT_FOUND or PERMAFROST_WRONG_KIND.
// An attribute that the node lacks has the default of its op. A list is written to `values`, which has room for
// `capacity` elements (may be 0, with values NULL); *count is the length of the list, which may exceed the number of
// elements written.
typedef struct permafrost_host {
  size_t struct_size;
  int32_t major, minor;
  // Returns the elements of a constant, aligned to 64 bytes; NULL if the tensor is not a constant, or memory is
  // exhausted. They are valid until the compiled partition is destroyed if requested during `compile`, else until the
  // call returns.
  const void* (*constant_data)(const permafrost_tensor* tensor);
  int32_t (*int_attr)(const permafrost_node* node, const char* name, int64_t* value);
  int32_t (*float_attr)(const permafrost_node* node, const char* name, float* value);
  int32_t (*bool_attr)(const permafrost_node* node, const char* name, int32_t* value);
  int32_t (*type_attr)(const permafrost_node* node, const char* name, int32_t* value);
  // Sets *rank to -1 and writes nothing for a shape of unknown rank; an unknown dimension is -1.
  int32_t (*shape_attr)(const permafrost_node* node, const char* name, int64_t* dims, size_t capacity, int32_t* rank);
  // Sets *length to the length without the '\0', which is written if there is room. The bytes may have any value.
  int32_t (*string_attr)(const permafrost_node* node, const char* name, char* value, size_t capacity, size_t* length);
  int32_t (*int_list_attr)(const permafrost_node* node, const char* name, int64_t* values, size_t capacity,
                           size_t* count);
  int32_t (*float_list_attr)(const permafrost_node* node, const char* name, float* values, size_t capacity,
                             size_t* count);
  int32_t (*type_list_attr)(const permafrost_node* node, const char* name, int32_t* values, size_t capacity,
                            size_t* count);
  // Get the number of strings in a list, and one of them.
  int32_t (*string_list_size)(const permafrost_node* node, const char* name, size_t* count);
  int32_t (*string_list_item)(const permafrost_node* node, const char* name, size_t index, char* value, size_t capacity,
                              size_t* length);
} permafrost_host;

// One run of a compiled partition. Buffers are aligned to 64 bytes and have exactly the sizes of the tensors. Outputs
// do not overlap other buffers; inputs may share memory and must not be modified.
typedef struct permafrost_run {
  size_t struct_size;
  const void* const* inputs;  // In the order of permafrost_partition::inputs.
  void* const* outputs;
  void* scratch;  // permafrost_compiled::scratch_bytes, with undefined content.
  // Reports the name and the duration of a piece to the profiler. NULL without a profiler.
  void (*on_piece)(void* piece_context, const char* name, int64_t nanoseconds);
  void* piece_context;
  // Calls body(data, begin, end) on ranges that cover [0, count) once, from the threads of the session, and returns
  // when all are done. Ranges are not smaller than `grain` (1 or more) unless necessary. NULL for delegates, which may
  // start threads of their own.
  void (*parallel_for)(void* pool, int64_t count, int64_t grain, void (*body)(void* data, int64_t begin, int64_t end),
                       void* data);
  void* pool;
} permafrost_run;

// Filled in by `compile`. All members except struct_size are initially zero.
typedef struct permafrost_compiled {
  size_t struct_size;
  void* self;               // Passed to the functions below.
  uint64_t scratch_bytes;   // Scratch memory for `run`; its content is not kept between runs.
  uint64_t constant_bytes;  // Memory kept between runs besides the constants of the graph: packed weights.
  // Required. Must not allocate memory whose size depends on the model. After an error Permafrost computes the
  // partition with its own kernels, records the error, and does not call `run` again.
  int32_t (*run)(void* self, const permafrost_run* run, char* error, size_t error_size);
  // Returns one line for each piece, for --explain, valid until `destroy`; NULL after the last. May be NULL.
  const char* (*describe)(void* self, int32_t piece);
  void (*destroy)(void* self);  // May be NULL.
} permafrost_compiled;

// Estimated speed of a delegate. Initially that of the built-in kernels. Since version 1.1.
typedef struct permafrost_speed {
  size_t struct_size;
  double flops_per_ns;           // Additions and multiplications of convolutions and matrix products.
  double bytes_per_ns;           // Bytes of operands and results.
  double node_ns;                // For each node.
  double entry_ns;               // For each run of a partition.
  double transfer_bytes_per_ns;  // Copies to the device and back; 0: it uses the memory of the host.
} permafrost_speed;

// Filled in by the entry. All members except struct_size are initially zero.
typedef struct permafrost_delegate {
  size_t struct_size;
  int32_t major, minor;  // PERMAFROST_ABI_MAJOR and _MINOR of the header that the library was built with.
  const char* name;      // The name of the delegate in reports.
  void* self;            // Passed to the functions below.
  // Required. Checks a partition of one node whose shapes are all known. Returns PERMAFROST_OK, or PERMAFROST_NO with
  // the reason.
  int32_t (*supports)(void* self, const permafrost_partition* single, char* error, size_t error_size);
  // Returns 0 for a partition that costs more to enter than it saves. NULL: all are worthwhile.
  int32_t (*is_worthwhile)(void* self, const permafrost_partition* partition);
  // Required. After an error Permafrost's own kernels run the nodes, and the error is recorded.
  int32_t (*compile)(void* self, const permafrost_partition* partition, int32_t num_threads,
                     permafrost_compiled* compiled, char* error, size_t error_size);
  void (*destroy)(void* self);  // May be NULL. Called before the library is unloaded, and only if the entry succeeded.
  // Since 1.1, both may be NULL. Sessions with several delegates place nodes by these estimates: `speed` changes
  // members of *speed, and estimate_ns returns the nanoseconds of a partition of one node that `supports` accepted, or
  // a negative number if it does not know better.
  void (*speed)(void* self, int32_t num_threads, permafrost_speed* speed);
  double (*estimate_ns)(void* self, const permafrost_partition* single);
} permafrost_delegate;

typedef int32_t (*permafrost_delegate_entry_function)(const permafrost_host* host, permafrost_delegate* delegate,
                                                      char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif  // PERMAFROST_DELEGATE_H_
