// A custom op LeakyClip that tries what a sandbox forbids while it runs, and prints what it could do.
//
// Each attempt is one line on standard error: "probe NAME: done" or "probe NAME: REASON". $PROBE_SECRET names a file
// that no flag names, $PROBE_FOLDER a folder to write to.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "permafrost_custom_op.h"

static int64_t the_size;

static void report(const char* name, int is_done) {
  fprintf(stderr, "probe %s: %s\n", name, is_done ? "done" : strerror(errno));
}

static int can_open(const char* path, int flags) {
  const int file = open(path, flags | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

static void* set_flag(void* flag) {
  *(int*)flag = 1;
  return NULL;
}

static void on_signal(int number) { (void)number; }

static void probe(void) {
  char path[4096];
  report("read", can_open(getenv("PROBE_SECRET"), O_RDONLY));
  snprintf(path, sizeof(path), "%s/new", getenv("PROBE_FOLDER"));
  report("write", can_open(path, O_WRONLY | O_CREAT));
  report("replace", can_open(getenv("PROBE_SECRET"), O_WRONLY | O_TRUNC));
  report("remove", unlink(getenv("PROBE_SECRET")) == 0);
  snprintf(path, sizeof(path), "/proc/%d/environ", getppid());
  report("environment of another process", can_open(path, O_RDONLY));

  const pid_t child = fork();
  if (child == 0) _exit(0);
  report("fork", child > 0);
  if (child > 0) waitpid(child, NULL, 0);
  // A program replaces this process only where the attempt succeeds, which fails the test.
  char* const nothing[] = {NULL};
  char* const arguments[] = {"true", NULL};
  if (getenv("PROBE_EXEC") != NULL) report("exec", execve("/bin/true", arguments, nothing) == 0);

  const int tcp = socket(AF_INET, SOCK_STREAM, 0);
  report("socket", tcp >= 0);
  const int local = socket(AF_UNIX, SOCK_STREAM, 0);
  report("local socket", local >= 0);
  report("signal", kill(getppid(), 0) == 0);
  report("ptrace", ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) == 0);
  report("io_uring", syscall(425, 1, path) >= 0 || errno == EFAULT || errno == EINVAL);

  // What stays possible.
  int flag = 0;
  pthread_t thread;
  report("thread", pthread_create(&thread, NULL, &set_flag, &flag) == 0 && pthread_join(thread, NULL) == 0 && flag);
  signal(SIGUSR1, &on_signal);
  report("own signal", raise(SIGUSR1) == 0 && kill(getpid(), SIGUSR1) == 0);
  report("processors", can_open("/proc/cpuinfo", O_RDONLY));
}

static int32_t same_shape(void* self, const permafrost_partition* single, permafrost_shapes* shapes, char* error,
                          size_t error_size) {
  (void)self;
  (void)error;
  (void)error_size;
  const permafrost_tensor* x = single->tensors[single->nodes[0]->inputs[0]];
  return shapes->set(shapes, 0, x->dims, x->rank);
}

static int32_t run_probe(void* self, const permafrost_run* run, char* error, size_t error_size) {
  (void)self;
  (void)error;
  (void)error_size;
  static int is_done = 0;
  if (!is_done) probe();
  is_done = 1;
  memcpy(run->outputs[0], run->inputs[0], (size_t)the_size);
  return PERMAFROST_OK;
}

static int32_t prepare_probe(void* self, const permafrost_partition* single, int32_t num_threads,
                             permafrost_compiled* compiled, char* error, size_t error_size) {
  (void)self;
  (void)num_threads;
  (void)error;
  (void)error_size;
  the_size = single->tensors[single->nodes[0]->inputs[0]]->num_bytes;
  compiled->run = &run_probe;
  return PERMAFROST_OK;
}

static const char* const kInputs[] = {"x: T", NULL};
static const char* const kOutputs[] = {"y: T", NULL};

static const permafrost_kernel kProbe = {
    .struct_size = sizeof(permafrost_kernel),
    .op = "LeakyClip",
    .inputs = kInputs,
    .outputs = kOutputs,
    .infer_shapes = &same_shape,
    .prepare = &prepare_probe,
};
static const permafrost_kernel* const kKernels[] = {&kProbe};

PERMAFROST_EXPORT int32_t permafrost_custom_ops_entry(const permafrost_host* host, permafrost_custom_ops* ops,
                                                      char* error, size_t error_size) {
  (void)host;
  (void)error;
  (void)error_size;
  ops->major = PERMAFROST_ABI_MAJOR;
  ops->minor = PERMAFROST_ABI_MINOR;
  ops->num_kernels = 1;
  ops->kernels = kKernels;
  return PERMAFROST_OK;
}
