// Converts the flags to the options of io/.
#include "tools/model/model_flags.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "io/formats/saved_model.h"
#include "io/formats/zstd.h"
#include "io/model_file.h"
#include "tools/model/frozen_model.h"

namespace permafrost {

void AddKeyFlags(KeyFlags* keys, FlagTable* flags) {
  flags->Add("identity", &keys->identity, "FILE",
             "Private keys that open an encrypted model, as age-keygen and encrypt_model --keygen write them. May be "
             "given several times.");
  flags->Add("identity_fd", &keys->identity_fd, "N", "The same, read from file descriptor N.");
  flags->Add("identity_env", &keys->identity_env, "NAME", "The same, in the environment variable NAME.");
  flags->Add("passphrase_fd", &keys->passphrase_fd, "N",
             "The passphrase of an encrypted model, read from file descriptor N.");
  flags->Add("passphrase_env", &keys->passphrase_env, "NAME", "The same, in the environment variable NAME.");
}

std::shared_ptr<KeySource> KeysOf(const KeyFlags& keys, FileSystem& files) {
  KeyPlaces places;
  places.identity_files = keys.identity;
  if (keys.identity_fd.has_value()) places.identity_descriptors.push_back(*keys.identity_fd);
  if (!keys.identity_env.empty()) places.identity_variables.push_back(keys.identity_env);
  if (keys.passphrase_fd.has_value()) places.passphrase_descriptors.push_back(*keys.passphrase_fd);
  if (!keys.passphrase_env.empty()) places.passphrase_variables.push_back(keys.passphrase_env);
  return KeysAt(files, std::move(places));
}

void AddReadFlags(ReadFlags* read, FlagTable* flags) {
  flags->Add("saved_model_tags", &read->saved_model_tags, "TAGS",
             "Which graph of a SavedModel to read: the one with these tags, separated by commas.");
  flags->Add("signature", &read->signature, "NAME",
             "Which signature of a SavedModel says what its inputs and outputs are. Left out: serving_default, or the "
             "only one.");
  flags->Add("max_model_bytes", &read->max_model_bytes, "N",
             "What a compressed model may grow to, in bytes; one that would be larger is refused.");
  AddKeyFlags(&read->keys, flags);
  flags->Add("require_locked_memory", &read->require_locked_memory,
             "Refuse an encrypted model when the system does not let all of it be kept out of swap (ulimit -l), "
             "instead of saying so.");
}

ModelOpener::ModelOpener(FileSystem& files, const ReadFlags& read, Console& console, bool reads_all)
    : files_(files), console_(console) {
  options_.max_model_bytes = read.max_model_bytes;
  options_.keys = KeysOf(read.keys, files);
  options_.reads_all = reads_all;
  options_.require_locked_memory = read.require_locked_memory;
  tags_ = SplitList(read.saved_model_tags);
  signature_ = read.signature;
}

OpenOptions ModelOpener::OptionsFor(const std::string& path) const {
  OpenOptions options = options_;
  options.tell = [this, path](absl::string_view note) {
    console_.err << "note: '" << Printable(path) << "': " << Printable(note) << "\n";
  };
  return options;
}

absl::StatusOr<std::unique_ptr<Graph>> ModelOpener::Open(const std::string& path) const {
  const OpenOptions options = OptionsFor(path);
  if (!IsSavedModel(files_, path)) return OpenModel(files_, path, options);
  FrozenModelRequest request;
  request.saved_model = path;
  request.tags = tags_;
  request.signature = signature_;
  request.open = options;
  absl::StatusOr<FrozenModel> model = OpenFrozenModel(files_, request);
  PF_RETURN_IF_ERROR(Annotate(model.status(), absl::StrCat("'", path, "'")));
  for (const std::string& note : model->report.notes) options.tell(note);
  return std::move(model->graph);
}

absl::StatusOr<std::unique_ptr<Graph>> OpenModelFile(FileSystem& files, const std::string& path, const ReadFlags& read,
                                                     Console& console, bool reads_all) {
  return ModelOpener(files, read, console, reads_all).Open(path);
}

void AddWriteFlags(WriteFlags* write, FlagTable* flags) {
  flags->Add(
      "compress", &write->compress, "zstd[:LEVEL]",
      absl::StrCat("Compress what is written, at a level from ", kFastestZstdLevel, " (fast) to ", kSmallestZstdLevel,
                   " (small); without one, ", kDefaultZstdLevel, ". Every tool reads it as it is."));
  flags->Add("encrypt_to", &write->encrypt_to, "KEY",
             "Encrypt what is written for the holder of this public key (age1...). May be given several times.");
  flags->Add("encrypt_to_file", &write->encrypt_to_file, "FILE", "The same, for the public keys in the file.");
  flags->Add("encrypt_passphrase_env", &write->encrypt_passphrase_env, "NAME",
             "Encrypt what is written for those who know the passphrase in the environment variable NAME.");
  flags->Add("encrypt_passphrase_fd", &write->encrypt_passphrase_fd, "N", "The same, read from file descriptor N.");
}

// Returns the level selected by --compress.
absl::StatusOr<int> ZstdLevel(absl::string_view compress) {
  absl::string_view text = compress;
  int level = kDefaultZstdLevel;
  bool is_known = absl::ConsumePrefix(&text, "zstd");
  if (is_known && !text.empty()) is_known = absl::ConsumePrefix(&text, ":") && absl::SimpleAtoi(text, &level);
  if (is_known && level >= kFastestZstdLevel && level <= kSmallestZstdLevel) return level;
  return absl::InvalidArgumentError(absl::StrCat("--compress is '", compress, "', expected zstd or zstd:LEVEL, ",
                                                 kFastestZstdLevel, " to ", kSmallestZstdLevel));
}

absl::StatusOr<SaveOptions> MakeSaveOptions(const WriteFlags& write, absl::string_view format, FileSystem& files,
                                            const Console* console) {
  SaveOptions options;
  options.format = format;
  if (!write.compress.empty()) {
    ZstdOptions zstd;
    PF_ASSIGN_OR_RETURN(zstd.level, ZstdLevel(write.compress));
    // At least one, so that the bytes do not depend on the machine.
    zstd.num_threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    if (console != nullptr) {
      zstd.progress = [console](uint64_t done, uint64_t size) {
        console->Progress(done >= size ? "" : absl::StrCat("compressing: ", done * 100 / size, " %"));
      };
    }
    options.filters.push_back(ZstdFilter(zstd));
  }
  AgeRecipients recipients;
  PF_ASSIGN_OR_RETURN(recipients.recipients, ReadRecipients(write.encrypt_to, write.encrypt_to_file, files));
  KeyFlags places;
  places.passphrase_env = write.encrypt_passphrase_env;
  places.passphrase_fd = write.encrypt_passphrase_fd;
  PF_ASSIGN_OR_RETURN(recipients.passphrase, ReadPassphrase(places, files));
  if (recipients.passphrase != nullptr && !recipients.recipients.empty()) {
    return absl::InvalidArgumentError(
        "found public keys (--encrypt_to) and a passphrase to encrypt for, expected the ones or the other");
  }
  if (recipients.passphrase != nullptr || !recipients.recipients.empty()) {
    options.filters.push_back([recipients](ByteSink* out, uint64_t) { return EncryptInto(recipients, out); });
  }
  return options;
}

absl::StatusOr<std::shared_ptr<const LockedMemory>> ReadPassphrase(const KeyFlags& keys, FileSystem& files) {
  PF_ASSIGN_OR_RETURN(const std::vector<GivenSecret> passphrases, KeysOf(keys, files)->Passphrases());
  if (passphrases.size() > 1) return absl::InvalidArgumentError("found two passphrases, expected one");
  return passphrases.empty() ? nullptr : passphrases[0].text;
}

absl::StatusOr<std::vector<age::Recipient>> ReadRecipients(const std::vector<std::string>& named,
                                                           const std::vector<std::string>& paths, FileSystem& files) {
  std::vector<age::Recipient> recipients;
  for (const std::string& text : named) {
    PF_ASSIGN_OR_RETURN(recipients.emplace_back(), age::ParseRecipient(text));
  }
  for (const std::string& path : paths) {
    PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
    absl::StatusOr<std::vector<age::Recipient>> found = age::ParseRecipients(text);
    if (!found.ok()) return Annotate(found.status(), absl::StrCat("'", path, "'"));
    recipients.insert(recipients.end(), found->begin(), found->end());
  }
  return recipients;
}

}  // namespace permafrost
