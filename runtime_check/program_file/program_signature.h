// The types of a step: op, types of its tensors, and the attributes that determine them. A build lists the signatures
// of its models (ops_to_register.h), so that it can check files without the schemas of ops.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_SIGNATURE_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_SIGNATURE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime_check/kernel.h"
#include "runtime_check/program_file/program_file.h"

namespace permafrost {

// Returns the types of inputs and outputs: "6,6,3>6".
std::string TypesText(const ProgramFile& program, const ProgramFileStep& step);

// Returns the attributes with types and numbers of tensors, as "T:3001 N:1802": each with its wire form in hexadecimal
// digits. InvalidArgument if one is missing.
absl::StatusOr<std::string> SignatureAttrs(const Node& node);

// Returns whether the node has the attributes of such a text, with the same wire forms.
bool HasSignatureAttrs(const Node& node, absl::string_view attrs);

// Returns OK if the build has a kernel for the step, and the tensors have the types that the kernel expects. `kernel`
// may be null. Otherwise Unimplemented, or DataLoss for types that the op does not have.
absl::Status CheckSignature(const ProgramFile& program, const ProgramFileStep& step, const Kernel* kernel);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_SIGNATURE_H_
