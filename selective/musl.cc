// Symbols that objects compiled against the headers of glibc need and musl lacks.

extern "C" {
// True if the process has never had a second thread, so that reference counts need no atomic operations. Unknown here,
// hence false.
extern char __libc_single_threaded;
char __libc_single_threaded = 0;
}
