// Worker threads that loop until stopped.
#include "tools/measuring/background_load.h"

#include <cstddef>

namespace permafrost {
namespace {

// 8 MB per thread: larger than a core's private caches, so that the shared cache and the memory are loaded too.
constexpr size_t kFloats = size_t{2} << 20;
// Work between two checks of the stop flag: about 10 us.
constexpr size_t kBlock = 1 << 15;

}  // namespace

BackgroundLoad::BackgroundLoad(int num_threads) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this] {
      std::vector<float> memory(kFloats, 1.0f);
      started_.fetch_add(1);
      size_t at = 0;
      while (!is_over_.load(std::memory_order_relaxed)) {
        for (size_t j = at; j < at + kBlock; ++j) memory[j] = memory[j] * 0.999f + 0.001f;
        at = (at + kBlock) % kFloats;
      }
    });
  }
  while (started_.load() < num_threads) std::this_thread::yield();
}

BackgroundLoad::~BackgroundLoad() {
  is_over_.store(true);
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace permafrost
