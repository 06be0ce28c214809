// A program with OpenMP of its own uses the runtime, whose delegate onednn has threads of its own: the regions of the
// program keep their threads and results, before, after and around runs of a session.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "permafrost_runtime.h"

#define NPY_HEADER_BYTES 128
#define NUM_IMAGES 540
#define PIXELS 64
#define CLASSES 10
#define THREADS 3

static char error[512];

static void require(int condition, const char* text) {
  if (condition) return;
  fprintf(stderr, "host_openmp_test: expected %s; last error: %s\n", text, error);
  exit(1);
}

static void run_regions_of_the_program(void) {
  int sum = 0, num_wrong = 0, i;
  omp_set_num_threads(THREADS);
#pragma omp parallel reduction(+ : num_wrong)
  {
    num_wrong += omp_get_num_threads() != THREADS || !omp_in_parallel();
#pragma omp for schedule(dynamic, 3) reduction(+ : sum)
    for (i = 0; i < 1000; ++i) sum += i;
#pragma omp barrier
#pragma omp critical
    ++sum;
  }
  require(sum == 499500 + THREADS, "the sum of the loop");
  require(num_wrong == 0, "the threads of the program");
  require(omp_get_max_threads() == THREADS, "the setting of the program");
}

static pf_session* make_session(pf_model* model, const char* delegate) {
  pf_session* session = NULL;
  pf_session_options options = PF_SESSION_OPTIONS_INIT;
  char own_error[512];
  options.delegate = delegate;
  options.num_threads = 2;
  if (pf_create_session(model, &options, &session, own_error, sizeof(own_error)) != PF_OK) return NULL;
  return session;
}

static int run(pf_session* session, float* images, float* probabilities) {
  char own_error[512];
  pf_tensor input = {PF_FLOAT, 4, {NUM_IMAGES, 8, 8, 1}, NULL, NUM_IMAGES * PIXELS * sizeof(float)}, output;
  input.data = images;
  memset(&output, 0, sizeof(output));
  output.data = probabilities;
  output.num_bytes = NUM_IMAGES * CLASSES * sizeof(float);
  if (pf_run(session, &input, 1, &output, 1, own_error, sizeof(own_error)) == PF_OK) return 1;
  fprintf(stderr, "%s\n", own_error);
  return 0;
}

static int are_close(const float* found, const float* expected) {
  int i;
  for (i = 0; i < NUM_IMAGES * CLASSES; ++i) {
    const float difference = found[i] - expected[i];
    if (!(difference < 1e-5f && difference > -1e-5f)) return 0;
  }
  return 1;
}

int main(void) {
  static float images[NUM_IMAGES * PIXELS], expected[NUM_IMAGES * CLASSES], found[THREADS][NUM_IMAGES * CLASSES];
  const char* const path = "tests/models/digits/eval_images.npy";
  FILE* file = fopen(path, "rb");
  pf_model* model = NULL;
  pf_session *reference, *session;
  int num_right = 0, i;
  require(file != NULL && fseek(file, NPY_HEADER_BYTES, SEEK_SET) == 0 && fread(images, sizeof(images), 1, file) == 1,
          path);
  fclose(file);
  require(pf_open_file("tests/models/digits/digits.pb", NULL, &model, error, sizeof(error)) == PF_OK, "a model");
  reference = make_session(model, NULL);
  session = make_session(model, "onednn");
  require(reference != NULL && session != NULL, "sessions");
  require(run(reference, images, expected), "a run of the reference kernels");
  run_regions_of_the_program();
  for (i = 0; i < 5; ++i) {
    require(run(session, images, found[0]) && are_close(found[0], expected), "the results of the delegate");
    run_regions_of_the_program();
  }
#pragma omp parallel reduction(+ : num_right)
  {
    pf_session* const own = make_session(model, "onednn");
    float* const results = found[omp_get_thread_num()];
    int turn;
    for (turn = 0; turn < 5; ++turn)
      num_right += own != NULL && run(own, images, results) && are_close(results, expected);
    num_right += omp_get_num_threads() == THREADS && omp_in_parallel();
    pf_free_session(own);
  }
  require(num_right == THREADS * 6, "the results of sessions in a region of the program");
  run_regions_of_the_program();
  pf_free_session(session);
  pf_free_session(reference);
  pf_free_model(model);
  return 0;
}
