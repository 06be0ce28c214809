/* Embeds a model in a C program: finds the digits in images of 8 x 8 pixels.
 *
 *   classify digits.pb image.raw
 *
 * image.raw holds images of 64 floats each. Prints the likeliest digit of each and how likely it is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "permafrost_runtime.h"

static char error[512];

static int fail(const char* what) {
  fprintf(stderr, "classify: %s: %s\n", what, error);
  return 1;
}

/* Runs the session on each image. The buffers are of the caller, and used where they are. */
static int classify(pf_session* session, FILE* images) {
  /* An address that is a multiple of 64 saves a copy. */
  _Alignas(64) float pixels[64];
  _Alignas(64) float probabilities[10];
  pf_tensor input = {PF_FLOAT, 4, {1, 8, 8, 1}, pixels, sizeof(pixels)};
  while (fread(pixels, sizeof(pixels), 1, images) == 1) {
    pf_tensor output = {0};
    int best = 0, digit;
    output.data = probabilities;
    output.num_bytes = sizeof(probabilities);
    if (pf_run(session, &input, 1, &output, 1, error, sizeof(error)) != PF_OK) return fail("cannot run");
    for (digit = 1; digit < 10; ++digit) {
      if (probabilities[digit] > probabilities[best]) best = digit;
    }
    printf("%d %.4f\n", best, probabilities[best]);
  }
  return 0;
}

int main(int argc, char** argv) {
  pf_model* model = NULL;
  pf_session* session = NULL;
  pf_session_options options = PF_SESSION_OPTIONS_INIT;
  FILE* images;
  int result;
  if (argc != 3) {
    fprintf(stderr, "usage: classify MODEL IMAGES\n");
    return 2;
  }
  images = fopen(argv[2], "rb");
  if (images == NULL) {
    perror(argv[2]);
    return 1;
  }
  if (pf_open_file(argv[1], NULL, &model, error, sizeof(error)) != PF_OK) return fail("cannot open the model");
  options.num_threads = 2;
  if (pf_create_session(model, &options, &session, error, sizeof(error)) != PF_OK) return fail("cannot use the model");
  pf_free_model(model); /* The session keeps what it needs. */
  result = classify(session, images);
  pf_free_session(session);
  fclose(images);
  return result;
}
