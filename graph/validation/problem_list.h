// The problems that a check of a graph finds, as many as one message can tell.
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
  // Those after the fifth are not kept: a checker may stop.
  bool IsFull() const { return problems_.size() >= kMostProblems; }
  void Report(absl::string_view problem) {
    if (!IsFull()) problems_.emplace_back(problem);
  }
  // OK without problems, else InvalidArgument with all of them.
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
