// Tests the reserve of memory for failing allocations. The process has an operator new that can be made to fail.
#include "tools/command_line/main_guard.h"

#include <cstddef>
#include <cstdlib>
#include <new>

#include "absl/container/flat_hash_map.h"
#include "gtest/gtest.h"

namespace permafrost {
namespace {

int num_failures = 0;  // Of the next attempts to allocate.
int num_entries = 0;

// Fills a hash table, of which one growth fails.
int FillTable(int, char**) {
  absl::flat_hash_map<int, int> map;
  for (int i = 0; i < 1000; ++i) {
    if (i == 100) num_failures = 1;
    map[i] = i;
  }
  num_entries = static_cast<int>(map.size());
  return 0;
}

int AllocateTooMuch(int, char**) {
  num_failures = 2;
  int* const numbers = new int[1000];
  delete[] numbers;
  return 0;
}

TEST(MainGuard, AHashTableSurvivesAFailingGrowth) {
  EXPECT_EQ(GuardMain(&FillTable, 0, nullptr), 0);
  EXPECT_EQ(num_entries, 1000);
}

TEST(MainGuard, AnAllocationThatFailsWithTheReserveIsAnError) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(GuardMain(&AllocateTooMuch, 0, nullptr), 255);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "permafrost: the tool did not start or report: std::bad_alloc\n");
}

}  // namespace
}  // namespace permafrost

void* operator new(size_t size) {
  // As the standard specifies it for the default operator.
  while (true) {
    void* const memory = permafrost::num_failures > 0 ? nullptr : std::malloc(size);
    if (memory != nullptr) return memory;
    --permafrost::num_failures;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
