// The C interface of the runtime: open a model, make a session, run it. Plain C99; this header is all that a program
// needs beside the library.
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
// docs/guide/embedding.md walks through a whole program; permafrost_runtime.hpp is the same for C++.
//
// Errors. A function that may fail returns PF_OK (0) or the reason as another number from below, and then writes one
// line, which ends in '\0' and is cut where it does not fit, to `error`, a buffer of the caller of `error_size` bytes.
// `error` may be NULL where nobody wants to know. After an error, results are as they were, but that the memory of
// outputs may hold anything. NULL where a pointer is needed is PF_INVALID_ARGUMENT. Nothing is thrown or printed.
//
// Threads. A model never changes: any threads may use it at any time. A session may be used by several threads too;
// its calls wait for each other. For runs at the same time, make a session for each thread: they share the model's
// weights. Whatever is freed must no longer be in use.
//
// Memory. What a function gives belongs to the object that it came from, and lives as long as that, unless a comment
// says otherwise.
//
// Versions. A library serves every program that was built with a header of the same major version. A minor version only
// adds functions, and members at the ends of the structs that start with struct_size; what lies beyond struct_size
// counts as zero, and an option that the library is too old for is PF_UNIMPLEMENTED where it is not zero. Set all of
// such a struct to zero first, then struct_size: PF_OPEN_OPTIONS_INIT does it.
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

// What functions return.
typedef int32_t pf_status;
enum {
  PF_OK = 0,
  PF_CANCELLED = 1,
  PF_INVALID_ARGUMENT = 3,    // What the caller gave, or the model, is wrong: the text says how.
  PF_NOT_FOUND = 5,           // There is no such file.
  PF_PERMISSION_DENIED = 7,   // To a file, or to an encrypted model without its key.
  PF_RESOURCE_EXHAUSTED = 8,  // Memory, or a limit that was set.
  PF_FAILED_PRECONDITION = 9,
  PF_UNIMPLEMENTED = 12,  // The model needs what this build of the runtime does not have.
  PF_INTERNAL = 13,       // A mistake of the runtime.
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

// Shapes of inputs and outputs have at most so many dimensions.
#define PF_MAX_RANK 16

// An element of a tensor of strings. Any bytes; no '\0' is needed at the end.
typedef struct pf_string {
  const char* data;
  size_t size;
} pf_string;

// A tensor in memory of whoever made it: the elements lie row by row without gaps. Where it describes what is not there
// yet, data is NULL and -1 stands for what is not known: as rank, or as a dimension.
typedef struct pf_tensor {
  int32_t dtype;
  int32_t rank;
  int64_t dims[PF_MAX_RANK];
  void* data;          // Inputs are only read.
  uint64_t num_bytes;  // Of the elements; 0 where that is not known.
} pf_tensor;

// The version of the library: major * 1000 + minor. What differs in major from PF_VERSION_MAJOR must not be used.
PF_EXPORT int32_t pf_version(void);
// "invalid argument": a text for a status. Never NULL; lives as long as the process.
PF_EXPORT const char* pf_status_name(pf_status status);
// Bytes of an element: those of a pf_string for strings, 0 for numbers that are no element type.
PF_EXPORT size_t pf_dtype_size(int32_t dtype);

// --- Models --------------------------------------------------------------------------------------------------------

// What a secret is for.
enum {
  PF_IDENTITY = 1,   // The text of an identity file: private keys, one on each line.
  PF_PASSPHRASE = 2  // A passphrase.
};

// Asked for secrets when a model turns out to be encrypted, and not before, once for each kind that could open it.
// Calls give(to, bytes, size) for each secret of that kind that there is; the bytes are copied into memory that is kept
// out of swap, and may be wiped after that. Returns PF_OK, also when there is none, or what opening is to fail with.
typedef pf_status (*pf_secrets_function)(void* context, int32_t kind,
                                         void (*give)(void* to, const void* bytes, size_t size), void* to);

typedef struct pf_open_options {
  size_t struct_size;
  // Keys for a model that is encrypted (age): the text of an identity file and a passphrase, each NULL for none, and a
  // function that is asked for them, NULL for none. The texts need to live until the call returns.
  const void* identity;
  size_t identity_size;
  const void* passphrase;
  size_t passphrase_size;
  pf_secrets_function secrets;
  void* secrets_context;
  // Fail where the system does not let all of an encrypted model be kept out of swap.
  int32_t require_locked_memory;
  // What a compressed model may grow to, in bytes; 0: 16 GiB.
  uint64_t max_model_bytes;
  // Told, in one line, what the user should know of a model that opens all the same. May be NULL.
  void (*note)(void* context, const char* text);
  void* note_context;
} pf_open_options;

#define PF_OPEN_OPTIONS_INIT \
  { sizeof(pf_open_options), NULL, 0, NULL, 0, NULL, NULL, 0, 0, NULL, NULL }

// Opens the model in a file, whatever its format: the content tells, and whether it is compressed or encrypted. Weights
// stay where they are in the file, which is mapped; it may be replaced meanwhile, but not written to. `options` may be
// NULL.
PF_EXPORT pf_status pf_open_file(const char* path, const pf_open_options* options, pf_model** model, char* error,
                                 size_t error_size);

// The same for `length` bytes from `offset` on of a file that is open for reading, where assets lie in a larger file;
// length 0 is up to the end. A pipe or socket is read to its end. The descriptor is not closed, and not needed any more
// when this returns.
PF_EXPORT pf_status pf_open_descriptor(int descriptor, uint64_t offset, uint64_t length, const pf_open_options* options,
                                       pf_model** model, char* error, size_t error_size);

// The same for a model in memory, which is not copied: it must stay as it is until release(release_context) is called,
// if that is not NULL. It is called once, when nothing of the model is in use any more, from whichever thread that is;
// also when this fails. A memory-mapped package at an address that is a multiple of 64 runs in place.
PF_EXPORT pf_status pf_open_memory(const void* bytes, size_t size, void (*release)(void* context),
                                   void* release_context, const pf_open_options* options, pf_model** model, char* error,
                                   size_t error_size);

// Sessions of the model go on living. NULL is fine.
PF_EXPORT void pf_free_model(pf_model* model);

// --- Sessions ------------------------------------------------------------------------------------------------------

typedef struct pf_session_options {
  size_t struct_size;
  // Names of what is fed and fetched, "x" or "x:1". NULL: what the model declares, or else what is found: the
  // placeholders, and what no node reads.
  const char* const* inputs;
  size_t num_inputs;
  const char* const* outputs;
  size_t num_outputs;
  // Threads that compute, the caller's among them; 0: one.
  int32_t num_threads;
  // "reference", "onednn" or "xnnpack", as far as the library has them; NULL: "reference". What a delegate does not
  // take runs on the reference kernels.
  const char* delegate;
  // Of the delegate: "f32", "bf16x3", "bf16", or any that the model is a package with packed weights for; NULL: "f32".
  const char* precision;
  // Bytes that activations, and constants that had to be copied, may take; 0: 4 GiB.
  int64_t memory_limit;
  // Rounds after which a loop is given up; 0: one million; negative: never.
  int64_t most_loop_iterations;
  // The processors that the session's threads run on, and the calling thread while a call of the session lasts, as the
  // kernel numbers them; num_processors 0: all. Threads that a delegate's library starts stay where the call was that
  // started them.
  const int32_t* processors;
  size_t num_processors;
  // How many nodes may run at the same time, each on one thread, where that is faster; 0: one.
  int32_t inter_op_threads;
} pf_session_options;

#define PF_SESSION_OPTIONS_INIT \
  { sizeof(pf_session_options), NULL, 0, NULL, 0, 0, NULL, NULL, 0, 0, NULL, 0, 0 }

// Makes a session. All that can be found to be wrong without knowing the shapes of the inputs is found here, and, where
// the model tells all of those, everything is prepared for the first run. `options` may be NULL; what it points to need
// not live longer than this call.
PF_EXPORT pf_status pf_create_session(const pf_model* model, const pf_session_options* options, pf_session** session,
                                      char* error, size_t error_size);

// NULL is fine.
PF_EXPORT void pf_free_session(pf_session* session);

PF_EXPORT size_t pf_num_inputs(const pf_session* session);
PF_EXPORT size_t pf_num_outputs(const pf_session* session);
// NULL when there is none of that number.
PF_EXPORT const char* pf_input_name(const pf_session* session, size_t index);
PF_EXPORT const char* pf_output_name(const pf_session* session, size_t index);

// The type and shape of an input or output, as far as they are known before a run; of an output, for inputs as the
// model declares them.
PF_EXPORT pf_status pf_describe_input(const pf_session* session, size_t index, pf_tensor* tensor, char* error,
                                      size_t error_size);
PF_EXPORT pf_status pf_describe_output(const pf_session* session, size_t index, pf_tensor* tensor, char* error,
                                       size_t error_size);

// What comes out for inputs of these types and shapes, whose data is not looked at. What only the run tells has a rank
// of -1. Everything is prepared for a run with these shapes.
PF_EXPORT pf_status pf_plan(pf_session* session, const pf_tensor* inputs, size_t num_inputs, pf_tensor* outputs,
                            size_t num_outputs, char* error, size_t error_size);

// Runs the model on the inputs, in the order of their numbers, and writes the outputs into memory of the caller: data
// and num_bytes say where and how much room there is; dtype, rank, dims and num_bytes are what came out. Neither inputs
// nor outputs are copied where data is a multiple of 64 and the output's shape is known before the run. The memory of
// an output must not overlap that of another tensor. Strings come by pf_run_new only.
PF_EXPORT pf_status pf_run(pf_session* session, const pf_tensor* inputs, size_t num_inputs, pf_tensor* outputs,
                           size_t num_outputs, char* error, size_t error_size);

// The same into memory that the runtime makes, for outputs of sizes that only the run tells. The result outlives the
// session.
PF_EXPORT pf_status pf_run_new(pf_session* session, const pf_tensor* inputs, size_t num_inputs, pf_result** result,
                               char* error, size_t error_size);
// The output of that number; data is aligned to 64 bytes, lives as long as the result, and must not be written to.
PF_EXPORT pf_status pf_result_output(const pf_result* result, size_t index, pf_tensor* output, char* error,
                                     size_t error_size);
// NULL is fine.
PF_EXPORT void pf_free_result(pf_result* result);

// What the plan is like that was made or run last; all zero before.
typedef struct pf_report {
  size_t struct_size;          // Set by the caller.
  int64_t arena_bytes;         // Activations and scratch memory.
  int64_t constant_bytes;      // Constants that had to be computed or copied.
  int64_t num_steps;           // Nodes and partitions that run.
  int64_t num_delegated;       // Nodes of the model that a delegate runs.
  char delegate_failure[256];  // Why the delegate takes no part after all; empty where it does, or there is none.
  // Of weights that are used as they lie packed in the model; 0 where a build was made to look for none.
  int64_t packed_bytes;
  char packed_failure[256];  // Why those that the model has for the delegate are not used; otherwise empty.
} pf_report;

PF_EXPORT pf_status pf_get_report(pf_session* session, pf_report* report, char* error, size_t error_size);

// --- Profiles ------------------------------------------------------------------------------------------------------

// Of a node, or of what a delegate runs as one, over all runs that were recorded. Times are in microseconds, and do not
// include what ran inside of it.
typedef struct pf_profile_entry {
  size_t struct_size;  // Set by the caller.
  const char* name;    // Of the node, or what the delegate calls it.
  const char* op;      // Of the node; otherwise the delegate's name, or empty.
  int64_t num_calls;
  double total_us;
  double least_us;       // In the run in which it was fastest.
  int64_t output_bytes;  // That it made in the last run.
} pf_profile_entry;

// Starts (record 1) or stops (0) recording each run. Starting forgets what was recorded before.
PF_EXPORT pf_status pf_record_profile(pf_session* session, int32_t record, char* error, size_t error_size);
// What was recorded so far, as a copy.
PF_EXPORT pf_status pf_get_profile(pf_session* session, pf_profile** profile, char* error, size_t error_size);
PF_EXPORT int64_t pf_profile_num_runs(const pf_profile* profile);
// Of all runs together, by the clock.
PF_EXPORT double pf_profile_total_us(const pf_profile* profile);
// In the order in which they ran.
PF_EXPORT size_t pf_profile_num_entries(const pf_profile* profile);
PF_EXPORT pf_status pf_get_profile_entry(const pf_profile* profile, size_t index, pf_profile_entry* entry, char* error,
                                         size_t error_size);
// NULL is fine.
PF_EXPORT void pf_free_profile(pf_profile* profile);

#ifdef __cplusplus
}
#endif

#endif  // PERMAFROST_RUNTIME_H_
