// Tests of the small malloc under other names, in a program that uses the system's malloc.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

extern "C" {
void* small_malloc(size_t size);
void small_free(void* memory);
void* small_calloc(size_t count, size_t size);
void* small_realloc(void* memory, size_t size);
void* small_aligned_alloc(size_t alignment, size_t size);
int small_posix_memalign(void** memory, size_t alignment, size_t size);
size_t small_malloc_usable_size(void* memory);
}

namespace {

constexpr size_t kMostSmall = size_t{128} << 10;  // Larger blocks are mapped in whole pages.

bool Holds(const void* memory, size_t size, int value) {
  const auto* const bytes = static_cast<const unsigned char*>(memory);
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != value) return false;
  }
  return true;
}

TEST(SmallMallocTest, EverySizeIsHeldAndRoundedUpByAQuarterAtMost) {
  for (size_t size = 0; size <= (size_t{129} << 10); size += size < 600 ? 1 : 509) {
    void* const memory = small_malloc(size);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 16, 0u) << size;
    const size_t usable = small_malloc_usable_size(memory);
    EXPECT_GE(usable, size);
    EXPECT_LE(usable, size + size / 4 + 4096 * (size > kMostSmall) + 16);
    std::memset(memory, 0xab, usable);
    small_free(memory);
  }
}

TEST(SmallMallocTest, AFreedBlockIsReused) {
  void* const first = small_malloc(100);
  small_free(first);
  EXPECT_EQ(small_malloc(112), first);
  small_free(first);
}

TEST(SmallMallocTest, BlocksDoNotOverlap) {
  std::mt19937 random(7);
  struct Block {
    void* memory;
    size_t size;
    int value;
  };
  std::vector<Block> blocks;
  for (int i = 0; i < 20000; ++i) {
    if (blocks.size() > 200 || (!blocks.empty() && random() % 3 == 0)) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      ASSERT_TRUE(Holds(blocks.back().memory, blocks.back().size, blocks.back().value));
      small_free(blocks.back().memory);
      blocks.pop_back();
      continue;
    }
    Block block = {nullptr, random() % (random() % 50 == 0 ? 400000 : 900), static_cast<int>(random() % 256)};
    const size_t alignment = size_t{1} << (random() % 13);
    block.memory = random() % 4 == 0 ? small_aligned_alloc(alignment, block.size) : small_malloc(block.size);
    ASSERT_NE(block.memory, nullptr);
    std::memset(block.memory, block.value, block.size);
    blocks.push_back(block);
  }
  for (const Block& block : blocks) {
    ASSERT_TRUE(Holds(block.memory, block.size, block.value));
    small_free(block.memory);
  }
}

TEST(SmallMallocTest, Alignment) {
  for (size_t alignment = 1; alignment <= 65536; alignment *= 2) {
    for (const size_t size : {0, 1, 100, 200000}) {
      void* const memory = small_aligned_alloc(alignment, size);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0u);
      EXPECT_GE(small_malloc_usable_size(memory), size);
      std::memset(memory, 1, size);
      void* const more = small_realloc(memory, 3 * size + 1);
      EXPECT_TRUE(Holds(more, size, 1));
      small_free(more);
    }
  }
  EXPECT_EQ(small_aligned_alloc(24, 8), nullptr);
  EXPECT_EQ(errno, EINVAL);
  void* memory = &memory;
  EXPECT_EQ(small_posix_memalign(&memory, 4, 8), EINVAL);
  EXPECT_EQ(small_posix_memalign(&memory, 64, SIZE_MAX), ENOMEM);
  EXPECT_EQ(memory, &memory);
  ASSERT_EQ(small_posix_memalign(&memory, 64, 8), 0);
  small_free(memory);
}

TEST(SmallMallocTest, CallocClearsReusedBlocks) {
  for (const size_t size : {40, 300000}) {
    void* const dirty = small_malloc(size);
    std::memset(dirty, 0xff, size);
    small_free(dirty);
    void* const zeros = small_calloc(size / 4, 4);
    EXPECT_TRUE(Holds(zeros, size, 0));
    small_free(zeros);
  }
}

TEST(SmallMallocTest, ReallocKeepsTheContent) {
  void* memory = small_realloc(nullptr, 10);
  std::memset(memory, 5, 10);
  for (const size_t size : {16, 17, 5000, 200000, 1000000}) {
    memory = small_realloc(memory, size);
    ASSERT_TRUE(Holds(memory, 10, 5));
  }
  EXPECT_EQ(small_realloc(memory, 20), memory);
  small_free(memory);
  small_free(nullptr);
}

TEST(SmallMallocTest, ImpossibleSizesFail) {
  for (const size_t size : {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 4096, SIZE_MAX / 2}) {
    errno = 0;
    EXPECT_EQ(small_malloc(size), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(small_aligned_alloc(4096, size), nullptr);
  }
  EXPECT_EQ(small_calloc(SIZE_MAX / 2, 3), nullptr);
  void* const kept = small_malloc(8);
  std::memset(kept, 9, 8);
  EXPECT_EQ(small_realloc(kept, SIZE_MAX), nullptr);
  EXPECT_TRUE(Holds(kept, 8, 9));
  small_free(kept);
}

TEST(SmallMallocTest, Threads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      std::vector<void*> blocks;
      for (int j = 0; j < 5000; ++j) {
        void* const memory = small_malloc(64);
        std::memset(memory, i, 64);
        blocks.push_back(memory);
        if (j % 3 != 0) continue;
        EXPECT_TRUE(Holds(blocks.front(), 64, i));
        small_free(blocks.front());
        blocks.erase(blocks.begin());
      }
      for (void* const memory : blocks) {
        EXPECT_TRUE(Holds(memory, 64, i));
        small_free(memory);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
