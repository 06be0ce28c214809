// Long work beside the interpreter: without its lock, and such that Ctrl-C ends the wait for it.
#ifndef PERMAFROST_PYTHON_NATIVE_INTERRUPTIBLE_H_
#define PERMAFROST_PYTHON_NATIVE_INTERRUPTIBLE_H_

#include <Python.h>

#include <atomic>
#include <functional>
#include <memory>

#include "absl/status/status.h"

namespace permafrost::python {

// Set once nobody waits for the work any more. What checks it stops early; callbacks into Python must not run.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

// Runs `work` without the GIL and returns its status. On the main thread, where Python delivers signals, the work gets
// a thread of its own while this one looks for signals; when a handler raises (Ctrl-C), that exception is thrown at
// once and the work is left to end by itself. So everything that the work uses must be owned by it, and Python objects
// be held in a Kept. On other threads it runs on the calling one. REQUIRES: the GIL.
absl::Status RunInterruptibly(std::function<absl::Status(const StopFlag& stop)> work);

// True where Python delivers signals.
bool IsMainThread();

// Holds a reference to a Python object; copies share it. It may go on any thread, with the GIL or without: the object
// itself goes when a thread with the GIL next calls DropReleased, which RunInterruptibly does.
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

// Drops objects whose last Kept is gone. REQUIRES: the GIL.
void DropReleased();
// To be called when the interpreter ends: gives work that nobody waits for a few seconds to end. REQUIRES: the GIL.
void AwaitAbandonedWork();

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_INTERRUPTIBLE_H_
