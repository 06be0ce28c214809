// Runs the bundled model on all of its images through the C interface, and writes the raw outputs.
//
//   run_model MODEL IMAGES path|descriptor|memory [DELEGATE] > outputs
//
// With `descriptor`, the model is inside a larger file. With a delegate, the program fails unless the delegate runs
// nodes, and prints the number of bytes of packed weights in use to standard error.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "permafrost_runtime.h"

#define NPY_HEADER_BYTES 128
#define PIXELS 64
#define BEFORE 5000

static char error[1024];

static int fail(const char* what) {
  fprintf(stderr, "run_model: %s: %s\n", what, error);
  return 1;
}

// Reads the whole file and sets *size. The memory is never freed, because the model may view it.
static char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  char* content = NULL;
  long end;
  if (file != NULL && fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0) {
    *size = (size_t)end;
    content = malloc(*size);
    rewind(file);
    if (content != NULL && fread(content, 1, *size, file) != *size) content = NULL;
  }
  if (file != NULL) fclose(file);
  return content;
}

int fileno(FILE* file);  // From POSIX; C99 does not declare it.

static pf_status open_model(const char* path, const char* from, pf_model** model) {
  size_t size = 0;
  char* content;
  static const char kOther[BEFORE] = {1};
  pf_status status;
  FILE* file;
  if (strcmp(from, "path") == 0) return pf_open_file(path, NULL, model, error, sizeof(error));
  content = read_file(path, &size);
  if (content == NULL) return PF_NOT_FOUND;
  if (strcmp(from, "memory") == 0) return pf_open_memory(content, size, NULL, NULL, NULL, model, error, sizeof(error));
  file = tmpfile();
  if (file == NULL || fwrite(kOther, 1, BEFORE, file) != BEFORE || fwrite(content, 1, size, file) != size ||
      fwrite(kOther, 1, BEFORE, file) != BEFORE || fflush(file) != 0) {
    return PF_UNAVAILABLE;
  }
  status = pf_open_descriptor(fileno(file), BEFORE, size, NULL, model, error, sizeof(error));
  fclose(file);
  free(content);
  return status;
}

static int run_all(pf_session* session, const float* images, size_t num_images) {
  size_t i;
  for (i = 0; i < num_images; ++i) {
    float pixels[PIXELS], probabilities[10];
    pf_tensor input = {PF_FLOAT, 4, {1, 8, 8, 1}, NULL, sizeof(pixels)}, output;
    memcpy(pixels, images + i * PIXELS, sizeof(pixels));
    input.data = pixels;
    memset(&output, 0, sizeof(output));
    output.data = probabilities;
    output.num_bytes = sizeof(probabilities);
    if (pf_run(session, &input, 1, &output, 1, error, sizeof(error)) != PF_OK) return fail("cannot run");
    if (fwrite(probabilities, sizeof(probabilities), 1, stdout) != 1) return fail("cannot write");
  }
  return 0;
}

// Checks that the profile contains the nodes that ran, once for each run.
static int check_profile(pf_session* session, size_t num_images) {
  pf_profile* profile = NULL;
  pf_profile_entry entry;
  int result = 0;
  entry.struct_size = sizeof(entry);
  if (pf_get_profile(session, &profile, error, sizeof(error)) != PF_OK) return fail("no profile");
  if (pf_profile_num_runs(profile) != (int64_t)num_images || pf_profile_num_entries(profile) == 0) {
    result = fail("the profile does not have all runs");
  } else if (pf_get_profile_entry(profile, 0, &entry, error, sizeof(error)) != PF_OK ||
             entry.num_calls != (int64_t)num_images || entry.name[0] == '\0') {
    result = fail("the profile's first entry is not that of each run");
  }
  pf_free_profile(profile);
  return result;
}

int main(int argc, char** argv) {
  pf_model* model = NULL;
  pf_session* session = NULL;
  pf_session_options options = PF_SESSION_OPTIONS_INIT;
  pf_report report;
  size_t size = 0, num_images;
  char* images;
  int result;
  if (argc != 4 && argc != 5) return fail("usage: run_model MODEL IMAGES path|descriptor|memory [DELEGATE]");
  images = read_file(argv[2], &size);
  if (images == NULL || size <= NPY_HEADER_BYTES) return fail("cannot read the images");
  num_images = (size - NPY_HEADER_BYTES) / (PIXELS * sizeof(float));
  if (open_model(argv[1], argv[3], &model) != PF_OK) return fail("cannot open the model");
  if (argc == 5) options.delegate = argv[4];
  if (pf_create_session(model, &options, &session, error, sizeof(error)) != PF_OK) return fail("cannot use the model");
  pf_free_model(model);
  if (pf_record_profile(session, 1, error, sizeof(error)) != PF_OK) return fail("cannot record");
  result = run_all(session, (const float*)(const void*)(images + NPY_HEADER_BYTES), num_images);
  if (result == 0) result = check_profile(session, num_images);
  memset(&report, 0, sizeof(report));
  report.struct_size = sizeof(report);
  if (result == 0 && pf_get_report(session, &report, error, sizeof(error)) != PF_OK) result = fail("no report");
  if (result == 0 && argc == 5 && report.num_delegated == 0) {
    strcpy(error, report.delegate_failure);
    result = fail("the delegate takes nothing");
  }
  fprintf(stderr, "packed bytes: %lld\n", (long long)report.packed_bytes);
  if (report.packed_failure[0] != '\0') fprintf(stderr, "packed weights are not used: %s\n", report.packed_failure);
  pf_free_session(session);
  free(images);
  return result;
}
