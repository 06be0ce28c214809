// Flags for reading and writing models, common to all tools.
#ifndef PERMAFROST_TOOLS_MODEL_MODEL_FLAGS_H_
#define PERMAFROST_TOOLS_MODEL_MODEL_FLAGS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "io/file_system.h"
#include "io/formats/age/age.h"
#include "io/key_source.h"
#include "io/locked_memory.h"
#include "io/model_file.h"
#include "io/model_format.h"
#include "tools/command_line/console.h"
#include "tools/command_line/flags.h"

namespace permafrost {

// Locations of the keys of encrypted models.
struct KeyFlags {
  std::vector<std::string> identity;
  std::optional<int32_t> identity_fd;
  std::string identity_env;
  std::optional<int32_t> passphrase_fd;
  std::string passphrase_env;
};

// Adds --identity, --identity_fd, --identity_env, --passphrase_fd, --passphrase_env.
void AddKeyFlags(KeyFlags* keys, FlagTable* flags);

// Returns a source of the keys at those locations, which are read at first use.
std::shared_ptr<KeySource> KeysOf(const KeyFlags& keys, FileSystem& files);

// Options for reading models.
struct ReadFlags {
  uint64_t max_model_bytes = OpenOptions().max_model_bytes;
  std::string saved_model_tags = "serve";  // Comma separated.
  std::string signature;
  KeyFlags keys;
  bool require_locked_memory = false;
};

// Adds --max_model_bytes, --saved_model_tags, --signature, the key flags and --require_locked_memory.
void AddReadFlags(ReadFlags* read, FlagTable* flags);

// Opens models with the given flags. A tool makes one opener for all its models, since a key may come from a source
// that can be read only once. Does not own `files` and `console`; notes go to the console's `err`.
class ModelOpener {
 public:
  // `reads_all` is that of OpenOptions.
  ModelOpener(FileSystem& files, const ReadFlags& read, Console& console, bool reads_all = false);

  // Opens a model with OpenModel. A SavedModel folder is frozen on reading, and its signature declares the interface of
  // the graph; other graphs have no declared interface.
  absl::StatusOr<std::unique_ptr<Graph>> Open(const std::string& path) const;

  // Allows dangling inputs, for tools that only inspect the graph: see OpenOptions::allow_dangling_inputs.
  void AllowDanglingInputs() { options_.allow_dangling_inputs = true; }

  // Returns the options of OpenModel for this path. This object must outlive the result.
  OpenOptions OptionsFor(const std::string& path) const;

 private:
  FileSystem& files_;
  Console& console_;
  OpenOptions options_;
  std::vector<std::string> tags_;
  std::string signature_;
};

// Opens a model, for tools with a single model. `reads_all` is that of OpenOptions.
absl::StatusOr<std::unique_ptr<Graph>> OpenModelFile(FileSystem& files, const std::string& path, const ReadFlags& read,
                                                     Console& console, bool reads_all = false);

// Options for writing models.
struct WriteFlags {
  std::string compress;  // "zstd", "zstd:19"; empty: no compression.
  std::vector<std::string> encrypt_to;
  std::vector<std::string> encrypt_to_file;
  // The source of the passphrase that encrypts the output.
  std::string encrypt_passphrase_env;
  std::optional<int32_t> encrypt_passphrase_fd;
};

// Adds --compress, --encrypt_to, --encrypt_to_file, --encrypt_passphrase_env, --encrypt_passphrase_fd.
void AddWriteFlags(WriteFlags* write, FlagTable* flags);

// Returns the options of SaveModel for `format`, which must outlive the result. Call it before any work, to report
// wrong flags early: InvalidArgument and errors of reading files. `console`, which may be null and must outlive the
// result, shows the progress of compression.
absl::StatusOr<SaveOptions> MakeSaveOptions(const WriteFlags& write, absl::string_view format, FileSystem& files,
                                            const Console* console = nullptr);

// Returns the passphrase for encryption, null if none is given. InvalidArgument for more than one.
absl::StatusOr<std::shared_ptr<const LockedMemory>> ReadPassphrase(const KeyFlags& keys, FileSystem& files);

// Returns the recipients named directly and those listed in files.
absl::StatusOr<std::vector<age::Recipient>> ReadRecipients(const std::vector<std::string>& named,
                                                           const std::vector<std::string>& paths, FileSystem& files);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_MODEL_FLAGS_H_
