// Tests of the C interface from strict C99: results of the bundled model against TensorFlow's, and errors of callers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "permafrost_runtime.h"

#define MODEL "tests/models/digits/digits.pb"
#define NPY_HEADER_BYTES 128
#define NUM_IMAGES 540

static int num_failures = 0;
static char error[512];

static void expect(int condition, const char* text, int line) {
  if (condition) return;
  fprintf(stderr, "line %d: expected %s; last error: %s\n", line, text, error);
  ++num_failures;
}
#define EXPECT(condition) expect((condition) != 0, #condition, __LINE__)
// Checks the status, and that the error contains the text.
#define EXPECT_ERROR(call, status, text)   \
  do {                                     \
    const pf_status found = (call);        \
    EXPECT(found == (status));             \
    EXPECT(strstr(error, (text)) != NULL); \
    EXPECT(strchr(error, '\n') == NULL);   \
  } while (0)

// Reads `count` floats of an NPY file.
static float* read_floats(const char* path, size_t count) {
  FILE* file = fopen(path, "rb");
  float* values = malloc(count * sizeof(float));
  if (file == NULL || values == NULL || fseek(file, NPY_HEADER_BYTES, SEEK_SET) != 0 ||
      fread(values, sizeof(float), count, file) != count) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(1);
  }
  fclose(file);
  return values;
}

static pf_tensor floats(int32_t rank, const int64_t* dims, float* data, uint64_t count) {
  pf_tensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.dtype = PF_FLOAT;
  tensor.rank = rank;
  memcpy(tensor.dims, dims, (size_t)rank * sizeof(int64_t));
  tensor.data = data;
  tensor.num_bytes = count * sizeof(float);
  return tensor;
}

static void test_model(pf_session* session) {
  static const int64_t kImage[] = {1, 8, 8, 1};
  float* images = read_floats("tests/models/digits/eval_images.npy", NUM_IMAGES * 64);
  float* expected = read_floats("tests/models/digits/expected_probabilities.npy", NUM_IMAGES * 10);
  float worst = 0;
  int i, j;
  for (i = 0; i < NUM_IMAGES; ++i) {
    float probabilities[10];
    pf_tensor input = floats(4, kImage, images + i * 64, 64);
    pf_tensor output;
    memset(&output, 0, sizeof(output));
    output.data = probabilities;
    output.num_bytes = sizeof(probabilities);
    EXPECT(pf_run(session, &input, 1, &output, 1, error, sizeof(error)) == PF_OK);
    EXPECT(output.dtype == PF_FLOAT && output.rank == 2 && output.dims[0] == 1 && output.dims[1] == 10);
    EXPECT(output.num_bytes == sizeof(probabilities) && output.data == probabilities);
    for (j = 0; j < 10; ++j) {
      const float difference = probabilities[j] - expected[i * 10 + j];
      if (difference > worst) worst = difference;
      if (-difference > worst) worst = -difference;
    }
  }
  EXPECT(worst <= 1e-4f);
  printf("largest difference: %g\n", (double)worst);
  free(images);
  free(expected);
}

static void test_interface(pf_session* session) {
  pf_tensor tensor;
  EXPECT(pf_num_inputs(session) == 1 && pf_num_outputs(session) == 1);
  EXPECT(strcmp(pf_input_name(session, 0), "image") == 0);
  EXPECT(strcmp(pf_output_name(session, 0), "probabilities") == 0);
  EXPECT(pf_input_name(session, 1) == NULL && pf_output_name(session, 1) == NULL);
  EXPECT(pf_describe_input(session, 0, &tensor, error, sizeof(error)) == PF_OK);
  EXPECT(tensor.dtype == PF_FLOAT && tensor.rank == 4 && tensor.dims[1] == 8 && tensor.data == NULL);
  EXPECT(pf_describe_output(session, 0, &tensor, error, sizeof(error)) == PF_OK);
  EXPECT(tensor.dtype == PF_FLOAT);
  EXPECT_ERROR(pf_describe_input(session, 1, &tensor, error, sizeof(error)), PF_INVALID_ARGUMENT, "no input 1");
}

static void test_run_errors(pf_session* session) {
  static const int64_t kImage[] = {1, 8, 8, 1};
  static const int64_t kLarger[] = {1, 9, 9, 1};
  float pixels[81] = {0};
  float probabilities[10];
  pf_tensor input = floats(4, kImage, pixels, 64);
  pf_tensor output;
  memset(&output, 0, sizeof(output));
  EXPECT_ERROR(pf_run(session, &input, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT, "found no memory");
  output.data = probabilities;
  output.num_bytes = 39;
  EXPECT_ERROR(pf_run(session, &input, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT,
               "found memory of 39 bytes, expected 40");
  output.num_bytes = 40;
  EXPECT_ERROR(pf_run(session, &input, 0, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT, "found 0 inputs");
  EXPECT_ERROR(pf_run(session, &input, 1, &output, 0, error, sizeof(error)), PF_INVALID_ARGUMENT, "found 0 outputs");
  EXPECT_ERROR(pf_run(session, NULL, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT, "'inputs'");
  EXPECT_ERROR(pf_run(NULL, &input, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT, "'session'");
  input.num_bytes = 255;
  EXPECT_ERROR(pf_run(session, &input, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT, "input 'image'");
  input = floats(4, kLarger, pixels, 81);
  EXPECT_ERROR(pf_run(session, &input, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT,
               "found shape [1,9,9,1]");
  input = floats(4, kImage, pixels, 64);
  input.dtype = PF_INT32;
  EXPECT_ERROR(pf_run(session, &input, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT, "found type int32");
  input.dtype = 99;
  EXPECT_ERROR(pf_run(session, &input, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT, "dtype(99)");
  static const int32_t kNoTypes[] = {INT32_MIN, INT32_MAX, -1, 0, 64, 101, 1 << 20};
  for (size_t i = 0; i < sizeof(kNoTypes) / sizeof(kNoTypes[0]); ++i) {
    input.dtype = kNoTypes[i];
    EXPECT(pf_run(session, &input, 1, &output, 1, error, sizeof(error)) == PF_INVALID_ARGUMENT);
    EXPECT(pf_plan(session, &input, 1, &output, 1, error, sizeof(error)) == PF_INVALID_ARGUMENT);
    EXPECT(pf_dtype_size(kNoTypes[i]) == 0);
  }
  input = floats(4, kImage, pixels, 64);
  input.rank = 17;
  EXPECT_ERROR(pf_run(session, &input, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT, "found rank 17");
  input.rank = 4;
  input.dims[0] = -1;
  EXPECT_ERROR(pf_run(session, &input, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT, "unknown dimension");
  input.dims[0] = INT64_MAX;
  EXPECT(pf_run(session, &input, 1, &output, 1, error, sizeof(error)) == PF_INVALID_ARGUMENT);
  input = floats(4, kImage, pixels, 64);
  output.data = pixels + 60;
  EXPECT_ERROR(pf_run(session, &input, 1, &output, 1, error, sizeof(error)), PF_INVALID_ARGUMENT, "overlaps");
}

// Options from a program that was built with another version of the header.
static void test_option_versions(void) {
  struct {
    pf_open_options known;
    int64_t later;
  } options = {PF_OPEN_OPTIONS_INIT, 0};
  pf_model* model = NULL;
  options.known.struct_size = sizeof(options);
  EXPECT(pf_open_file(MODEL, &options.known, &model, error, sizeof(error)) == PF_OK);
  pf_free_model(model);
  model = NULL;
  options.later = 1;
  EXPECT_ERROR(pf_open_file(MODEL, &options.known, &model, error, sizeof(error)), PF_UNIMPLEMENTED, "does not support");
  // Members that an older header lacks count as zero, whatever the memory holds.
  options.known.identity = "";
  options.known.struct_size = sizeof(size_t);
  EXPECT(pf_open_file(MODEL, &options.known, &model, error, sizeof(error)) == PF_OK);
  pf_free_model(model);
  options.known.struct_size = sizeof(size_t) + 3;  // Ends within a pointer.
  EXPECT_ERROR(pf_open_file(MODEL, &options.known, &model, error, sizeof(error)), PF_INVALID_ARGUMENT, "struct_size");
  options.known.struct_size = (size_t)-1;
  EXPECT(pf_open_file(MODEL, &options.known, &model, error, sizeof(error)) == PF_INVALID_ARGUMENT);
}

static void test_open_errors(void) {
  pf_model* model = NULL;
  pf_open_options options = PF_OPEN_OPTIONS_INIT;
  char small[8];
  EXPECT_ERROR(pf_open_file("no/such/model.pb", NULL, &model, error, sizeof(error)), PF_NOT_FOUND, "no/such/model.pb");
  EXPECT_ERROR(pf_open_file(NULL, NULL, &model, error, sizeof(error)), PF_INVALID_ARGUMENT, "'path'");
  EXPECT_ERROR(pf_open_file(MODEL, NULL, NULL, error, sizeof(error)), PF_INVALID_ARGUMENT, "'model'");
  EXPECT_ERROR(pf_open_memory("", 0, NULL, NULL, NULL, &model, error, sizeof(error)), PF_INVALID_ARGUMENT, "empty");
  EXPECT(pf_open_memory("\xff\xff\xff\xff", 4, NULL, NULL, NULL, &model, error, sizeof(error)) != PF_OK);
  EXPECT_ERROR(pf_open_descriptor(-1, 0, 0, NULL, &model, error, sizeof(error)), PF_INVALID_ARGUMENT,
               "file descriptor -1");
  options.struct_size = 0;
  EXPECT_ERROR(pf_open_file(MODEL, &options, &model, error, sizeof(error)), PF_INVALID_ARGUMENT, "struct_size");
  test_option_versions();
  // The error text is optional, and a long one is truncated.
  EXPECT(pf_open_file("no/such/model.pb", NULL, &model, NULL, 0) == PF_NOT_FOUND);
  EXPECT(pf_open_file("no/such/model.pb", NULL, &model, small, sizeof(small)) == PF_NOT_FOUND);
  EXPECT(strlen(small) == sizeof(small) - 1);
  EXPECT(model == NULL);
}

static void test_session_errors(const pf_model* model) {
  pf_session* session = NULL;
  const char* missing = "no_such_node";
  static const int32_t no_processor = 100000;
  pf_session_options options = PF_SESSION_OPTIONS_INIT;
  static const int64_t kImage[] = {1, 8, 8, 1};
  pf_tensor input = floats(4, kImage, NULL, 64);
  pf_tensor output;
  options.delegate = "fast";
  EXPECT_ERROR(pf_create_session(model, &options, &session, error, sizeof(error)), PF_INVALID_ARGUMENT,
               "no delegate 'fast'");
  options.delegate = NULL;
  options.num_processors = 1;
  EXPECT_ERROR(pf_create_session(model, &options, &session, error, sizeof(error)), PF_INVALID_ARGUMENT, "processors");
  options.processors = &no_processor;
  EXPECT_ERROR(pf_create_session(model, &options, &session, error, sizeof(error)), PF_INVALID_ARGUMENT,
               "found processor 100000, expected some of");
  options.num_processors = 0;
  options.outputs = &missing;
  options.num_outputs = 1;
  EXPECT(pf_create_session(model, &options, &session, error, sizeof(error)) != PF_OK);
  EXPECT(strstr(error, "no_such_node") != NULL);
  options.outputs = NULL;
  options.memory_limit = 1000;
  // The batch size is unknown, so the memory needed is known only with the input shapes.
  EXPECT(pf_create_session(model, &options, &session, error, sizeof(error)) == PF_OK);
  EXPECT(pf_plan(session, &input, 1, &output, 1, error, sizeof(error)) == PF_RESOURCE_EXHAUSTED);
  pf_free_session(session);
  session = NULL;
  EXPECT_ERROR(pf_create_session(NULL, NULL, &session, error, sizeof(error)), PF_INVALID_ARGUMENT, "'model'");
  EXPECT(session == NULL);
}

int main(void) {
  pf_model* model = NULL;
  pf_session* session = NULL;
  EXPECT(pf_version() / 1000 == PF_VERSION_MAJOR);
  EXPECT(strcmp(pf_status_name(PF_DATA_LOSS), "data loss") == 0 && pf_status_name(-7) != NULL);
  EXPECT(pf_dtype_size(PF_FLOAT) == 4 && pf_dtype_size(PF_STRING) == sizeof(pf_string) && pf_dtype_size(99) == 0);
  if (pf_open_file(MODEL, NULL, &model, error, sizeof(error)) != PF_OK ||
      pf_create_session(model, NULL, &session, error, sizeof(error)) != PF_OK) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  test_session_errors(model);
  pf_free_model(model);
  test_interface(session);
  test_model(session);
  test_run_errors(session);
  test_model(session);  // Errors leave a session unchanged.
  pf_free_session(session);
  test_open_errors();
  pf_free_model(NULL);
  pf_free_session(NULL);
  pf_free_result(NULL);
  pf_free_profile(NULL);
  return num_failures == 0 ? 0 : 1;
}
