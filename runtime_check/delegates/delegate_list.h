// Creates the delegates that a name, a path or a list of them selects.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_LIST_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_LIST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/delegate_options.h"

namespace permafrost {

// Returns whether the text selects several delegates: "gpu,onednn,reference".
bool IsDelegateList(absl::string_view text);

// Returns whether a name is the path of a shared library.
bool IsLibraryPath(absl::string_view name);

// Creates the delegate of a name of the registry or of a path. Of a list, creates a delegate that stands for all of
// them (DelegateChoice): a session places each node on one. Earlier ones are preferred; "reference" at the end lets the
// built-in kernels run nodes, too, where that is estimated to be faster. Null for "reference" alone. The precision
// applies to those that have it; the others compute in f32. Errors are those of MakeDelegate and LoadExternalDelegate;
// InvalidArgument for an empty or repeated name, for "reference" before another one, for more than 16 delegates, and
// for a list with a precision that none has or that needs a plan.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeDelegates(absl::string_view text, const DelegateOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_LIST_H_
