// Joins several errors, so that a user sees all of them at once.
#ifndef PERMAFROST_GRAPH_BASE_ALL_ERRORS_H_
#define PERMAFROST_GRAPH_BASE_ALL_ERRORS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"

namespace permafrost {

// Returns OK for no errors, a single error unchanged, and for several one with the code of the first: "found 2 errors",
// and each message on lines of its own. REQUIRES: none of `errors` is OK.
inline absl::Status AllErrors(absl::Span<const absl::Status> errors) {
  if (errors.empty()) return absl::OkStatus();
  if (errors.size() == 1) return errors[0];
  std::string text = absl::StrCat("found ", errors.size(), " errors");
  for (const absl::Status& error : errors) {
    absl::StrAppend(&text, "\n  ", absl::StrReplaceAll(error.message(), {{"\n", "\n  "}}));
  }
  return absl::Status(errors[0].code(), text);
}

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_ALL_ERRORS_H_
