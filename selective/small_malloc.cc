// Implements malloc in a kilobyte of code; musl's takes seven. Small blocks have fixed sizes, four for each power of
// two, with one free list for each, and are never returned to the system. A large block is a mapping of its own. Errors
// such as double frees and writes beyond a block are not detected. Not for processes that fork while they have several
// threads.
#include <sched.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kPage = 4096;
// Larger blocks are mapped.
constexpr size_t kMostSmall = size_t{128} << 10;
constexpr size_t kChunk = size_t{256} << 10;
constexpr int kNumClasses = 52;  // For kMostSmall and less.

// Precedes each block.
struct Header {
  size_t size;   // Size of the block in bytes, without the header.
  size_t shift;  // Distance by which the block was moved for its alignment.
};
static_assert(sizeof(Header) == kAlignment);

struct FreeBlock {
  FreeBlock* next;
};

FreeBlock* free_blocks[kNumClasses];
char* chunk = nullptr;
size_t chunk_left = 0;
char is_locked = 0;

struct Lock {
  Lock() {
    while (__atomic_exchange_n(&is_locked, 1, __ATOMIC_ACQUIRE) != 0) sched_yield();
  }
  ~Lock() { __atomic_store_n(&is_locked, 0, __ATOMIC_RELEASE); }
};

// Returns the class of a size, and rounds *size up to that of the class: 16, 32, ... 112, 128, 160, 192, 224, 256, 320,
// ...
int ClassOf(size_t* size) {
  if (*size == 0) *size = 1;
  const int log = 63 - __builtin_clzll((*size - 1) | 127);  // At least 6.
  const int log_step = log - 2;
  const size_t steps = ((*size - 1) >> log_step) + 1;  // 1 to 8; above 128 bytes 5 to 8.
  *size = steps << log_step;
  return 4 * (log - 6) + static_cast<int>(steps) - 1;
}

char* Map(size_t size) {
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

Header* HeaderOf(void* memory) { return static_cast<Header*>(memory) - 1; }

}  // namespace

extern "C" {

void* malloc(size_t size) {
  Header* header = nullptr;
  if (size > kMostSmall) {
    // Whole pages including the header. The system refuses sizes that exceed the address space.
    const size_t pages = size + sizeof(Header) + kPage - 1;
    if (pages > size) header = reinterpret_cast<Header*>(Map(pages / kPage * kPage));
    size = pages / kPage * kPage - sizeof(Header);
  } else {
    const int number = ClassOf(&size);
    const Lock lock;
    if (FreeBlock* const block = free_blocks[number]) {
      free_blocks[number] = block->next;
      return block;
    }
    const size_t whole = size + sizeof(Header);
    if (chunk_left < whole) {
      // The rest of the previous chunk is lost: less than one block.
      chunk = Map(kChunk);
      chunk_left = chunk == nullptr ? 0 : kChunk;
    }
    if (chunk_left >= whole) {
      header = reinterpret_cast<Header*>(chunk);
      chunk += whole;
      chunk_left -= whole;
    }
  }
  if (header == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  header->size = size;
  header->shift = 0;
  return header + 1;
}

void free(void* memory) {
  if (memory == nullptr) return;
  memory = static_cast<char*>(memory) - HeaderOf(memory)->shift;
  Header* const header = HeaderOf(memory);
  if (header->size > kMostSmall) {
    munmap(header, header->size + sizeof(Header));
    return;
  }
  size_t size = header->size;
  const int number = ClassOf(&size);
  auto* const block = static_cast<FreeBlock*>(memory);
  const Lock lock;
  block->next = free_blocks[number];
  free_blocks[number] = block;
}

void* calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const memory = malloc(bytes);
  // Pages from the system are zero.
  if (memory != nullptr && bytes <= kMostSmall) memset(memory, 0, bytes);
  return memory;
}

void* realloc(void* memory, size_t size) {
  if (memory == nullptr) return malloc(size);
  const size_t had = HeaderOf(memory)->size;
  if (size <= had) return memory;
  void* const moved = malloc(size);
  if (moved == nullptr) return nullptr;
  memcpy(moved, memory, had);
  free(memory);
  return moved;
}

void* aligned_alloc(size_t alignment, size_t size) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    errno = EINVAL;
    return nullptr;
  }
  if (alignment <= kAlignment) return malloc(size);
  size_t bytes = 0;
  if (__builtin_add_overflow(size, alignment, &bytes)) bytes = SIZE_MAX;
  auto* const memory = static_cast<char*>(malloc(bytes));
  if (memory == nullptr) return nullptr;
  const size_t shift = -reinterpret_cast<size_t>(memory) & (alignment - 1);
  // A second header directly before the moved block.
  Header* const header = HeaderOf(memory + shift);
  header->size = HeaderOf(memory)->size - shift;
  header->shift = shift;
  return memory + shift;
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  if (alignment < sizeof(void*)) return EINVAL;
  const int before = errno;
  void* const made = aligned_alloc(alignment, size);
  if (made == nullptr) {
    const int error = errno;
    errno = before;
    return error;
  }
  *memory = made;
  return 0;
}

void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

size_t malloc_usable_size(void* memory) { return memory == nullptr ? 0 : HeaderOf(memory)->size; }

}  // extern "C"
