/* A program that brings its model along: finds the digit in an image of 8 x 8 pixels, 64 floats from the standard
 * input.
 *
 *   app < image.raw
 *
 * The build makes digits.h and the object that it declares: model_object in Bazel, permafrost_model_object in CMake.
 */
#include <stdio.h>

#include "digits.h"
#include "permafrost_runtime.h"

static char error[512];

static int fail(const char* what) {
  fprintf(stderr, "app: %s: %s\n", what, error);
  return 1;
}

int main(void) {
  pf_model* model = NULL;
  pf_session* session = NULL;
  float pixels[64];
  float probabilities[10];
  pf_tensor input = {PF_FLOAT, 4, {1, 8, 8, 1}, pixels, sizeof(pixels)};
  pf_tensor output = {0};
  int best = 0, digit;
  if (fread(pixels, sizeof(pixels), 1, stdin) != 1) {
    fprintf(stderr, "app: expected 64 floats\n");
    return 1;
  }
  if (pf_open_memory(digits, digits_size, NULL, NULL, NULL, &model, error, sizeof(error)) != PF_OK) {
    return fail("cannot open the model");
  }
  if (pf_create_session(model, NULL, &session, error, sizeof(error)) != PF_OK) return fail("cannot use the model");
  output.data = probabilities;
  output.num_bytes = sizeof(probabilities);
  if (pf_run(session, &input, 1, &output, 1, error, sizeof(error)) != PF_OK) return fail("cannot run");
  for (digit = 1; digit < 10; ++digit) {
    if (probabilities[digit] > probabilities[best]) best = digit;
  }
  printf("%d %.4f\n", best, probabilities[best]);
  pf_free_session(session);
  pf_free_model(model);
  return 0;
}
