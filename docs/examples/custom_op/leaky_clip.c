// Three kernels: one for a new op LeakyClip, one for a custom operator of that name in TensorFlow Lite models, and a
// Relu that replaces the built-in kernel for large tensors. An example to copy; docs/writing_a_custom_op.md explains
// it.
//
//   cc -O3 -shared -fPIC -Iruntime_check/delegates/external -o leaky_clip.so docs/examples/custom_op/leaky_clip.c
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "permafrost_custom_op.h"

// Minimum number of elements per thread.
#define GRAIN 16384

static const permafrost_host* the_host;

// State that the ops keep from prepare to run.
typedef struct {
  float alpha, limit;
  int64_t count;
} settings;

typedef struct {
  const settings* with;
  const float* from;
  float* to;
} work;

// The output of all ops has the shape of the input.
static int32_t same_shape(void* self, const permafrost_partition* single, permafrost_shapes* shapes, char* error,
                          size_t error_size) {
  (void)self;
  const permafrost_tensor* x = single->tensors[single->nodes[0]->inputs[0]];
  if (x->dtype != PERMAFROST_FLOAT) {
    snprintf(error, error_size, "takes float only");
    return PERMAFROST_NO;
  }
  return shapes->set(shapes, 0, x->dims, x->rank);
}

// Computes min(max(x, alpha * x), limit).
static void leaky_clip_range(void* data, int64_t begin, int64_t end) {
  const work* now = data;
  const float alpha = now->with->alpha, limit = now->with->limit;
  for (int64_t i = begin; i < end; ++i) {
    const float x = now->from[i];
    const float leaky = x < 0 ? alpha * x : x;
    now->to[i] = leaky > limit ? limit : leaky;
  }
}

static void relu_range(void* data, int64_t begin, int64_t end) {
  const work* now = data;
  for (int64_t i = begin; i < end; ++i) now->to[i] = now->from[i] < 0 ? 0 : now->from[i];
}

static int32_t run_leaky_clip(void* self, const permafrost_run* run, char* error, size_t error_size) {
  (void)error;
  (void)error_size;
  const settings* with = self;
  work now = {with, run->inputs[0], run->outputs[0]};
  run->parallel_for(run->pool, with->count, GRAIN, &leaky_clip_range, &now);
  return PERMAFROST_OK;
}

static int32_t run_relu(void* self, const permafrost_run* run, char* error, size_t error_size) {
  (void)error;
  (void)error_size;
  const settings* with = self;
  work now = {with, run->inputs[0], run->outputs[0]};
  run->parallel_for(run->pool, with->count, GRAIN, &relu_range, &now);
  return PERMAFROST_OK;
}

// Returns the settings for the node's input. Returns NULL, with the reason in `error`, if memory is exhausted.
static settings* new_settings(const permafrost_partition* single, char* error, size_t error_size) {
  settings* with = calloc(1, sizeof(settings));
  if (with == NULL) {
    snprintf(error, error_size, "out of memory");
    return NULL;
  }
  with->count = (int64_t)(single->tensors[single->nodes[0]->inputs[0]]->num_bytes / sizeof(float));
  return with;
}

static int32_t prepare_leaky_clip(void* self, const permafrost_partition* single, int32_t num_threads,
                                  permafrost_compiled* compiled, char* error, size_t error_size) {
  (void)self;
  (void)num_threads;
  const permafrost_node* node = single->nodes[0];
  settings* with = new_settings(single, error, error_size);
  if (with == NULL) return PERMAFROST_FAILED;
  with->limit = 6;  // Remains if the node has no such attribute.
  the_host->float_attr(node, "limit", &with->limit);
  const int32_t found = the_host->float_attr(node, "alpha", &with->alpha);
  if (found != PERMAFROST_OK || !(with->alpha >= 0 && with->alpha <= 1)) {
    snprintf(error, error_size, "attr 'alpha' must be a number from 0 to 1");
    free(with);
    return PERMAFROST_FAILED;
  }
  compiled->self = with;
  compiled->run = &run_leaky_clip;
  compiled->destroy = &free;
  return PERMAFROST_OK;
}

// The operator of TensorFlow Lite has its settings in the bytes of `custom_options`: two floats, alpha and limit.
static int32_t prepare_carried_clip(void* self, const permafrost_partition* single, int32_t num_threads,
                                    permafrost_compiled* compiled, char* error, size_t error_size) {
  (void)self;
  (void)num_threads;
  char bytes[2 * sizeof(float)];
  size_t length = 0;
  const int32_t found = the_host->string_attr(single->nodes[0], "custom_options", bytes, sizeof bytes, &length);
  if (found != PERMAFROST_OK || length != sizeof bytes) {
    snprintf(error, error_size, "custom_options has %zu bytes, expected %zu", length, sizeof bytes);
    return PERMAFROST_FAILED;
  }
  settings* with = new_settings(single, error, error_size);
  if (with == NULL) return PERMAFROST_FAILED;
  memcpy(&with->alpha, bytes, sizeof(float));
  memcpy(&with->limit, bytes + sizeof(float), sizeof(float));
  compiled->self = with;
  compiled->run = &run_leaky_clip;
  compiled->destroy = &free;
  return PERMAFROST_OK;
}

// Refuses small tensors, for which the built-in kernel is as fast.
static int32_t prepare_relu(void* self, const permafrost_partition* single, int32_t num_threads,
                            permafrost_compiled* compiled, char* error, size_t error_size) {
  (void)self;
  (void)num_threads;
  if (single->tensors[single->nodes[0]->inputs[0]]->num_bytes < 1024) {
    snprintf(error, error_size, "is no faster on small tensors");
    return PERMAFROST_NO;
  }
  compiled->self = new_settings(single, error, error_size);
  if (compiled->self == NULL) return PERMAFROST_FAILED;
  compiled->run = &run_relu;
  compiled->destroy = &free;
  return PERMAFROST_OK;
}

static const char* const kLeakyClipInputs[] = {"x: T", NULL};
static const char* const kLeakyClipOutputs[] = {"y: T", NULL};

static const permafrost_kernel kLeakyClip = {
    .struct_size = sizeof(permafrost_kernel),
    .op = "LeakyClip",
    .inputs = kLeakyClipInputs,
    .outputs = kLeakyClipOutputs,
    .infer_shapes = &same_shape,
    .prepare = &prepare_leaky_clip,
};
// The other ops need no signature: Permafrost knows Relu and carries operators of TensorFlow Lite.
static const permafrost_kernel kCarriedClip = {
    .struct_size = sizeof(permafrost_kernel),
    .op = "TFLite:LeakyClip",
    .infer_shapes = &same_shape,
    .prepare = &prepare_carried_clip,
};
static const permafrost_kernel kRelu = {
    .struct_size = sizeof(permafrost_kernel),
    .op = "Relu",
    .infer_shapes = &same_shape,
    .prepare = &prepare_relu,
};
static const permafrost_kernel* const kKernels[] = {&kLeakyClip, &kCarriedClip, &kRelu};

PERMAFROST_EXPORT int32_t permafrost_custom_ops_entry(const permafrost_host* host, permafrost_custom_ops* ops,
                                                      char* error, size_t error_size) {
  ops->major = PERMAFROST_ABI_MAJOR;
  ops->minor = PERMAFROST_ABI_MINOR;
  if (host->major != PERMAFROST_ABI_MAJOR) {
    snprintf(error, error_size, "was built for version %d", PERMAFROST_ABI_MAJOR);
    return PERMAFROST_FAILED;
  }
  the_host = host;
  ops->num_kernels = 3;
  ops->kernels = kKernels;
  return PERMAFROST_OK;
}
