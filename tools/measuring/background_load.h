// Threads that load processors and memory during a measurement.
#ifndef PERMAFROST_TOOLS_MEASURING_BACKGROUND_LOAD_H_
#define PERMAFROST_TOOLS_MEASURING_BACKGROUND_LOAD_H_

#include <atomic>
#include <thread>
#include <vector>

namespace permafrost {

// Runs threads from construction to destruction. Each thread multiplies and adds over memory larger than most caches,
// without a pause.
class BackgroundLoad {
 public:
  explicit BackgroundLoad(int num_threads);
  ~BackgroundLoad();
  BackgroundLoad(const BackgroundLoad&) = delete;
  BackgroundLoad& operator=(const BackgroundLoad&) = delete;

 private:
  std::atomic<bool> is_over_{false};
  std::atomic<int> started_{0};
  std::vector<std::thread> threads_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_BACKGROUND_LOAD_H_
