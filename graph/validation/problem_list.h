// Collects the problems that a check of a graph finds, up to the number that one message reports.
#ifndef PERMAFROST_GRAPH_VALIDATION_PROBLEM_LIST_H_
#define PERMAFROST_GRAPH_VALIDATION_PROBLEM_LIST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace permafrost {

class ProblemList {
 public:
  // Problems after the fifth are dropped, so a checker may stop.
  bool IsFull() const { return problems_.size() >= kMostProblems; }
  void Report(absl::string_view problem) {
    if (!IsFull()) problems_.emplace_back(problem);
  }
  // Returns OK if there are no problems, otherwise InvalidArgument with all of them.
  absl::Status ToStatus() const {
    if (problems_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrJoin(problems_, "; "));
  }

 private:
  static constexpr size_t kMostProblems = 5;

  std::vector<std::string> problems_;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_VALIDATION_PROBLEM_LIST_H_
