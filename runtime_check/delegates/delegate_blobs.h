// Storage for what delegates compile, from one process to the next.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_BLOBS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_BLOBS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace permafrost {

// Blobs by key, for example compiled programs by device, driver and source. Thread-safe. Several processes may use the
// same storage: a reader gets a whole blob or none.
class DelegateBlobs {
 public:
  virtual ~DelegateBlobs() = default;
  // Returns the bytes of the key, or nothing if there are none or they are damaged.
  virtual std::optional<std::string> Read(const std::string& key) = 0;
  // Stores the bytes, and replaces those of an earlier call. Problems are not reported: the next process then compiles.
  virtual void Write(const std::string& key, absl::string_view bytes) = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_BLOBS_H_
