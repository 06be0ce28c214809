// Reports an error that a fuzz target found.
#ifndef PERMAFROST_TESTS_FUZZ_FINDING_H_
#define PERMAFROST_TESTS_FUZZ_FINDING_H_

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Prints the finding with its input, and aborts.
[[noreturn]] inline void Fail(absl::string_view what, absl::string_view input) {
  std::fprintf(stderr, "%s\ninput: \"%s\"\n", std::string(what).c_str(), absl::CHexEscape(input).c_str());
  std::abort();
}

// Fails if a status is none that the input may cause, or if its message is longer than one line.
inline void CheckError(const absl::Status& status, absl::string_view input) {
  if (status.ok()) return;
  if (absl::IsInternal(status) || absl::IsUnknown(status)) Fail(status.ToString(), input);
  if (absl::StrContains(status.message(), '\n')) Fail("the message has several lines", input);
}

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FUZZ_FINDING_H_
