// Where the keys of encrypted models come from.
#ifndef PERMAFROST_IO_KEY_SOURCE_H_
#define PERMAFROST_IO_KEY_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"
#include "io/locked_memory.h"

namespace permafrost {

// Something that only its owner may know.
struct GivenSecret {
  std::string origin;  // What a message calls it: "'key.txt'", "$MODEL_KEY".
  std::shared_ptr<const LockedMemory> text;
};

// Asked when a model turns out to be encrypted, and not before. A program that keeps its keys elsewhere, in a key store
// say, implements it. Thread-safe. An error is the error of opening the model.
class KeySource {
 public:
  virtual ~KeySource() = default;

  // The contents of identity files, which hold private keys: one on each line; empty lines and lines that begin with
  // '#' count for nothing.
  virtual absl::StatusOr<std::vector<GivenSecret>> Identities() = 0;
  // Passphrases, none of them empty.
  virtual absl::StatusOr<std::vector<GivenSecret>> Passphrases() = 0;
};

// The places that a user can name. Nothing of a key itself: what stands in a command line, every process may read.
struct KeyPlaces {
  std::vector<std::string> identity_files;
  std::vector<int> identity_descriptors;  // Open files, read to their end and not closed.
  std::vector<std::string> identity_variables;
  std::vector<int> passphrase_descriptors;
  std::vector<std::string> passphrase_variables;
};

// Keys at `places`, each of which is read once, when it is first asked for. Of a passphrase that is read from a file
// one line feed at the end does not count. Owns nothing of `files`, which outlives it. Errors of the source:
// NotFound for a variable that is not set, InvalidArgument for what is empty or longer than a key can be.
std::shared_ptr<KeySource> KeysAt(FileSystem& files, KeyPlaces places);

// The one secret in the environment variable `name`, in an open file, or in a file: as KeysAt.
absl::StatusOr<GivenSecret> SecretOfVariable(const std::string& name);
absl::StatusOr<GivenSecret> SecretOfDescriptor(int descriptor);
absl::StatusOr<GivenSecret> SecretOfFile(FileSystem& files, const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_IO_KEY_SOURCE_H_
