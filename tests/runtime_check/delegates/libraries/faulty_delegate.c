// A delegate that negates, with one fault, selected by a definition in the build.
#include <stdio.h>
#include <string.h>

#include "permafrost_delegate.h"

static int32_t supports(void* self, const permafrost_partition* single, char* error, size_t error_size) {
  (void)self;
  if (strcmp(single->nodes[0]->op, "Neg") == 0) return PERMAFROST_OK;
#ifdef GIVES_NO_REASON
  (void)error;
  (void)error_size;
#elif defined(FORGETS_THE_END_OF_TEXTS)
  memset(error, 'x', error_size);
#else
  snprintf(error, error_size, "negates only");
#endif
  return PERMAFROST_NO;
}

#ifndef GIVES_NOTHING_TO_RUN
static int32_t run_neg(void* self, const permafrost_run* run, char* error, size_t error_size) {
  (void)self;
  const float* from = run->inputs[0];
  float* to = run->outputs[0];
  to[0] = -from[0];
#ifdef FAILS_HALF_WAY
  snprintf(error, error_size, "the device is gone");
  return PERMAFROST_FAILED;
#else
  (void)error;
  (void)error_size;
  to[1] = -from[1];
  return PERMAFROST_OK;
#endif
}
#endif

static int32_t compile(void* self, const permafrost_partition* partition, int32_t num_threads,
                       permafrost_compiled* compiled, char* error, size_t error_size) {
  (void)self;
  (void)num_threads;
  if (partition->num_nodes != 1) {
    snprintf(error, error_size, "compiles one node only");
    return PERMAFROST_FAILED;
  }
#ifndef GIVES_NOTHING_TO_RUN
  compiled->run = &run_neg;
#endif
#ifdef ASKS_FOR_TOO_MUCH
  compiled->scratch_bytes = UINT64_MAX;
#endif
  return PERMAFROST_OK;
}

#ifndef HAS_NO_ENTRY
PERMAFROST_EXPORT int32_t permafrost_delegate_entry(const permafrost_host* host, permafrost_delegate* delegate,
                                                    char* error, size_t error_size) {
  (void)host;
  delegate->major = PERMAFROST_ABI_MAJOR;
#ifdef IS_OF_ANOTHER_MAJOR_VERSION
  delegate->major = PERMAFROST_ABI_MAJOR + 1;
  delegate->minor = 7;
#endif
#ifdef SAYS_NO_VERSION
  delegate->major = 0;
#endif
#ifdef IS_OF_A_NEWER_MINOR_VERSION
  // Simulates a careless library with a larger struct.
  delegate->minor = PERMAFROST_ABI_MINOR + 1;
  memset((char*)delegate + sizeof(*delegate), 0xff, 200);
#endif
#ifdef FAILS
  snprintf(error, error_size, "the device does not answer");
  return PERMAFROST_FAILED;
#else
  (void)error;
  (void)error_size;
#endif
#ifndef HAS_NO_NAME
  delegate->name = "faulty";
#endif
#ifndef HAS_NO_SUPPORTS
  delegate->supports = &supports;
#endif
#ifndef HAS_NO_COMPILE
  delegate->compile = &compile;
#endif
  return PERMAFROST_OK;
}
#endif
