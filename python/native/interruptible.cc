// Threads for work that the main thread waits for while still handling signals.
#include "python/native/interruptible.h"

#include <pybind11/pybind11.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace permafrost::python {
namespace {

// Maximum delay before a signal is handled.
constexpr std::chrono::milliseconds kLookForSignals(20);
// How long to wait for work after setting its stop flag. Most work stops at once, and then leaves nothing behind.
constexpr std::chrono::milliseconds kStopsByItself(200);
constexpr std::chrono::seconds kEndsBeforeExit(5);

struct Shared {
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  absl::Status status;
  std::function<absl::Status(const StopFlag&)> work;
  StopFlag stop = std::make_shared<std::atomic<bool>>(false);
};

std::atomic<int> num_working{0};

struct Released {
  std::mutex mutex;
  std::vector<PyObject*> objects;
};

Released& ReleasedObjects() {
  static auto* released = new Released();
  return *released;
}

void Work(const std::shared_ptr<Shared>& shared) {
  absl::Status status = shared->work(shared->stop);
  // Objects owned by the work are destroyed before its end is signalled.
  shared->work = nullptr;
  const std::lock_guard<std::mutex> lock(shared->mutex);
  shared->status = std::move(status);
  shared->has_ended = true;
  shared->ended.notify_all();
}

bool HasEnded(Shared* shared, std::chrono::milliseconds within) {
  std::unique_lock<std::mutex> lock(shared->mutex);
  return shared->ended.wait_for(lock, within, [&] { return shared->has_ended; });
}

}  // namespace

bool IsMainThread() { return syscall(SYS_gettid) == getpid(); }

absl::Status RunInterruptibly(std::function<absl::Status(const StopFlag& stop)> work) {
  DropReleased();
  const auto shared = std::make_shared<Shared>();
  shared->work = std::move(work);
  const bool is_main = IsMainThread();
  {
    const py::gil_scoped_release release;
    bool has_thread = false;
    if (is_main) {
      ++num_working;
      try {
        std::thread([shared] {
          Work(shared);
          --num_working;
        }).detach();
        has_thread = true;
      } catch (const std::system_error&) {
        --num_working;  // No thread can be created: run without one.
      }
    }
    if (!has_thread) Work(shared);
    while (!HasEnded(shared.get(), kLookForSignals)) {
      const py::gil_scoped_acquire acquire;
      if (PyErr_CheckSignals() == 0) continue;
      const py::error_already_set raised;
      shared->stop->store(true);
      {
        const py::gil_scoped_release wait;
        HasEnded(shared.get(), kStopsByItself);
      }
      throw raised;
    }
  }
  DropReleased();
  return shared->status;
}

Kept::Kept(PyObject* object)
    : object_(object, [](PyObject* gone) {
        Released& released = ReleasedObjects();
        const std::lock_guard<std::mutex> lock(released.mutex);
        released.objects.push_back(gone);
      }) {}

void DropReleased() {
  std::vector<PyObject*> objects;
  {
    Released& released = ReleasedObjects();
    const std::lock_guard<std::mutex> lock(released.mutex);
    objects.swap(released.objects);
  }
  for (PyObject* object : objects) Py_DECREF(object);
}

void AwaitAbandonedWork() {
  const auto deadline = std::chrono::steady_clock::now() + kEndsBeforeExit;
  const py::gil_scoped_release release;
  while (num_working.load() > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace permafrost::python
