// The C interface of the runtime: opens models, creates sessions and runs them. Plain C99. A program needs only this
// header and the library.
//
//   char error[256];
//   pf_model* model;
//   pf_session* session;
//   if (pf_open_file("model.pb", NULL, &model, error, sizeof(error)) != PF_OK) ...
//   if (pf_create_session(model, NULL, &session, error, sizeof(error)) != PF_OK) ...
//   pf_tensor image = {PF_FLOAT, 4, {1, 8, 8, 1}, pixels, sizeof(pixels)};
//   pf_tensor result = {.data = numbers, .num_bytes = sizeof(numbers)};
//   if (pf_run(session, &image, 1, &result, 1, error, sizeof(error)) != PF_OK) ...
//   pf_free_session(session);
//   pf_free_model(model);
//
// docs/guide/embedding.md explains a complete program. permafrost_runtime.hpp is the interface for C++.
//
// Errors. A function that can fail returns PF_OK (0) or one of the codes below. On failure it writes one line,
// terminated by '\0' and truncated if necessary, to `error`, a buffer of the caller of `error_size` bytes. `error` may
// be NULL. After an error, results are unchanged, except that the memory of outputs is unspecified. NULL for a required
// pointer is PF_INVALID_ARGUMENT. Functions neither throw nor print.
//
// Threads. A model is immutable and may be used by any number of threads. A session may be used by several threads, but
// its calls are serialised. For concurrent runs create one session per thread; sessions share the model's weights. An
// object must not be in use when it is freed.
//
// Memory. Results of a function belong to the object that it was called on, and live as long as that object, unless a
// comment says otherwise.
//
// Versions. A library supports every program built with a header of the same major version. Minor versions only add
// functions, and members at the end of structs that start with struct_size. Members beyond struct_size count as zero. A
// non-zero option that the library does not know is PF_UNIMPLEMENTED. Set all of such a struct to zero, then set
// struct_size; PF_OPEN_OPTIONS_INIT does both.
#ifndef PERMAFROST_RUNTIME_H_
#define PERMAFROST_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PF_VERSION_MAJOR 1
#define PF_VERSION_MINOR 0

#if defined(__GNUC__)
#define PF_EXPORT __attribute__((visibility("default")))
#else
#define PF_EXPORT
#endif

// Status codes.
typedef int32_t pf_status;
enum {
  PF_OK = 0,
  PF_CANCELLED = 1,
  PF_INVALID_ARGUMENT = 3,    // An argument or the model is invalid; the text describes the problem.
  PF_NOT_FOUND = 5,           // The file does not exist.
  PF_PERMISSION_DENIED = 7,   // For a file, or for an encrypted model without its key.
  PF_RESOURCE_EXHAUSTED = 8,  // Memory, or a configured limit.
  PF_FAILED_PRECONDITION = 9,
  PF_UNIMPLEMENTED = 12,  // The model needs a feature that this build of the runtime does not have.
  PF_INTERNAL = 13,       // An error in the runtime.
  PF_UNAVAILABLE = 14,    // A device failed.
  PF_DATA_LOSS = 15       // The file is damaged.
};

// Element types: the numbers of TensorFlow's DataType.
enum {
  PF_UNKNOWN = 0,
  PF_FLOAT = 1,
  PF_DOUBLE = 2,
  PF_INT32 = 3,
  PF_UINT8 = 4,
  PF_INT16 = 5,
  PF_INT8 = 6,
  PF_STRING = 7,  // An element is a pf_string.
  PF_COMPLEX64 = 8,
  PF_INT64 = 9,
  PF_BOOL = 10,  // A byte, 0 or 1.
  PF_QINT8 = 11,
  PF_QUINT8 = 12,
  PF_QINT32 = 13,
  PF_BFLOAT16 = 14,
  PF_QINT16 = 15,
  PF_QUINT16 = 16,
  PF_UINT16 = 17,
  PF_COMPLEX128 = 18,
  PF_HALF = 19,
  PF_UINT32 = 22,
  PF_UINT64 = 23
};

typedef struct pf_model pf_model;
typedef struct pf_session pf_session;
typedef struct pf_result pf_result;
typedef struct pf_profile pf_profile;

// Maximum number of dimensions of inputs and outputs.
#define PF_MAX_RANK 16

// An element of a string tensor. May hold any bytes; needs no terminating '\0'.
typedef struct pf_string {
  const char* data;
  size_t size;
} pf_string;

// A tensor in memory of its creator, with elements in row-major order without gaps. In descriptions of tensors that do
// not exist yet, data is NULL, and -1 represents an unknown rank or dimension.
typedef struct pf_tensor {
  int32_t dtype;
  int32_t rank;
  int64_t dims[PF_MAX_RANK];
  void* data;          // Inputs are not modified.
  uint64_t num_bytes;  // Size of the elements; 0 if unknown.
} pf_tensor;

// Returns the version of the library, major * 1000 + minor. A library whose major version differs from PF_VERSION_MAJOR
// must not be used.
PF_EXPORT int32_t pf_version(void);
// Returns a text for a status, such as "invalid argument". Never NULL; lives as long as the process.
PF_EXPORT const char* pf_status_name(pf_status status);
// Returns the size of an element in bytes: sizeof(pf_string) for strings, 0 for unknown types.
PF_EXPORT size_t pf_dtype_size(int32_t dtype);

// --- Models --------------------------------------------------------------------------------------------------------

// Kinds of secrets.
enum {
  PF_IDENTITY = 1,   // The text of an identity file: one private key per line.
  PF_PASSPHRASE = 2  // A passphrase.
};

// Provides secrets. Called only when a model is encrypted, once for each kind that could decrypt it. Calls give(to,
// bytes, size) for each secret of that kind. The bytes are copied into locked memory and may be wiped afterwards.
// Returns PF_OK, also if there are none, or the status with which opening fails.
typedef pf_status (*pf_secrets_function)(void* context, int32_t kind,
                                         void (*give)(void* to, const void* bytes, size_t size), void* to);

typedef struct pf_open_options {
  size_t struct_size;
  // Keys for an encrypted model (age): the text of an identity file, a passphrase, and a function that provides keys.
  // Each may be NULL. The texts must live until the call returns.
  const void* identity;
  size_t identity_size;
  const void* passphrase;
  size_t passphrase_size;
  pf_secrets_function secrets;
  void* secrets_context;
  // If not 0, opening fails if the system cannot lock all of an encrypted model in memory.
  int32_t require_locked_memory;
  // Maximum size of a decompressed model in bytes; 0: 16 GiB.
  uint64_t max_model_bytes;
  // Called with one-line notes about a model that opens successfully. May be NULL.
  void (*note)(void* context, const char* text);
  void* note_context;
} pf_open_options;

#define PF_OPEN_OPTIONS_INIT \
  { sizeof(pf_open_options), NULL, 0, NULL, 0, NULL, NULL, 0, 0, NULL, NULL }

// Opens the model in a file. Detects format, compression and encryption from the content. Weights stay in the file,
// which is mapped; it may be replaced but not modified while in use. `options` may be NULL.
PF_EXPORT pf_status pf_open_file(const char* path, const pf_open_options* options, pf_model** model, char* error,
                                 size_t error_size);

// Same, for `length` bytes from `offset` of a file that is open for reading, for assets inside a larger file. Length 0
// means up to the end. A pipe or socket is read to its end. The descriptor is not closed, and is not needed after the
// call.
PF_EXPORT pf_status pf_open_descriptor(int descriptor, uint64_t offset, uint64_t length, const pf_open_options* options,
                                       pf_model** model, char* error, size_t error_size);

// Same, for a model in memory, which is not copied. The memory must not change until release(release_context) is
// called. release may be NULL; it is called exactly once, from any thread, when the model and everything made from it
// is no longer in use, and also if this function fails. A memory-mapped package at an address that is a multiple of 64
// is used in place.
PF_EXPORT pf_status pf_open_memory(const void* bytes, size_t size, void (*release)(void* context),
                                   void* release_context, const pf_open_options* options, pf_model** model, char* error,
                                   size_t error_size);

// Frees a model. Its sessions remain valid. `model` may be NULL.
PF_EXPORT void pf_free_model(pf_model* model);

// --- Sessions ------------------------------------------------------------------------------------------------------

typedef struct pf_session_options {
  size_t struct_size;
  // Names of inputs and outputs, "x" or "x:1". NULL: those that the model declares; if there are none, the placeholders
  // and the nodes that no other node reads.
  const char* const* inputs;
  size_t num_inputs;
  const char* const* outputs;
  size_t num_outputs;
  // Number of threads, including the calling thread; 0: one.
  int32_t num_threads;
  // "reference", "onednn", "opencl" or "xnnpack", if the library contains it; NULL: "reference". Nodes that a delegate
  // does not support run on the reference kernels.
  const char* delegate;
  // Precision of the delegate: "f32", "bf16x3", "bf16", or any for which the model, a package, has packed weights;
  // NULL: "f32".
  const char* precision;
  // Maximum memory in bytes for activations and copied constants; 0: 4 GiB.
  int64_t memory_limit;
  // Maximum number of iterations of a loop; 0: one million; negative: unlimited.
  int64_t most_loop_iterations;
  // Processors (numbers of the kernel) that the session's threads run on, and the calling thread during a call;
  // num_processors 0: all. Threads that a delegate's library starts inherit the processors of the call that starts
  // them.
  const int32_t* processors;
  size_t num_processors;
  // Maximum number of nodes that run concurrently, each on one thread, where that is faster; 0: one.
  int32_t inter_op_threads;
  // 1: the onednn delegate computes all convolutions directly, none by Winograd's method; 0: it chooses.
  int32_t no_winograd;
} pf_session_options;

#define PF_SESSION_OPTIONS_INIT \
  { sizeof(pf_session_options), NULL, 0, NULL, 0, 0, NULL, NULL, 0, 0, NULL, 0, 0, 0 }

// Creates a session. Reports all errors that do not depend on input shapes. If the model declares all input shapes,
// prepares the first run completely. `options` may be NULL; it need not live longer than this call.
PF_EXPORT pf_status pf_create_session(const pf_model* model, const pf_session_options* options, pf_session** session,
                                      char* error, size_t error_size);

// Frees a session. `session` may be NULL.
PF_EXPORT void pf_free_session(pf_session* session);

PF_EXPORT size_t pf_num_inputs(const pf_session* session);
PF_EXPORT size_t pf_num_outputs(const pf_session* session);
// Return the name of an input or output, or NULL if `index` is too large.
PF_EXPORT const char* pf_input_name(const pf_session* session, size_t index);
PF_EXPORT const char* pf_output_name(const pf_session* session, size_t index);

// Describe the type and shape of an input or output as far as they are known before a run. Shapes of outputs are those
// for inputs as the model declares them.
PF_EXPORT pf_status pf_describe_input(const pf_session* session, size_t index, pf_tensor* tensor, char* error,
                                      size_t error_size);
PF_EXPORT pf_status pf_describe_output(const pf_session* session, size_t index, pf_tensor* tensor, char* error,
                                       size_t error_size);

// Determines the outputs for inputs of these types and shapes, ignoring their data, and prepares a run with these
// shapes. An output whose shape is known only after the run has rank -1.
PF_EXPORT pf_status pf_plan(pf_session* session, const pf_tensor* inputs, size_t num_inputs, pf_tensor* outputs,
                            size_t num_outputs, char* error, size_t error_size);

// Runs the model on the inputs, in the order of their indices, and writes the outputs to memory of the caller. On
// entry, data and num_bytes give the address and capacity of each output; on return, dtype, rank, dims and num_bytes
// describe it. Inputs and outputs are not copied if data is a multiple of 64 and the output's shape is known before the
// run. The memory of an output must not overlap that of another tensor. String outputs need pf_run_new.
PF_EXPORT pf_status pf_run(pf_session* session, const pf_tensor* inputs, size_t num_inputs, pf_tensor* outputs,
                           size_t num_outputs, char* error, size_t error_size);

// Same, with outputs in memory of the runtime, for outputs whose sizes are known only after the run. The result may
// outlive the session.
PF_EXPORT pf_status pf_run_new(pf_session* session, const pf_tensor* inputs, size_t num_inputs, pf_result** result,
                               char* error, size_t error_size);
// Returns output `index`. Its data is aligned to 64 bytes, lives as long as the result, and must not be modified.
PF_EXPORT pf_status pf_result_output(const pf_result* result, size_t index, pf_tensor* output, char* error,
                                     size_t error_size);
// Frees a result. `result` may be NULL.
PF_EXPORT void pf_free_result(pf_result* result);

// Properties of the plan that was made or run last; all zero if there is none.
typedef struct pf_report {
  size_t struct_size;          // Set by the caller.
  int64_t arena_bytes;         // Activations and scratch memory.
  int64_t constant_bytes;      // Constants that had to be computed or copied.
  int64_t num_steps;           // Nodes and partitions per run.
  int64_t num_delegated;       // Nodes of the model that run on a delegate.
  char delegate_failure[256];  // Reason why the delegate is not used; empty if it is used, or none was requested.
  // Size of packed weights used from the model; 0 in builds that do not read packed weights.
  int64_t packed_bytes;
  char packed_failure[256];  // Reason why packed weights for the delegate are not used; otherwise empty.
} pf_report;

PF_EXPORT pf_status pf_get_report(pf_session* session, pf_report* report, char* error, size_t error_size);

// --- Profiles ------------------------------------------------------------------------------------------------------

// Times of a node, or of nodes that a delegate runs as one, over all recorded runs. In microseconds, excluding nested
// entries.
typedef struct pf_profile_entry {
  size_t struct_size;  // Set by the caller.
  const char* name;    // Name of the node, or the delegate's name for it.
  const char* op;      // Op of the node; otherwise the name of the delegate, or empty.
  int64_t num_calls;
  double total_us;
  double least_us;       // In the fastest run.
  int64_t output_bytes;  // Bytes produced in the last run.
} pf_profile_entry;

// Starts (record 1) or stops (record 0) recording of runs. Starting discards earlier records.
PF_EXPORT pf_status pf_record_profile(pf_session* session, int32_t record, char* error, size_t error_size);
// Returns a copy of the recorded profile.
PF_EXPORT pf_status pf_get_profile(pf_session* session, pf_profile** profile, char* error, size_t error_size);
PF_EXPORT int64_t pf_profile_num_runs(const pf_profile* profile);
// Returns the wall time of all runs.
PF_EXPORT double pf_profile_total_us(const pf_profile* profile);
// Entries are in execution order.
PF_EXPORT size_t pf_profile_num_entries(const pf_profile* profile);
PF_EXPORT pf_status pf_get_profile_entry(const pf_profile* profile, size_t index, pf_profile_entry* entry, char* error,
                                         size_t error_size);
// Frees a profile. `profile` may be NULL.
PF_EXPORT void pf_free_profile(pf_profile* profile);

#ifdef __cplusplus
}
#endif

#endif  // PERMAFROST_RUNTIME_H_
