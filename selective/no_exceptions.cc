// Replaces the functions by which the C++ library throws: the program ends with a message instead. Without these
// definitions a statically linked program contains the library's exceptions, locales, streams and the unwinder, which
// are larger than the whole runtime. Models and callers can trigger these functions only if the system refuses memory;
// with overcommitted memory, it refuses only requests that the session's limits have already rejected.
#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace {

[[noreturn]] void End(const char* why) {
  size_t size = 0;
  while (why[size] != '\0') ++size;
  if (write(2, why, size) < 0 || write(2, "\n", 1) < 0) _exit(134);
  abort();
}

void* Allocate(size_t size, size_t alignment) {
  void* memory = nullptr;
  if (size == 0) size = 1;
  if (alignment <= alignof(max_align_t)) {
    memory = malloc(size);
  } else if (posix_memalign(&memory, alignment, size) != 0) {
    memory = nullptr;
  }
  return memory;
}

void* AllocateOrEnd(size_t size, size_t alignment) {
  void* const memory = Allocate(size, alignment);
  if (memory == nullptr) End("out of memory");
  return memory;
}

}  // namespace

void* operator new(size_t size) { return AllocateOrEnd(size, 1); }
void* operator new[](size_t size) { return AllocateOrEnd(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) {
  return AllocateOrEnd(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return AllocateOrEnd(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 1); }
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return Allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return Allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { free(memory); }

namespace std {
void __throw_bad_alloc() { End("out of memory"); }
void __throw_bad_array_new_length() { End("out of memory"); }
void __throw_bad_cast() { End("bad cast"); }
void __throw_bad_function_call() { End("call of an empty function"); }
void __throw_invalid_argument(const char* what) { End(what); }
void __throw_length_error(const char* what) { End(what); }
void __throw_logic_error(const char* what) { End(what); }
void __throw_out_of_range(const char* what) { End(what); }
void __throw_out_of_range_fmt(const char* what, ...) { End(what); }
void __throw_runtime_error(const char* what) { End(what); }
void __throw_system_error(int) { End("the system refuses a lock or a thread"); }
void terminate() noexcept { End("terminated"); }

// Called where there is no type information, for the library's own tag, whose address has been compared before.
bool _Sp_make_shared_tag::_S_eq(const type_info&) noexcept { return false; }
}  // namespace std

extern "C" {
[[noreturn]] void __cxa_pure_virtual() { End("call of a pure virtual function"); }
[[noreturn]] void __cxa_deleted_virtual() { End("call of a deleted virtual function"); }

// Symbols that tables of the library's own objects refer to, for exceptions that are never thrown.
[[noreturn]] void __gxx_personality_v0() { End("an exception"); }
[[noreturn]] void _Unwind_Resume() { End("an exception"); }
[[noreturn]] void __cxa_throw() { End("an exception"); }
[[noreturn]] void __cxa_begin_catch() { End("an exception"); }
[[noreturn]] void __cxa_end_catch() { End("an exception"); }
[[noreturn]] void __cxa_rethrow() { End("an exception"); }

// Guards of function-local static variables: the first byte is set when the variable is initialised, the second while a
// thread initialises it.
int __cxa_guard_acquire(char* guard) {
  if (__atomic_load_n(&guard[0], __ATOMIC_ACQUIRE) != 0) return 0;
  while (__atomic_exchange_n(&guard[1], 1, __ATOMIC_ACQUIRE) != 0) sched_yield();
  if (__atomic_load_n(&guard[0], __ATOMIC_ACQUIRE) == 0) return 1;
  __atomic_store_n(&guard[1], 0, __ATOMIC_RELEASE);
  return 0;
}
void __cxa_guard_release(char* guard) {
  __atomic_store_n(&guard[0], 1, __ATOMIC_RELEASE);
  __atomic_store_n(&guard[1], 0, __ATOMIC_RELEASE);
}
void __cxa_guard_abort(char* guard) { __atomic_store_n(&guard[1], 0, __ATOMIC_RELEASE); }
}
