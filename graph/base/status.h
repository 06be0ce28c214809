// Macros and annotations for absl::Status, which abseil 20220623 leaves to its users.
//
// Wording of a message: `node 'conv1' (Conv2D): attr 'strides' has 3 values, expected 4`: place, found, expected; lower
// case, names in single quotes, no full stop. Each layer adds its own context once, with Annotate.
#ifndef PERMAFROST_GRAPH_BASE_STATUS_H_
#define PERMAFROST_GRAPH_BASE_STATUS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Returns `status` with "<context>: " in front of its message and its payloads; an OK status is returned unchanged.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { annotated.SetPayload(type, payload); });
  return annotated;
}

}  // namespace permafrost

// Returns from the enclosing function when `expression`, an absl::Status, is not OK.
#define PF_RETURN_IF_ERROR(expression)                                            \
  do {                                                                            \
    if (absl::Status pf_status = (expression); !pf_status.ok()) return pf_status; \
  } while (false)

#define PF_CONCAT_INNER(a, b) a##b
#define PF_CONCAT(a, b) PF_CONCAT_INNER(a, b)

// `PF_ASSIGN_OR_RETURN(auto x, F());` declares or assigns x from an absl::StatusOr, or returns its error.
#define PF_ASSIGN_OR_RETURN(declaration, expression) \
  PF_ASSIGN_OR_RETURN_INNER(PF_CONCAT(pf_statusor_, __LINE__), declaration, expression)
#define PF_ASSIGN_OR_RETURN_INNER(statusor, declaration, expression) \
  auto statusor = (expression);                                      \
  if (!statusor.ok()) return statusor.status();                      \
  declaration = *std::move(statusor)

#endif  // PERMAFROST_GRAPH_BASE_STATUS_H_
