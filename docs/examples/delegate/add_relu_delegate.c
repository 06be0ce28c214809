// A delegate that runs chains of additions and Relu: an example to copy. docs/writing_a_delegate.md explains it.
//
//   cc -O2 -shared -fPIC -Iruntime_check/delegates/external -o add_relu_delegate.so
//      docs/examples/delegate/add_relu_delegate.c
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "permafrost_delegate.h"

// Location of a tensor during a run.
enum { IN_INPUTS, IN_OUTPUTS, IN_SCRATCH, IN_CONSTANTS };

typedef struct {
  int where;
  int32_t index;         // For IN_INPUTS and IN_OUTPUTS.
  uint64_t offset;       // For IN_SCRATCH: in bytes.
  const void* constant;  // For IN_CONSTANTS.
} place;

typedef struct {
  int is_relu;
  place a, b, result;  // b is unused for Relu.
  uint64_t count;      // Number of elements.
  char text[160];      // For --explain.
} step;

typedef struct {
  int32_t num_steps;
  step* steps;
} program;

static const permafrost_host* the_host;

static int is_add(const permafrost_node* node) {
  return strcmp(node->op, "AddV2") == 0 || strcmp(node->op, "Add") == 0;
}

static int have_same_shape(const permafrost_tensor* a, const permafrost_tensor* b) {
  return a->rank == b->rank && (a->rank == 0 || memcmp(a->dims, b->dims, sizeof(int64_t) * (size_t)a->rank) == 0);
}

// Called for each node whose shapes are known. --explain prints the reason of a refusal.
static int32_t supports(void* self, const permafrost_partition* single, char* error, size_t error_size) {
  (void)self;
  const permafrost_node* node = single->nodes[0];
  if (!is_add(node) && strcmp(node->op, "Relu") != 0) {
    snprintf(error, error_size, "runs additions and Relu only");
    return PERMAFROST_NO;
  }
  const permafrost_tensor* result = single->tensors[node->outputs[0]];
  if (result->dtype != PERMAFROST_FLOAT) {
    snprintf(error, error_size, "runs float only");
    return PERMAFROST_NO;
  }
  for (int32_t i = 0; i < node->num_inputs; ++i) {
    if (have_same_shape(single->tensors[node->inputs[i]], result)) continue;
    snprintf(error, error_size, "does not broadcast");
    return PERMAFROST_NO;
  }
  return PERMAFROST_OK;
}

// Entering a partition costs a call and, for an engine with separate memory, copies: a single node is not worth it.
static int32_t is_worthwhile(void* self, const permafrost_partition* partition) {
  (void)self;
  return partition->num_nodes >= 2;
}

static void* memory_of(const place* place, const permafrost_run* run) {
  switch (place->where) {
    case IN_INPUTS:
      return (void*)run->inputs[place->index];
    case IN_OUTPUTS:
      return run->outputs[place->index];
    case IN_SCRATCH:
      return (char*)run->scratch + place->offset;
    default:
      return (void*)place->constant;
  }
}

static int32_t run_program(void* self, const permafrost_run* run, char* error, size_t error_size) {
  (void)error;
  (void)error_size;
  const program* code = self;
  for (int32_t i = 0; i < code->num_steps; ++i) {
    const step* now = &code->steps[i];
    const float* a = memory_of(&now->a, run);
    float* result = memory_of(&now->result, run);
    if (now->is_relu) {
      for (uint64_t j = 0; j < now->count; ++j) result[j] = a[j] < 0 ? 0 : a[j];
    } else {
      const float* b = memory_of(&now->b, run);
      for (uint64_t j = 0; j < now->count; ++j) result[j] = a[j] + b[j];
    }
  }
  return PERMAFROST_OK;
}

static const char* describe(void* self, int32_t piece) {
  const program* code = self;
  return piece < code->num_steps ? code->steps[piece].text : NULL;
}

static void destroy_program(void* self) {
  program* code = self;
  free(code->steps);
  free(code);
}

// Determines the location of each tensor. Returns 0 if memory for a constant is exhausted.
static int find_places(const permafrost_partition* partition, place* places, uint64_t* scratch_bytes) {
  for (int32_t i = 0; i < partition->num_tensors; ++i) {
    const permafrost_tensor* tensor = partition->tensors[i];
    if (tensor->is_constant) {
      places[i].where = IN_CONSTANTS;
      places[i].constant = the_host->constant_data(tensor);
      if (places[i].constant == NULL) return 0;
    } else {
      places[i].where = IN_SCRATCH;
      places[i].offset = *scratch_bytes;
      *scratch_bytes += (tensor->num_bytes + 63) / 64 * 64;
    }
  }
  for (int32_t i = 0; i < partition->num_inputs; ++i) {
    places[partition->inputs[i]].where = IN_INPUTS;
    places[partition->inputs[i]].index = i;
  }
  for (int32_t i = 0; i < partition->num_outputs; ++i) {
    places[partition->outputs[i]].where = IN_OUTPUTS;
    places[partition->outputs[i]].index = i;
  }
  return 1;
}

// Converts the partition to a list of steps with the locations of their tensors. The partition is invalid after the
// call, so data needed later is copied. Requested constants remain valid.
static int32_t compile(void* self, const permafrost_partition* partition, int32_t num_threads,
                       permafrost_compiled* compiled, char* error, size_t error_size) {
  (void)self;
  (void)num_threads;
  place* places = calloc((size_t)partition->num_tensors, sizeof(place));
  step* steps = calloc((size_t)partition->num_nodes, sizeof(step));
  program* code = calloc(1, sizeof(program));
  if (places == NULL || steps == NULL || code == NULL || !find_places(partition, places, &compiled->scratch_bytes)) {
    snprintf(error, error_size, "out of memory");
    free(places);
    free(steps);
    free(code);
    return PERMAFROST_FAILED;
  }
  for (int32_t i = 0; i < partition->num_nodes; ++i) {
    const permafrost_node* node = partition->nodes[i];
    step* now = &steps[i];
    now->is_relu = !is_add(node);
    now->a = places[node->inputs[0]];
    if (!now->is_relu) now->b = places[node->inputs[1]];
    now->result = places[node->outputs[0]];
    now->count = partition->tensors[node->outputs[0]]->num_bytes / sizeof(float);
    snprintf(now->text, sizeof(now->text), "%s: %s in a plain loop", node->name, now->is_relu ? "relu" : "add");
  }
  free(places);
  code->num_steps = partition->num_nodes;
  code->steps = steps;
  compiled->self = code;
  compiled->run = &run_program;
  compiled->describe = &describe;
  compiled->destroy = &destroy_program;
  return PERMAFROST_OK;
}

PERMAFROST_EXPORT int32_t permafrost_delegate_entry(const permafrost_host* host, permafrost_delegate* delegate,
                                                    char* error, size_t error_size) {
  delegate->major = PERMAFROST_ABI_MAJOR;
  delegate->minor = PERMAFROST_ABI_MINOR;
  if (host->major != PERMAFROST_ABI_MAJOR) {
    snprintf(error, error_size, "was built for version %d", PERMAFROST_ABI_MAJOR);
    return PERMAFROST_FAILED;
  }
  the_host = host;
  delegate->name = "add_relu";
  delegate->supports = &supports;
  delegate->is_worthwhile = &is_worthwhile;
  delegate->compile = &compile;
  return PERMAFROST_OK;
}
