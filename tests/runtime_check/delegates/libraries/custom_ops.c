// Kernels that use edge cases of the interface, or that have one fault, selected by a definition in the build.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "permafrost_custom_op.h"

#ifndef OP
#define OP AddAll
#endif
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

static int g_num_alive;

typedef struct {
  int32_t num_inputs;
  int64_t count;
} settings;

static int32_t infer_shapes(void* self, const permafrost_partition* single, permafrost_shapes* shapes, char* error,
                            size_t error_size) {
  (void)self;
  const permafrost_node* node = single->nodes[0];
  const permafrost_tensor* x = single->tensors[node->inputs[0]];
  if (x->dtype != PERMAFROST_FLOAT) {
    snprintf(error, error_size, "adds float only");
    return PERMAFROST_NO;
  }
#ifdef LEAVES_OUT_A_SHAPE
  return shapes->set(shapes, 0, x->dims, x->rank);
#endif
  const int64_t count = node->num_inputs;
  const int64_t negative = -1;
  if (shapes->set(shapes, 2, &count, 1) != PERMAFROST_FAILED || shapes->set(shapes, -1, &count, 1) == PERMAFROST_OK ||
      shapes->set(shapes, 0, &negative, 1) != PERMAFROST_FAILED || shapes->set(shapes, 0, NULL, 1) == PERMAFROST_OK) {
    snprintf(error, error_size, "a wrong shape was taken");
    return PERMAFROST_FAILED;
  }
#ifdef IS_HUGE
  const int64_t huge[2] = {(int64_t)1 << 62, 2};
  shapes->set(shapes, 0, huge, 2);
#else
  shapes->set(shapes, 0, x->dims, x->rank);
#endif
  return shapes->set(shapes, 1, &count, 1);
}

static int32_t run_add(void* self, const permafrost_run* run, char* error, size_t error_size) {
#ifdef FAILS_TO_RUN
  (void)self;
  (void)run;
  snprintf(error, error_size, "the device is gone");
  return PERMAFROST_FAILED;
#else
  (void)error;
  (void)error_size;
  const settings* with = self;
  float* sum = run->outputs[0];
  int32_t* counts = run->outputs[1];
  for (int64_t j = 0; j < with->count; ++j) sum[j] = 0;
  for (int32_t i = 0; i < with->num_inputs; ++i) {
    const float* x = run->inputs[i];
    for (int64_t j = 0; j < with->count; ++j) sum[j] += x[j];
    counts[i] = g_num_alive;
  }
  memset(run->scratch, 1, 100);
  return PERMAFROST_OK;
#endif
}

static void destroy(void* self) {
  --g_num_alive;
  free(self);
}

static int32_t prepare(void* self, const permafrost_partition* single, int32_t num_threads,
                       permafrost_compiled* compiled, char* error, size_t error_size) {
  (void)self;
  (void)num_threads;
  (void)error;
  (void)error_size;
#ifdef FAILS_TO_PREPARE
  snprintf(error, error_size, "does not feel like it");
  return PERMAFROST_FAILED;
#endif
  settings* with = calloc(1, sizeof(settings));
  with->num_inputs = single->num_inputs;
  with->count = (int64_t)(single->tensors[single->outputs[0]]->num_bytes / sizeof(float));
  ++g_num_alive;
  compiled->self = with;
  compiled->scratch_bytes = 100;
  compiled->run = &run_add;
  compiled->destroy = &destroy;
  return PERMAFROST_OK;
}

#ifndef IS_KNOWN
#ifdef HAS_A_BAD_ARGUMENT
static const char* const kInputs[] = {"x T", NULL};
#else
static const char* const kInputs[] = {"x: N * T", NULL};
#endif
static const char* const kOutputs[] = {"sum: T", "counts: int32", NULL};
#endif

// The value of the second input is the shape, so that it may be known only during the run.
static int32_t infer_filled(void* self, const permafrost_partition* single, permafrost_shapes* shapes, char* error,
                            size_t error_size);
static int32_t prepare_filled(void* self, const permafrost_partition* single, int32_t num_threads,
                              permafrost_compiled* compiled, char* error, size_t error_size);

static const char* const kFilledInputs[] = {"value: float", "count: int64", NULL};
static const char* const kFilledOutputs[] = {"result: float", NULL};
static const permafrost_kernel kFilled = {.struct_size = sizeof(permafrost_kernel),
                                          .op = "FilledTimes",
                                          .inputs = kFilledInputs,
                                          .outputs = kFilledOutputs,
                                          .flags = PERMAFROST_STATEFUL,
                                          .infer_shapes = &infer_filled,
                                          .prepare = &prepare_filled};
static const permafrost_kernel kAddAll = {.struct_size = sizeof(permafrost_kernel),
                                          .op = TEXT(OP),
#ifndef IS_KNOWN
                                          .inputs = kInputs,
                                          .outputs = kOutputs,
#endif
#ifndef HAS_NO_SHAPES
                                          .infer_shapes = &infer_shapes,
#endif
#ifndef HAS_NO_PREPARE
                                          .prepare = &prepare
#endif
};
static const permafrost_kernel* const kKernels[] = {&kAddAll, &kFilled};

static const permafrost_host* the_host;

static int32_t infer_filled(void* self, const permafrost_partition* single, permafrost_shapes* shapes, char* error,
                            size_t error_size) {
  (void)self;
  const int64_t* count = the_host->constant_data(single->tensors[1]);
  if (count == NULL) {
    shapes->needs_value_of = 1;
    return PERMAFROST_NEEDS_VALUE;
  }
  if (*count < 0) {
    snprintf(error, error_size, "a negative count");
    return PERMAFROST_FAILED;
  }
  return shapes->set(shapes, 0, count, 1);
}

static int32_t run_filled(void* self, const permafrost_run* run, char* error, size_t error_size) {
  (void)error;
  (void)error_size;
  const settings* with = self;
  float* to = run->outputs[0];
  for (int64_t i = 0; i < with->count; ++i) to[i] = *(const float*)run->inputs[0];
  return PERMAFROST_OK;
}

static int32_t prepare_filled(void* self, const permafrost_partition* single, int32_t num_threads,
                              permafrost_compiled* compiled, char* error, size_t error_size) {
  const int32_t result = prepare(self, single, num_threads, compiled, error, error_size);
  compiled->scratch_bytes = 0;
  compiled->run = &run_filled;
  return result;
}

PERMAFROST_EXPORT int32_t permafrost_custom_ops_entry(const permafrost_host* host, permafrost_custom_ops* ops,
                                                      char* error, size_t error_size) {
  the_host = host;
  ops->major = PERMAFROST_ABI_MAJOR;
#ifdef IS_OF_ANOTHER_MAJOR_VERSION
  ops->major = PERMAFROST_ABI_MAJOR + 1;
#endif
#ifdef FAILS
  snprintf(error, error_size, "not today");
  return PERMAFROST_FAILED;
#else
  (void)error;
  (void)error_size;
#endif
#ifndef HAS_NO_KERNELS
  ops->num_kernels = 2;
  ops->kernels = kKernels;
#endif
  return PERMAFROST_OK;
}
