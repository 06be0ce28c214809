// encrypt_model: encrypts and decrypts models, makes keys, and shows what an encrypted file says of itself.
#ifndef PERMAFROST_TOOLS_ENCRYPT_MODEL_H_
#define PERMAFROST_TOOLS_ENCRYPT_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"

namespace permafrost {

struct EncryptModelOptions {
  std::string in, out;
  std::vector<std::string> recipient;
  std::vector<std::string> recipients_file;
  // The passphrase to encrypt with is at the same places as the one that decrypts.
  KeyFlags keys;
  // What to do; encrypt when none is set.
  bool decrypt = false, keygen = false, inspect = false;
  bool armor = false;  // Of what is encrypted.
  bool json = false;
};

absl::Status EncryptModel(const EncryptModelOptions& options, FileSystem& files, Console& console);

Tool EncryptModelTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_ENCRYPT_MODEL_H_
