// A delegate for an accelerator that computes with integers only: an example of a vendor's delegate. machine.h
// describes the simulated processor, operators.h its operators, and docs/writing_a_delegate.md the interface.
//
//   cc -O3 -shared -fPIC -Iruntime_check/delegates/external -o dsp_int8.so docs/examples/dsp_int8/*.c
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operators.h"
#include "permafrost_delegate.h"

// Location of a tensor during a run. External memory is the caller's buffers and the scratch memory behind the local
// memory.
typedef enum location { NOWHERE, IN_INPUTS, IN_OUTPUTS, IN_SCRATCH, IN_CONSTANTS } location;

typedef struct place {
  location where;
  int32_t index;         // For IN_INPUTS and IN_OUTPUTS.
  uint64_t offset;       // For IN_SCRATCH: in bytes.
  const void* constant;  // For IN_CONSTANTS.
} place;

typedef struct step {
  dsp_operator op;
  place inputs[DSP_MOST_INPUTS], output;
  char text[400];
} step;

typedef struct program {
  int32_t num_steps;
  step* steps;
  char total[200];
} program;

static const permafrost_host* the_host;

static int32_t supports(void* self, const permafrost_partition* single, char* error, size_t error_size) {
  (void)self;
  dsp_operator op;
  const int32_t status = dsp_make_operator(the_host, single, single->nodes[0], 0, &op, error, error_size);
  if (status == PERMAFROST_OK) dsp_free_operator(&op);
  return status;
}

// Entering the processor pays where it multiplies: a partition that only moves codes stays outside.
static int32_t is_worthwhile(void* self, const permafrost_partition* partition) {
  (void)self;
  for (int32_t i = 0; i < partition->num_nodes; ++i) {
    const char* op = partition->nodes[i]->op;
    if (strcmp(op, "_IntegerConv2D") == 0 || strcmp(op, "_IntegerDepthwiseConv2dNative") == 0 ||
        strcmp(op, "_IntegerMatMul") == 0) {
      return 1;
    }
  }
  return 0;
}

// The time of the processor for a node, by the cycles that its operator takes.
static double estimate_ns(void* self, const permafrost_partition* single) {
  (void)self;
  char error[256];
  dsp_operator op;
  if (dsp_make_operator(the_host, single, single->nodes[0], 0, &op, error, sizeof(error)) != PERMAFROST_OK) return -1;
  dsp_machine machine;
  memset(&machine, 0, sizeof(machine));
  if (op.kind != DSP_VIEW) dsp_run_operator(&op, NULL, NULL, &machine);
  dsp_free_operator(&op);
  return (double)machine.counts.cycles * 1e3 / DSP_MEGAHERTZ;
}

static void set_speed(void* self, int32_t num_threads, permafrost_speed* speed) {
  (void)self;
  (void)num_threads;
  speed->entry_ns = 5000;  // An interrupt and the start of the program.
  speed->transfer_bytes_per_ns = (double)DSP_DMA_BYTES * DSP_MEGAHERTZ / 1e3;
}

static const void* address_of(const place* place, const permafrost_run* run) {
  switch (place->where) {
    case IN_INPUTS:
      return run->inputs[place->index];
    case IN_OUTPUTS:
      return run->outputs[place->index];
    case IN_SCRATCH:
      return (const char*)run->scratch + place->offset;
    default:
      return place->constant;
  }
}

static int32_t run_program(void* self, const permafrost_run* run, char* error, size_t error_size) {
  (void)error;
  (void)error_size;
  const program* code = self;
  dsp_machine machine;
  memset(&machine, 0, sizeof(machine));
  machine.local = run->scratch;
  for (int32_t i = 0; i < code->num_steps; ++i) {
    const step* now = &code->steps[i];
    const void* inputs[DSP_MOST_INPUTS];
    for (int32_t j = 0; j < now->op.num_inputs; ++j) inputs[j] = address_of(&now->inputs[j], run);
    dsp_run_operator(&now->op, inputs, (void*)address_of(&now->output, run), &machine);
  }
  return PERMAFROST_OK;
}

static const char* describe(void* self, int32_t piece) {
  const program* code = self;
  if (piece == 0) return code->total;
  return piece <= code->num_steps ? code->steps[piece - 1].text : NULL;
}

static void destroy_program(void* self) {
  program* code = self;
  if (code == NULL) return;
  for (int32_t i = 0; i < code->num_steps; ++i) dsp_free_operator(&code->steps[i].op);
  free(code->steps);
  free(code);
}

// Tensors of a partition while it is compiled.
typedef struct tensors {
  int32_t count;
  place* places;
  int32_t* root;      // The tensor whose memory a view shares.
  int32_t* last_use;  // The last step that reads the memory; only of roots.
} tensors;

static void free_tensors(tensors* all) {
  free(all->places);
  free(all->root);
  free(all->last_use);
}

// Places what the caller provides.
static int start_tensors(const permafrost_partition* partition, tensors* all) {
  all->count = partition->num_tensors;
  all->places = calloc((size_t)all->count, sizeof(place));
  all->root = calloc((size_t)all->count, sizeof(int32_t));
  all->last_use = calloc((size_t)all->count, sizeof(int32_t));
  if (all->places == NULL || all->root == NULL || all->last_use == NULL) return 0;
  for (int32_t i = 0; i < all->count; ++i) {
    all->root[i] = i;
    all->last_use[i] = -1;
  }
  for (int32_t i = 0; i < partition->num_inputs; ++i) {
    all->places[partition->inputs[i]].where = IN_INPUTS;
    all->places[partition->inputs[i]].index = i;
  }
  for (int32_t i = 0; i < partition->num_outputs; ++i) {
    all->places[partition->outputs[i]].where = IN_OUTPUTS;
    all->places[partition->outputs[i]].index = i;
  }
  return 1;
}

// Makes the steps. A view of a tensor that stays inside of the partition is no step.
static int32_t make_steps(const permafrost_partition* partition, program* code, tensors* all, char* error,
                          size_t error_size) {
  for (int32_t i = 0; i < partition->num_nodes; ++i) {
    step* now = &code->steps[code->num_steps];
    const int32_t status = dsp_make_operator(the_host, partition, partition->nodes[i], 1, &now->op, error, error_size);
    if (status != PERMAFROST_OK) return PERMAFROST_FAILED;
    ++code->num_steps;
    const dsp_operator* op = &now->op;
    if (op->kind == DSP_VIEW && all->places[op->output].where == NOWHERE) {
      all->root[op->output] = all->root[op->inputs[0]];
      dsp_free_operator(&now->op);
      --code->num_steps;
      continue;
    }
    for (int32_t j = 0; j < op->num_inputs; ++j) {
      const int32_t root = all->root[op->inputs[j]];
      all->last_use[root] = code->num_steps - 1;
      if (!partition->tensors[root]->is_constant) continue;
      all->places[root].where = IN_CONSTANTS;
      all->places[root].constant = the_host->constant_data(partition->tensors[root]);
      if (all->places[root].constant == NULL) {
        snprintf(error, error_size, "out of memory");
        return PERMAFROST_FAILED;
      }
    }
  }
  return PERMAFROST_OK;
}

// Places the remaining tensors in scratch memory, each at the first gap between those that are in use at the same time.
static int place_tensors(const permafrost_partition* partition, program* code, tensors* all, uint64_t* scratch_bytes) {
  // Tensors in use, by ascending offset.
  int32_t* in_use = calloc((size_t)all->count + 1, sizeof(int32_t));
  if (in_use == NULL) return 0;
  int32_t num_in_use = 0;
  for (int32_t i = 0; i < code->num_steps; ++i) {
    step* now = &code->steps[i];
    int32_t kept = 0;
    for (int32_t j = 0; j < num_in_use; ++j) {
      if (all->last_use[in_use[j]] >= i) in_use[kept++] = in_use[j];
    }
    num_in_use = kept;
    const int32_t tensor = now->op.output;
    if (all->places[tensor].where == NOWHERE) {
      uint64_t offset = DSP_LOCAL_BYTES;
      const uint64_t bytes = (partition->tensors[tensor]->num_bytes + 63) / 64 * 64;
      int32_t position = 0;
      while (position < num_in_use && all->places[in_use[position]].offset < offset + bytes) {
        const int32_t other = in_use[position++];
        offset = all->places[other].offset + (partition->tensors[other]->num_bytes + 63) / 64 * 64;
      }
      memmove(in_use + position + 1, in_use + position, (size_t)(num_in_use - position) * sizeof(int32_t));
      in_use[position] = tensor;
      ++num_in_use;
      all->places[tensor].where = IN_SCRATCH;
      all->places[tensor].offset = offset;
      if (offset + bytes > *scratch_bytes) *scratch_bytes = offset + bytes;
    }
    now->output = all->places[tensor];
    for (int32_t j = 0; j < now->op.num_inputs; ++j) now->inputs[j] = all->places[all->root[now->op.inputs[j]]];
  }
  free(in_use);
  return 1;
}

// Counts the cycles of each step, for --explain.
static void count_cycles(program* code) {
  dsp_machine machine;
  memset(&machine, 0, sizeof(machine));
  for (int32_t i = 0; i < code->num_steps; ++i) {
    const dsp_counts before = machine.counts;
    dsp_run_operator(&code->steps[i].op, NULL, NULL, &machine);
    const dsp_counts counts = {machine.counts.macs - before.macs, machine.counts.dma_bytes - before.dma_bytes,
                               machine.counts.cycles - before.cycles};
    dsp_describe_operator(&code->steps[i].op, &counts, code->steps[i].text, sizeof(code->steps[i].text));
  }
  snprintf(code->total, sizeof(code->total), "in all: %llu MACs, %llu cycles, %llu us at %d MHz, %llu bytes moved",
           (unsigned long long)machine.counts.macs, (unsigned long long)machine.counts.cycles,
           (unsigned long long)(machine.counts.cycles / DSP_MEGAHERTZ), DSP_MEGAHERTZ,
           (unsigned long long)machine.counts.dma_bytes);
}

static int32_t compile(void* self, const permafrost_partition* partition, int32_t num_threads,
                       permafrost_compiled* compiled, char* error, size_t error_size) {
  (void)self;
  (void)num_threads;
  snprintf(error, error_size, "out of memory");
  program* code = calloc(1, sizeof(program));
  tensors all = {0, NULL, NULL, NULL};
  int32_t status = PERMAFROST_FAILED;
  compiled->scratch_bytes = DSP_LOCAL_BYTES;
  if (code != NULL && start_tensors(partition, &all)) {
    code->steps = calloc((size_t)partition->num_nodes, sizeof(step));
    if (code->steps != NULL) status = make_steps(partition, code, &all, error, error_size);
    if (status == PERMAFROST_OK && !place_tensors(partition, code, &all, &compiled->scratch_bytes)) {
      status = PERMAFROST_FAILED;
    }
  }
  free_tensors(&all);
  if (status != PERMAFROST_OK) {
    destroy_program(code);
    return status;
  }
  count_cycles(code);
  for (int32_t i = 0; i < code->num_steps; ++i) compiled->constant_bytes += code->steps[i].op.owned_bytes;
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
  if (host->minor < 1) {
    snprintf(error, error_size, "needs version 1.1 of the interface, which has scales");
    return PERMAFROST_FAILED;
  }
  the_host = host;
  delegate->name = "dsp_int8";
  delegate->supports = &supports;
  delegate->is_worthwhile = &is_worthwhile;
  delegate->compile = &compile;
  if (PERMAFROST_HAS(delegate, estimate_ns)) {
    delegate->speed = &set_speed;
    delegate->estimate_ns = &estimate_ns;
  }
  return PERMAFROST_OK;
}
