/* A library with functions of protobuf under their names, as packages load it for the whole process with a protobuf of
 * their own. Each function ends the process: the extension must call none of them. */
#include <stdio.h>
#include <stdlib.h>

static void fail(void) {
  fprintf(stderr, "a function of another library's protobuf was called\n");
  abort();
}

/* FUNCTION(name) for each function of the distribution's protobuf. */
#define FUNCTION(name) \
  void name(void) { fail(); }
#include "tests/python/other_protobuf.inc"
