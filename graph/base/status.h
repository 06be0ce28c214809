// Macros and annotations for absl::Status that Abseil 20220623 does not provide.
//
// Messages have the form `node 'conv1' (Conv2D): attr 'strides' has 3 values, expected 4`: place, found, expected. They
// are in lower case, with names in single quotes and without a full stop. Each layer adds its own context once, with
// Annotate.
#ifndef PERMAFROST_GRAPH_BASE_STATUS_H_
#define PERMAFROST_GRAPH_BASE_STATUS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Returns `status` with "<context>: " prepended to its message and with its payloads. Returns an OK status unchanged.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { annotated.SetPayload(type, payload); });
  return annotated;
}

}  // namespace permafrost

// Returns from the enclosing function if `expression`, an absl::Status, is not OK.
#define PF_RETURN_IF_ERROR(expression)                                            \
  do {                                                                            \
    if (absl::Status pf_status = (expression); !pf_status.ok()) return pf_status; \
  } while (false)

#define PF_CONCAT_INNER(a, b) a##b
#define PF_CONCAT(a, b) PF_CONCAT_INNER(a, b)

// `PF_ASSIGN_OR_RETURN(auto x, F());` assigns the value of an absl::StatusOr to x, which it may declare, or returns the
// error from the enclosing function.
#define PF_ASSIGN_OR_RETURN(declaration, expression) \
  PF_ASSIGN_OR_RETURN_INNER(PF_CONCAT(pf_statusor_, __LINE__), declaration, expression)
#define PF_ASSIGN_OR_RETURN_INNER(statusor, declaration, expression) \
  auto statusor = (expression);                                      \
  if (!statusor.ok()) return statusor.status();                      \
  declaration = *std::move(statusor)

#endif  // PERMAFROST_GRAPH_BASE_STATUS_H_
