// A delegate that refuses every node, with the attributes of the node as the reason.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "permafrost_delegate.h"

static const permafrost_host* the_host;

static void append(char* text, size_t size, const char* format, ...) {
  const size_t length = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + length, size - length, format, arguments);
  va_end(arguments);
}

static int32_t supports(void* self, const permafrost_partition* single, char* error, size_t error_size) {
  (void)self;
  const permafrost_node* node = single->nodes[0];
  append(error, error_size, "%s %s:", node->name, node->op);
  for (int32_t i = 0; i < single->num_tensors; ++i) {
    const permafrost_tensor* tensor = single->tensors[i];
    append(error, error_size, " %d/%d/%d", (int)tensor->dtype, (int)tensor->rank, (int)tensor->num_bytes);
    const float* value = the_host->constant_data(tensor);
    if ((value != NULL) != (tensor->is_constant != 0)) append(error, error_size, " wrong");
    if (value != NULL) append(error, error_size, "=%g,aligned:%d", value[0], (uintptr_t)value % 64 == 0);
  }
  int64_t number = 0, numbers[2] = {0, 0};
  float real = 0, reals[2] = {0, 0};
  int32_t flag = 0, type = 0, types[2] = {0, 0}, rank = 0;
  char text[8];
  size_t count = 0;
  append(error, error_size, "; int %d", the_host->int_attr(node, "int", &number));
  append(error, error_size, " %" PRId64, number);
  append(error, error_size, "; float %d", the_host->float_attr(node, "float", &real));
  append(error, error_size, " %g", real);
  append(error, error_size, "; bool %d", the_host->bool_attr(node, "bool", &flag));
  append(error, error_size, " %d", (int)flag);
  append(error, error_size, "; type %d", the_host->type_attr(node, "T", &type));
  append(error, error_size, " %d", (int)type);
  append(error, error_size, "; shape %d", the_host->shape_attr(node, "shape", numbers, 2, &rank));
  append(error, error_size, " %d %" PRId64 " %" PRId64, (int)rank, numbers[0], numbers[1]);
  append(error, error_size, "; any %d", the_host->shape_attr(node, "any_shape", NULL, 0, &rank));
  append(error, error_size, " %d", (int)rank);
  append(error, error_size, "; string %d", the_host->string_attr(node, "string", text, sizeof(text), &count));
  append(error, error_size, " %d %.8s", (int)count, text);
  append(error, error_size, "; long %d", the_host->string_attr(node, "long", text, sizeof(text), &count));
  append(error, error_size, " %d %.8s", (int)count, text);
  append(error, error_size, "; size %d", the_host->string_attr(node, "long", NULL, 0, &count));
  append(error, error_size, " %d", (int)count);
  append(error, error_size, "; ints %d", the_host->int_list_attr(node, "ints", numbers, 2, &count));
  append(error, error_size, " %d %" PRId64 " %" PRId64, (int)count, numbers[0], numbers[1]);
  append(error, error_size, "; floats %d", the_host->float_list_attr(node, "floats", reals, 2, &count));
  append(error, error_size, " %d %g", (int)count, reals[0]);
  append(error, error_size, "; types %d", the_host->type_list_attr(node, "types", types, 2, &count));
  append(error, error_size, " %d %d %d", (int)count, (int)types[0], (int)types[1]);
  append(error, error_size, "; strings %d", the_host->string_list_size(node, "strings", &count));
  append(error, error_size, " %d", (int)count);
  append(error, error_size, " %d", the_host->string_list_item(node, "strings", 1, text, sizeof(text), &count));
  append(error, error_size, " %.8s", text);
  append(error, error_size, " %d", the_host->string_list_item(node, "strings", 2, text, sizeof(text), &count));
  append(error, error_size, "; missing %d %d", the_host->int_attr(node, "missing", &number),
         the_host->string_list_item(node, "missing", 0, text, sizeof(text), &count));
  append(error, error_size, "; wrong %d %d", the_host->int_attr(node, "float", &number),
         the_host->float_list_attr(node, "int", reals, 2, &count));
  return PERMAFROST_NO;
}

static int32_t compile(void* self, const permafrost_partition* partition, int32_t num_threads,
                       permafrost_compiled* compiled, char* error, size_t error_size) {
  (void)self;
  (void)partition;
  (void)num_threads;
  (void)compiled;
  (void)error;
  (void)error_size;
  return PERMAFROST_FAILED;
}

PERMAFROST_EXPORT int32_t permafrost_delegate_entry(const permafrost_host* host, permafrost_delegate* delegate,
                                                    char* error, size_t error_size) {
  (void)error;
  (void)error_size;
  the_host = host;
  delegate->major = PERMAFROST_ABI_MAJOR;
  delegate->name = "attribute_reader";
  delegate->supports = &supports;
  delegate->compile = &compile;
  return PERMAFROST_OK;
}
