// The flags that say how models are read and written: the same in every tool.
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

// Where the user keeps the keys of encrypted models.
struct KeyFlags {
  std::vector<std::string> identity;
  std::optional<int32_t> identity_fd;
  std::string identity_env;
  std::optional<int32_t> passphrase_fd;
  std::string passphrase_env;
};

// --identity, --identity_fd, --identity_env, --passphrase_fd, --passphrase_env.
void AddKeyFlags(KeyFlags* keys, FlagTable* flags);

// The keys at those places, which are read when they are first needed.
std::shared_ptr<KeySource> KeysOf(const KeyFlags& keys, FileSystem& files);

// What the user says of the models that a tool reads.
struct ReadFlags {
  uint64_t max_model_bytes = OpenOptions().max_model_bytes;
  std::string saved_model_tags = "serve";  // Comma separated.
  std::string signature;
  KeyFlags keys;
  bool require_locked_memory = false;
};

// --max_model_bytes, --saved_model_tags, --signature, the flags of keys, --require_locked_memory.
void AddReadFlags(ReadFlags* read, FlagTable* flags);

// Opens models as the flags say. A tool makes one for all its models, since a key may come from where it can be read
// only once. Does not own `files` and `console`, on whose `err` notes go.
class ModelOpener {
 public:
  // `reads_all` is that of OpenOptions.
  ModelOpener(FileSystem& files, const ReadFlags& read, Console& console, bool reads_all = false);

  // OpenModel. A SavedModel folder is frozen as it is read, and its signature declares the interface of the graph;
  // other graphs come without one.
  absl::StatusOr<std::unique_ptr<Graph>> Open(const std::string& path) const;

  // For a tool that only looks at the graph: see OpenOptions::allow_dangling_inputs.
  void AllowDanglingInputs() { options_.allow_dangling_inputs = true; }

  // What OpenModel takes for this path. This must outlive the result.
  OpenOptions OptionsFor(const std::string& path) const;

 private:
  FileSystem& files_;
  Console& console_;
  OpenOptions options_;
  std::vector<std::string> tags_;
  std::string signature_;
};

// For a tool with one model. `reads_all` is that of OpenOptions.
absl::StatusOr<std::unique_ptr<Graph>> OpenModelFile(FileSystem& files, const std::string& path, const ReadFlags& read,
                                                     Console& console, bool reads_all = false);

// What the user says of the models that a tool writes.
struct WriteFlags {
  std::string compress;  // "zstd", "zstd:19"; empty: not at all.
  std::vector<std::string> encrypt_to;
  std::vector<std::string> encrypt_to_file;
  // Where the passphrase is that opens what is written.
  std::string encrypt_passphrase_env;
  std::optional<int32_t> encrypt_passphrase_fd;
};

// --compress, --encrypt_to, --encrypt_to_file, --encrypt_passphrase_env, --encrypt_passphrase_fd.
void AddWriteFlags(WriteFlags* write, FlagTable* flags);

// How SaveModel has to save in `format`, which must outlive the result. To be asked for before any work is done:
// InvalidArgument and the errors of reading files say what is wrong with the flags.
// `console`, which may be null and must outlive the result, shows the progress of compression.
absl::StatusOr<SaveOptions> MakeSaveOptions(const WriteFlags& write, absl::string_view format, FileSystem& files,
                                            const Console* console = nullptr);

// The passphrase to encrypt with, null when none is named. InvalidArgument for more than one.
absl::StatusOr<std::shared_ptr<const LockedMemory>> ReadPassphrase(const KeyFlags& keys, FileSystem& files);

// The recipients that are named, one by one and in files.
absl::StatusOr<std::vector<age::Recipient>> ReadRecipients(const std::vector<std::string>& named,
                                                           const std::vector<std::string>& paths, FileSystem& files);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_MODEL_FLAGS_H_
