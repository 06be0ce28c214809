// Exports the functions of runtime_check/delegates/onednn/openmp.h from a shared library, in the versions that oneDNN
// asks for. None is a default version, so the OpenMP of a program that is linked against the shared library is not
// bound to it. Where the dynamic linker still finds these functions first, calls of the program are passed on to its
// OpenMP library.

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned num_threads, unsigned flags);
void GOMP_barrier();
int omp_get_max_threads();
int omp_get_num_threads();
int omp_get_thread_num();
int omp_in_parallel();

void ExportedParallel(void (*body)(void*), void* data, unsigned num_threads, unsigned flags) {
  GOMP_parallel(body, data, num_threads, flags);
}
void ExportedBarrier() { GOMP_barrier(); }
int ExportedMaxThreads() { return omp_get_max_threads(); }
int ExportedNumThreads() { return omp_get_num_threads(); }
int ExportedThreadNum() { return omp_get_thread_num(); }
int ExportedInParallel() { return omp_in_parallel(); }

__asm__(".symver ExportedParallel,GOMP_parallel@GOMP_4.0");
__asm__(".symver ExportedBarrier,GOMP_barrier@GOMP_1.0");
__asm__(".symver ExportedMaxThreads,omp_get_max_threads@OMP_1.0");
__asm__(".symver ExportedNumThreads,omp_get_num_threads@OMP_1.0");
__asm__(".symver ExportedThreadNum,omp_get_thread_num@OMP_1.0");
__asm__(".symver ExportedInParallel,omp_in_parallel@OMP_1.0");

}  // extern "C"
