// Runs long work without the GIL, and lets Ctrl-C end the wait for it.
#ifndef PERMAFROST_PYTHON_NATIVE_INTERRUPTIBLE_H_
#define PERMAFROST_PYTHON_NATIVE_INTERRUPTIBLE_H_

#include <Python.h>

#include <atomic>
#include <functional>
#include <memory>

#include "absl/status/status.h"

namespace permafrost::python {

// Set once no caller waits for the work any more. Work that checks it stops early; callbacks into Python must not run.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

// Runs `work` without the GIL and returns its status. On the main thread, where Python delivers signals, `work` runs on
// a new thread while the main thread polls for signals. If a signal handler raises (Ctrl-C), the exception is thrown at
// once and `work` is abandoned: it ends by itself. So `work` must own everything that it uses, and hold Python objects
// in a Kept. On other threads `work` runs on the calling thread. REQUIRES: the GIL.
absl::Status RunInterruptibly(std::function<absl::Status(const StopFlag& stop)> work);

// Returns true on the thread to which Python delivers signals.
bool IsMainThread();

// Holds a reference to a Python object; copies share it. May be destroyed on any thread, with or without the GIL: the
// Python object is released when a thread that holds the GIL next calls DropReleased, as RunInterruptibly does.
class Kept {
 public:
  Kept() = default;
  // Takes over a reference. REQUIRES: the GIL.
  explicit Kept(PyObject* object);
  PyObject* get() const { return object_.get(); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  std::shared_ptr<PyObject> object_;
};

// Releases the objects whose last Kept is gone. REQUIRES: the GIL.
void DropReleased();
// Waits a few seconds for abandoned work to end. Must be called when the interpreter ends. REQUIRES: the GIL.
void AwaitAbandonedWork();

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_INTERRUPTIBLE_H_
