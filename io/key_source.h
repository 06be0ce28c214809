// Sources of the keys of encrypted models.
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

// A secret and its origin.
struct GivenSecret {
  std::string origin;  // Name used in messages: "'key.txt'", "$MODEL_KEY".
  std::shared_ptr<const LockedMemory> text;
};

// Provides keys. It is called only when a model turns out to be encrypted. Programs that keep keys elsewhere, such as
// in a key store, implement it. Thread-safe. An error makes opening the model fail with that error.
class KeySource {
 public:
  virtual ~KeySource() = default;

  // Returns the contents of identity files, which hold one private key per line. Empty lines and lines that start with
  // '#' are ignored.
  virtual absl::StatusOr<std::vector<GivenSecret>> Identities() = 0;
  // Returns passphrases, none of them empty.
  virtual absl::StatusOr<std::vector<GivenSecret>> Passphrases() = 0;
};

// Locations of keys that a user can specify. Keys themselves are never passed on a command line, which other processes
// can read.
struct KeyPlaces {
  std::vector<std::string> identity_files;
  std::vector<int> identity_descriptors;  // Open files, read to their end and not closed.
  std::vector<std::string> identity_variables;
  std::vector<int> passphrase_descriptors;
  std::vector<std::string> passphrase_variables;
};

// Returns a source of the keys at `places`. Each location is read once, on first use. A line feed at the end of a
// passphrase that is read from a file is ignored. `files` must outlive the result. Errors of the source: NotFound for a
// variable that is not set, InvalidArgument for a secret that is empty or too long.
std::shared_ptr<KeySource> KeysAt(FileSystem& files, KeyPlaces places);

// Read the secret in the environment variable `name`, in an open file, or in a file. Same errors as KeysAt.
absl::StatusOr<GivenSecret> SecretOfVariable(const std::string& name);
absl::StatusOr<GivenSecret> SecretOfDescriptor(int descriptor);
absl::StatusOr<GivenSecret> SecretOfFile(FileSystem& files, const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_IO_KEY_SOURCE_H_
