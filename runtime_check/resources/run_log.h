// The output of kernels that print, and the number of times that each node has printed.
#ifndef PERMAFROST_RUNTIME_CHECK_RESOURCES_RUN_LOG_H_
#define PERMAFROST_RUNTIME_CHECK_RESOURCES_RUN_LOG_H_

#include <cstdint>
#include <cstdio>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "runtime_check/resources/print_writer.h"

namespace permafrost {

// The log of a session, which outlives its runs. Not thread-safe.
class RunLog {
 public:
  // Creates a log. Without a writer, "stdout" goes to standard output and all other streams to standard error.
  explicit RunLog(PrintWriter writer) : writer_(std::move(writer)) {}

  void Write(absl::string_view stream, absl::string_view text) {
    if (writer_ != nullptr) return writer_(stream, text);
    std::fwrite(text.data(), 1, text.size(), stream == "stdout" ? stdout : stderr);
  }

  // Returns true for the first `times` calls for that node, or always if `times` is negative.
  bool Admits(const Node& node, int64_t times) {
    if (times < 0) return true;
    int64_t& count = counts_[&node];
    if (count >= times) return false;
    ++count;
    return true;
  }

 private:
  PrintWriter writer_;
  absl::flat_hash_map<const Node*, int64_t> counts_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_RESOURCES_RUN_LOG_H_
