// What objects that were compiled against the headers of glibc ask of the C library, and musl has not.

extern "C" {
// Whether the program never had a second thread, so that counters need no atomic operations. Never certain here.
extern char __libc_single_threaded;
char __libc_single_threaded = 0;
}
