// Exports the functions of runtime_check/delegates/onednn/openmp.h from a shared library, in the versions that oneDNN
// asks for. None is a default version, so the OpenMP of a program that is linked against the shared library is not
// bound to it. Where the dynamic linker still finds these functions first, calls of the program are passed on to its
// OpenMP library.

extern "C" {

#define EXPORT(type, function, version, parameters, arguments)       \
  type function parameters;                                          \
  type exported_##function parameters { return function arguments; } \
  __asm__(".symver exported_" #function "," #function "@" #version)

EXPORT(void, GOMP_parallel, GOMP_4 .0, (void (*body)(void*), void* data, unsigned num_threads, unsigned flags),
       (body, data, num_threads, flags));
EXPORT(void, GOMP_barrier, GOMP_1 .0, (), ());
EXPORT(int, omp_get_max_threads, OMP_1 .0, (), ());
EXPORT(int, omp_get_num_threads, OMP_1 .0, (), ());
EXPORT(int, omp_get_thread_num, OMP_1 .0, (), ());
EXPORT(int, omp_in_parallel, OMP_1 .0, (), ());

}  // extern "C"
