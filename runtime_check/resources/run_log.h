// Where the kernels that print write to, and how often each node has printed.
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

// A session has one, which outlives its runs. Not thread-safe.
class RunLog {
 public:
  // Without a writer, "stdout" is standard output and all else standard error.
  explicit RunLog(PrintWriter writer) : writer_(std::move(writer)) {}

  void Write(absl::string_view stream, absl::string_view text) {
    if (writer_ != nullptr) return writer_(stream, text);
    std::fwrite(text.data(), 1, text.size(), stream == "stdout" ? stdout : stderr);
  }

  // True at the first `times` calls for that node, or always when `times` is negative.
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
