// encrypt_model: encrypts and decrypts models, generates keys, and shows the header of an encrypted file.
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
  // The passphrase for encryption is read from the same places as the one for decryption.
  KeyFlags keys;
  // The mode; encrypt if none is set.
  bool decrypt = false, keygen = false, inspect = false;
  bool armor = false;  // Writes the encrypted file in ASCII armor.
  bool json = false;
};

// Encrypts, decrypts, generates a key or inspects a file, as the options select.
absl::Status EncryptModel(const EncryptModelOptions& options, FileSystem& files, Console& console);

Tool EncryptModelTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_ENCRYPT_MODEL_H_
