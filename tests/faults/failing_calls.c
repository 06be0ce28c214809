// A library to preload that makes one system call, or one allocation, of a program fail.
//
//   FAULT_KIND   "calls" (those that a writer makes) or "allocations"
//   FAULT_NTH    which of them fails, from 1; 0: none, to count them
//   FAULT_ERRNO  the error number of a failing call; 0: the process is killed at the call instead
//   FAULT_TRACE  if set, the name of the failing call is printed
//   FAULT_COUNT  a file that receives the number of calls at the end of the process
//
// Calls count from the start of main().
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static atomic_int is_armed;
static atomic_long num_calls;
static long nth;
static int error_number;
static int counts_allocations;
static int is_traced;

static int (*real_main)(int, char**, char**);

// Returns whether this call fails, and sets errno. Does not return if the process is to be killed.
static int fails_at(int is_allocation, const char* name, void* caller) {
  if (!atomic_load(&is_armed) || is_allocation != counts_allocations) return 0;
  if (atomic_fetch_add(&num_calls, 1) + 1 != nth) return 0;
  Dl_info library;
  // oneDNN does not check what its code generator allocates.
  if (is_allocation && dladdr(caller, &library) != 0 && strstr(library.dli_fname, "libdnnl") != NULL) return 0;
  if (is_traced) dprintf(STDERR_FILENO, "fault: %s\n", name);
  if (error_number == 0) kill(getpid(), SIGKILL);
  errno = is_allocation ? ENOMEM : error_number;
  return 1;
}

#define fails(is_allocation, name) fails_at(is_allocation, name, __builtin_return_address(0))

static int armed_main(int argc, char** argv, char** environment) {
  const char *kind = getenv("FAULT_KIND"), *number = getenv("FAULT_NTH"), *error = getenv("FAULT_ERRNO");
  counts_allocations = kind != NULL && strcmp(kind, "allocations") == 0;
  nth = number == NULL ? 0 : atol(number);
  error_number = error == NULL ? EIO : atoi(error);
  is_traced = getenv("FAULT_TRACE") != NULL;
  atomic_store(&is_armed, kind != NULL);
  const int status = real_main(argc, argv, environment);
  atomic_store(&is_armed, 0);
  const char* count = getenv("FAULT_COUNT");
  if (count != NULL) {
    FILE* file = fopen(count, "w");
    if (file != NULL) {
      fprintf(file, "%ld\n", atomic_load(&num_calls));
      fclose(file);
    }
  }
  return status;
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
  typedef int (*start_main)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void), void (*)(void),
                            void*);
  real_main = main;
  start_main start = (start_main)dlsym(RTLD_NEXT, "__libc_start_main");
  return start(&armed_main, argc, argv, init, fini, rtld_fini, stack_end);
}

// Defines a function that fails, or calls the next definition.
#define WRAP(result, failure, name, parameters, arguments)                  \
  result name parameters {                                                  \
    static result(*next) parameters;                                        \
    if (next == NULL) next = (result(*) parameters)dlsym(RTLD_NEXT, #name); \
    return fails(0, #name) ? failure : next arguments;                      \
  }

WRAP(ssize_t, -1, read, (int file, void* buffer, size_t size), (file, buffer, size))
WRAP(ssize_t, -1, write, (int file, const void* bytes, size_t size), (file, bytes, size))
WRAP(int, -1, fsync, (int file), (file))
WRAP(int, -1, rename, (const char* from, const char* to), (from, to))
WRAP(int, -1, linkat, (int from, const char* path, int to, const char* name, int flags), (from, path, to, name, flags))
WRAP(int, -1, ftruncate, (int file, off_t size), (file, size))
WRAP(int, -1, ftruncate64, (int file, off64_t size), (file, size))
WRAP(int, -1, fallocate, (int file, int mode, off_t offset, off_t size), (file, mode, offset, size))
WRAP(int, -1, fallocate64, (int file, int mode, off64_t offset, off64_t size), (file, mode, offset, size))
WRAP(int, -1, fchmod, (int file, mode_t mode), (file, mode))
WRAP(int, -1, flock, (int file, int operation), (file, operation))
WRAP(int, -1, fstat, (int file, struct stat* about), (file, about))
WRAP(int, -1, fstat64, (int file, struct stat64* about), (file, about))
WRAP(int, -1, stat, (const char* path, struct stat* about), (path, about))
WRAP(int, -1, stat64, (const char* path, struct stat64* about), (path, about))
WRAP(int, -1, fstatfs, (int file, struct statfs* about), (file, about))
WRAP(int, -1, access, (const char* path, int mode), (path, mode))
WRAP(int, -1, mkdir, (const char* path, mode_t mode), (path, mode))
WRAP(int, -1, unlink, (const char* path), (path))
WRAP(int, -1, madvise, (void* data, size_t size, int advice), (data, size, advice))
// Only calls of the program itself: a cryptographic library that gets no random numbers ends the process, and should.
ssize_t getrandom(void* buffer, size_t size, unsigned flags) {
  static ssize_t (*next)(void*, size_t, unsigned);
  if (next == NULL) next = (ssize_t(*)(void*, size_t, unsigned))dlsym(RTLD_NEXT, "getrandom");
  Dl_info caller, program;
  const int is_of_program = dladdr(__builtin_return_address(0), &caller) != 0 &&
                            dladdr((void*)real_main, &program) != 0 && caller.dli_fbase == program.dli_fbase;
  return is_of_program && fails(0, "getrandom") ? -1 : next(buffer, size, flags);
}

// Maps of files only: those without a file belong to allocators.
#define WRAP_MAP(name, offset_type)                                                                         \
  void* name(void* at, size_t size, int protection, int flags, int file, offset_type offset) {              \
    static void* (*next)(void*, size_t, int, int, int, offset_type);                                        \
    if (next == NULL) next = (void* (*)(void*, size_t, int, int, int, offset_type))dlsym(RTLD_NEXT, #name); \
    return file >= 0 && fails(0, #name) ? MAP_FAILED : next(at, size, protection, flags, file, offset);     \
  }
WRAP_MAP(mmap, off_t)
WRAP_MAP(mmap64, off64_t)

// A close that fails has closed the descriptor, as on Linux.
int close(int file) {
  static int (*next)(int);
  if (next == NULL) next = (int (*)(int))dlsym(RTLD_NEXT, "close");
  const int has_failed = fails(0, "close"), error = errno;
  const int result = next(file);
  if (!has_failed) return result;
  errno = error;
  return -1;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  static int (*next)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (next == NULL) {
    next = (int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))dlsym(RTLD_NEXT, "pthread_create");
  }
  return fails(0, "pthread_create") ? EAGAIN : next(thread, attributes, start, argument);
}

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? (mode_t)va_arg(arguments, int) : 0;
}

#define WRAP_OPEN(name)                                                               \
  int name(const char* path, int flags, ...) {                                        \
    static int (*next)(const char*, int, ...);                                        \
    va_list arguments;                                                                \
    va_start(arguments, flags);                                                       \
    const mode_t mode = mode_of(flags, arguments);                                    \
    va_end(arguments);                                                                \
    if (next == NULL) next = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #name); \
    return fails(0, #name) ? -1 : next(path, flags, mode);                            \
  }
WRAP_OPEN(open)
WRAP_OPEN(open64)

// --- Allocations. dlsym itself may allocate, so the C library's own names are used.

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) { return fails(1, "malloc") ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails(1, "calloc") ? NULL : __libc_calloc(count, size); }
void* realloc(void* data, size_t size) { return fails(1, "realloc") ? NULL : __libc_realloc(data, size); }
void* memalign(size_t alignment, size_t size) { return fails(1, "memalign") ? NULL : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return fails(1, "aligned_alloc") ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** result, size_t alignment, size_t size) {
  if (fails(1, "posix_memalign")) return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result == NULL ? ENOMEM : 0;
}
