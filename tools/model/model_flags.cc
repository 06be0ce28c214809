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
#include "io/formats/tflite/metadata.h"
#include "io/formats/zstd.h"
#include "io/model_file.h"
#include "tools/model/frozen_model.h"
#include "tools/model/model_location.h"

namespace permafrost {

void AddKeyFlags(KeyFlags* keys, FlagTable* flags) {
  flags->Group("keys of encrypted models");
  flags->Add("identity", &keys->identity, "FILE",
             "File with private keys, as written by age-keygen and encrypt_model --keygen. May be repeated.");
  flags->Add("identity_fd", &keys->identity_fd, "N", "File descriptor to read private keys from.");
  flags->Add("identity_env", &keys->identity_env, "NAME", "Environment variable that contains private keys.");
  flags->Add("passphrase_fd", &keys->passphrase_fd, "N", "File descriptor to read the passphrase from.");
  flags->Add("passphrase_env", &keys->passphrase_env, "NAME", "Environment variable that contains the passphrase.");
  flags->Group("");
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
  flags->Group("reading models");
  flags->Add("saved_model_tags", &read->saved_model_tags, "TAGS",
             "Tags of the graph to read from a SavedModel, separated by commas.");
  flags->Add(
      "signature", &read->signature, "NAME",
      "Signature of a SavedModel or a TensorFlow Lite model. Default: serving_default, or the only one; the first "
      "subgraph of a TensorFlow Lite model.");
  flags->Add("max_model_bytes", &read->max_model_bytes, "N",
             "Maximum size of a decompressed model in bytes. Larger models are rejected.");
  AddKeyFlags(&read->keys, flags);
  flags->Group("keys of encrypted models");
  flags->Add("require_locked_memory", &read->require_locked_memory,
             "Reject an encrypted model if not all of it can be locked in memory (ulimit -l), instead of printing a "
             "note.");
  flags->Group("");
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
  const ModelLocation location = LocateModel(files_, path);
  if (location.is_whole()) {
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, OpenModel(files_, path, options));
    const std::shared_ptr<const TfliteSource> source = TfliteSourceOf(*graph);
    if (signature_.empty() || source == nullptr) return graph;
    absl::StatusOr<std::unique_ptr<Graph>> selected = OpenSignature(*source, signature_);
    PF_RETURN_IF_ERROR(Annotate(selected.status(), absl::StrCat("'", path, "': --signature")));
    return selected;
  }
  if (location.has_no_graph()) return NoGraphError(path, location);
  FrozenModelRequest request;
  request.saved_model = location.saved_model;
  request.meta_graph = location.meta_graph;
  request.checkpoint = location.checkpoint;
  request.finds_outputs = true;
  request.tags = tags_;
  request.signature = signature_;
  request.open = options;
  absl::StatusOr<FrozenModel> model = OpenFrozenModel(files_, request);
  PF_RETURN_IF_ERROR(Annotate(model.status(), absl::StrCat("'", path, "'")));
  if (!location.saved_model.empty() && location.saved_model != path) {
    options.tell(absl::StrCat("a part of the SavedModel '", location.saved_model, "', which is read"));
  } else if (!location.meta_graph.empty()) {
    options.tell(absl::StrCat("frozen from the graph '", location.meta_graph, "' and the checkpoint '",
                              location.checkpoint, "'"));
  }
  for (const std::string& note : model->report.notes) options.tell(note);
  return std::move(model->graph);
}

absl::StatusOr<std::unique_ptr<Graph>> OpenModelFile(FileSystem& files, const std::string& path, const ReadFlags& read,
                                                     Console& console, bool reads_all) {
  return ModelOpener(files, read, console, reads_all).Open(path);
}

void AddWriteFlags(WriteFlags* write, FlagTable* flags) {
  flags->Group("compression and encryption of the output");
  flags->Add("compress", &write->compress, "zstd[:LEVEL]",
             absl::StrCat("Compress the output, at a level from ", kFastestZstdLevel, " (fast) to ", kSmallestZstdLevel,
                          " (small), by default ", kDefaultZstdLevel, ". All tools read compressed models."));
  flags->Add("encrypt_to", &write->encrypt_to, "KEY",
             "Public key (age1...) to encrypt the output for. May be repeated.");
  flags->Add("encrypt_to_file", &write->encrypt_to_file, "FILE", "File with public keys to encrypt the output for.");
  flags->Add("encrypt_passphrase_env", &write->encrypt_passphrase_env, "NAME",
             "Environment variable that contains the passphrase to encrypt the output with.");
  flags->Add("encrypt_passphrase_fd", &write->encrypt_passphrase_fd, "N",
             "File descriptor to read the passphrase for the output from.");
  flags->Group("");
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
