// Where the certificate of a model lies: the tools that read it beside the model, and the sandbox, which lets them.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_CERTIFICATE_PATH_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_CERTIFICATE_PATH_H_

#include <string>

namespace permafrost {

// Returns the path of the certificate beside a model: "best.certificate.json" for "best.pb".
std::string CertificatePath(const std::string& model);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_CERTIFICATE_PATH_H_
