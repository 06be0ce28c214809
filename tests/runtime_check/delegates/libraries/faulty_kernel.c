// A kernel that replaces an elementwise op and has a fault at tensors of one size: for tests and benchmarks of
// reduce_model.
//
// OP is the op. BYTES is the size of the tensors with the fault; the built-in kernel computes others. FAULT is one of
// the numbers below. With LOG, the kernel writes the sizes that it is asked for to that file and has no fault.
#include <stdio.h>
#include <stdlib.h>

#include "permafrost_custom_op.h"

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

enum { kWrong = 0, kCrashes = 1, kFails = 2, kHangs = 3 };

#ifndef FAULT
#define FAULT kWrong
#endif
#ifndef BYTES
#define BYTES 0  // Any size.
#endif

static int32_t infer_shapes(void* self, const permafrost_partition* single, permafrost_shapes* shapes, char* error,
                            size_t error_size) {
  (void)self;
  const permafrost_tensor* x = single->tensors[single->nodes[0]->inputs[0]];
  int is_whole = x->dtype == PERMAFROST_FLOAT;
  for (int32_t i = 1; i < single->nodes[0]->num_inputs; ++i) {
    is_whole = is_whole && single->tensors[single->nodes[0]->inputs[i]]->num_bytes <= x->num_bytes;
  }
  if (!is_whole) {
    snprintf(error, error_size, "takes floats of the shape of the first input");
    return PERMAFROST_NO;
  }
  return shapes->set(shapes, 0, x->dims, x->rank);
}

static int32_t run_faulty(void* self, const permafrost_run* run, char* error, size_t error_size) {
  const int64_t count = *(const int64_t*)self;
  const float* x = run->inputs[0];
  float* y = run->outputs[0];
  volatile int runs_on = 1;
  switch (FAULT) {
    case kCrashes:
      abort();
    case kFails:
      snprintf(error, error_size, "the device is gone");
      return PERMAFROST_FAILED;
    case kHangs:
      while (runs_on) {
      }
      break;
    default:
      break;
  }
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] + 1;
  return PERMAFROST_OK;
}

static int32_t prepare(void* self, const permafrost_partition* single, int32_t num_threads,
                       permafrost_compiled* compiled, char* error, size_t error_size) {
  (void)self;
  (void)num_threads;
  const uint64_t bytes = (uint64_t)single->tensors[single->nodes[0]->inputs[0]]->num_bytes;
#ifdef LOG
  FILE* log = fopen(TEXT(LOG), "a");
  if (log != NULL) {
    fprintf(log, "%llu\n", (unsigned long long)bytes);
    fclose(log);
  }
  snprintf(error, error_size, "only logs");
  return PERMAFROST_NO;
#endif
  if (BYTES != 0 && bytes != BYTES) {
    snprintf(error, error_size, "has no fault at this size");
    return PERMAFROST_NO;
  }
  int64_t* count = malloc(sizeof(int64_t));
  if (count == NULL) return PERMAFROST_FAILED;
  *count = (int64_t)(bytes / sizeof(float));
  compiled->self = count;
  compiled->run = &run_faulty;
  compiled->destroy = &free;
  return PERMAFROST_OK;
}

static const permafrost_kernel kKernel = {
    .struct_size = sizeof(permafrost_kernel), .op = TEXT(OP), .infer_shapes = &infer_shapes, .prepare = &prepare};
static const permafrost_kernel* const kKernels[] = {&kKernel};

PERMAFROST_EXPORT int32_t permafrost_custom_ops_entry(const permafrost_host* host, permafrost_custom_ops* ops,
                                                      char* error, size_t error_size) {
  (void)host;
  (void)error;
  (void)error_size;
  ops->major = PERMAFROST_ABI_MAJOR;
  ops->num_kernels = 1;
  ops->kernels = kKernels;
  return PERMAFROST_OK;
}
