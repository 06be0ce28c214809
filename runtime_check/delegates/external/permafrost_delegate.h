// The C interface for delegates from shared libraries: plain C, copied or included as it is, without anything else of
// Permafrost.
//
// A library exports permafrost_delegate_entry. Permafrost calls it once, with the table of what it offers and an empty
// description of a delegate to fill in:
//
//   PERMAFROST_EXPORT int32_t permafrost_delegate_entry(const permafrost_host* host, permafrost_delegate* delegate,
//                                                       char* error, size_t error_size);
//
// docs/writing_a_delegate.md walks through an example.
//
// Versions. PERMAFROST_ABI_MAJOR changes when a library has to be built anew; Permafrost refuses a library of another
// major version, and a library should refuse another `host->major`. A minor version only adds members to the ends of
// structs and tables. Each struct starts with its size as its maker knew it: read or write a member that is newer than
// version 1.0 only if PERMAFROST_HAS says that it is there. What Permafrost finds zero or NULL it takes as not given.
//
// Errors. A function that may fail returns PERMAFROST_OK (0) or another number from below, and writes a text that ends
// in '\0' to `error`, a buffer of the caller of `error_size` bytes; 1 or more. One line in lower case without a full
// stop reads best, since Permafrost puts the place before it. Nothing may throw through this interface.
//
// Memory. What a pointer points to belongs to who made it. What Permafrost hands over lives as long as the call, if it
// does not say otherwise here.
//
// Threads. The functions of a delegate may be called from several threads at a time; `run` of one compiled partition is
// called by one thread at a time.
#ifndef PERMAFROST_DELEGATE_H_
#define PERMAFROST_DELEGATE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERMAFROST_ABI_MAJOR 1
#define PERMAFROST_ABI_MINOR 0

#define PERMAFROST_EXPORT __attribute__((visibility("default")))

// Whether *pointer, as its maker knew it, has the member.
#define PERMAFROST_HAS(pointer, member) \
  ((pointer)->struct_size >= (size_t)((const char*)(&(pointer)->member + 1) - (const char*)(pointer)))

// What functions return.
enum {
  PERMAFROST_OK = 0,
  PERMAFROST_NO = 1,          // Not this node, not these shapes: the reason is in `error`. Not a failure.
  PERMAFROST_FAILED = 2,      // The reason is in `error`.
  PERMAFROST_NOT_FOUND = 3,   // The node has no such attribute, and its op no default.
  PERMAFROST_WRONG_KIND = 4,  // The attribute is of another kind, or malformed.
  PERMAFROST_NEEDS_VALUE = 5  // Of infer_shapes in permafrost_custom_op.h.
};

// Element types: the numbers of TensorFlow's DataType. Strings, resources and variants never get here.
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

typedef struct permafrost_tensor {
  size_t struct_size;
  int32_t dtype;
  int32_t rank;         // -1: the shape is not known (only where a comment says so).
  const int64_t* dims;  // `rank` of them, all known.
  uint64_t num_bytes;   // Of the elements, in row-major order without gaps.
  int32_t is_constant;  // The value is known before the run: ask constant_data for it.
  const void* handle;   // For constant_data.
} permafrost_tensor;

typedef struct permafrost_node {
  size_t struct_size;
  const char* name;  // Unique in the graph.
  const char* op;    // "Conv2D", say. What its attributes mean is what TensorFlow says.
  int32_t num_inputs;
  const int32_t* inputs;  // Into permafrost_partition::tensors.
  int32_t num_outputs;
  const int32_t* outputs;
  const void* handle;  // For the getters of attributes.
} permafrost_node;

// A part of a graph that runs as one. Arrays are arrays of pointers, so that structs can grow.
typedef struct permafrost_partition {
  size_t struct_size;
  int32_t num_tensors;
  const permafrost_tensor* const* tensors;
  int32_t num_nodes;
  const permafrost_node* const* nodes;  // Each after those whose outputs it reads.
  int32_t num_inputs;
  const int32_t* inputs;  // The tensors that others compute, each once.
  int32_t num_outputs;
  const int32_t* outputs;  // The tensors that others read, each once; all are outputs of nodes.
} permafrost_partition;

// What Permafrost offers. Lives until the library is unloaded.
//
// The getters of attributes return PERMAFROST_OK and set *value, or PERMAFROST_NOT_FOUND or PERMAFROST_WRONG_KIND. An
// attribute that the node lacks has the default of its op. A list goes to `values`, which has room for `capacity` (may
// be 0, with values NULL); *count is how many there are, which may be more than were written.
typedef struct permafrost_host {
  size_t struct_size;
  int32_t major, minor;
  // The elements of a constant, aligned to 64 bytes; NULL when it is none, or no memory is left. They stay until the
  // compiled partition is destroyed if it came from the call of `compile`, else until the call returns.
  const void* (*constant_data)(const permafrost_tensor* tensor);
  int32_t (*int_attr)(const permafrost_node* node, const char* name, int64_t* value);
  int32_t (*float_attr)(const permafrost_node* node, const char* name, float* value);
  int32_t (*bool_attr)(const permafrost_node* node, const char* name, int32_t* value);
  int32_t (*type_attr)(const permafrost_node* node, const char* name, int32_t* value);
  // *rank is -1 and nothing is written for a shape of unknown rank; an unknown dimension is -1.
  int32_t (*shape_attr)(const permafrost_node* node, const char* name, int64_t* dims, size_t capacity, int32_t* rank);
  // *length is without the '\0', which is written where there is room. The bytes may hold any value.
  int32_t (*string_attr)(const permafrost_node* node, const char* name, char* value, size_t capacity, size_t* length);
  int32_t (*int_list_attr)(const permafrost_node* node, const char* name, int64_t* values, size_t capacity,
                           size_t* count);
  int32_t (*float_list_attr)(const permafrost_node* node, const char* name, float* values, size_t capacity,
                             size_t* count);
  int32_t (*type_list_attr)(const permafrost_node* node, const char* name, int32_t* values, size_t capacity,
                            size_t* count);
  // How many strings there are, and one of them.
  int32_t (*string_list_size)(const permafrost_node* node, const char* name, size_t* count);
  int32_t (*string_list_item)(const permafrost_node* node, const char* name, size_t index, char* value, size_t capacity,
                              size_t* length);
} permafrost_host;

// One run of a compiled partition. The buffers are aligned to 64 bytes and exactly of the tensors' sizes. No output
// overlaps another buffer; inputs may share memory, and must not be written to.
typedef struct permafrost_run {
  size_t struct_size;
  const void* const* inputs;  // In the order of permafrost_partition::inputs.
  void* const* outputs;
  void* scratch;  // permafrost_compiled::scratch_bytes, with undefined content.
  // For profiles: what ran, and how long. NULL when nobody asks.
  void (*on_piece)(void* piece_context, const char* name, int64_t nanoseconds);
  void* piece_context;
  // Calls body(data, begin, end) on pieces that cover [0, count) once, from the threads of the session, and returns
  // when all are done; no piece is smaller than `grain` (1 or more) without need. NULL for delegates, which have
  // threads of their own if they want any.
  void (*parallel_for)(void* pool, int64_t count, int64_t grain, void (*body)(void* data, int64_t begin, int64_t end),
                       void* data);
  void* pool;
} permafrost_run;

// Filled in by `compile`, which finds it zero but for struct_size.
typedef struct permafrost_compiled {
  size_t struct_size;
  void* self;               // Handed to the functions below.
  uint64_t scratch_bytes;   // What `run` needs; it is not kept from run to run.
  uint64_t constant_bytes;  // What is kept from run to run beside the constants of the graph: packed weights.
  // Required. Allocates nothing of a size that depends on the model. After an error Permafrost computes everything
  // again with its own kernels, notes the error, and does not call `run` again.
  int32_t (*run)(void* self, const permafrost_run* run, char* error, size_t error_size);
  // One line for each piece that runs, for --explain, valid until `destroy`; NULL after the last. May be NULL.
  const char* (*describe)(void* self, int32_t piece);
  void (*destroy)(void* self);  // May be NULL.
} permafrost_compiled;

// Filled in by the entry, which finds it zero but for struct_size.
typedef struct permafrost_delegate {
  size_t struct_size;
  int32_t major, minor;  // PERMAFROST_ABI_MAJOR and _MINOR of the header that the library was built with.
  const char* name;      // What reports call the delegate.
  void* self;            // Handed to the functions below.
  // Required. For a partition of one node whose shapes are all known: PERMAFROST_OK, or PERMAFROST_NO and why not.
  int32_t (*supports)(void* self, const permafrost_partition* single, char* error, size_t error_size);
  // 0 for a partition that costs more to enter than it saves. NULL: all are worthwhile.
  int32_t (*is_worthwhile)(void* self, const permafrost_partition* partition);
  // Required. An error sends the nodes back to Permafrost's own kernels, with a note.
  int32_t (*compile)(void* self, const permafrost_partition* partition, int32_t num_threads,
                     permafrost_compiled* compiled, char* error, size_t error_size);
  void (*destroy)(void* self);  // May be NULL. Called before the library is unloaded, and only if the entry succeeded.
} permafrost_delegate;

typedef int32_t (*permafrost_delegate_entry_function)(const permafrost_host* host, permafrost_delegate* delegate,
                                                      char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif  // PERMAFROST_DELEGATE_H_
