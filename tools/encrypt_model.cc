// Encrypts and decrypts files as streams.
#include "tools/encrypt_model.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "io/formats/age/age.h"
#include "io/formats/age/armor.h"
#include "tools/command_line/json.h"

namespace permafrost {
namespace {

// The size of a read or write: large enough to keep all processors busy.
constexpr uint64_t kPiece = 8 << 20;

void DefineFlags(EncryptModelOptions* options, FlagTable* flags) {
  flags->Add("in", &options->in, "FILE", "File to encrypt, decrypt or inspect. '-' is standard input.");
  flags->Add("out", &options->out, "FILE", "File to write, atomically. '-' is standard output, except for --keygen.");
  flags->Add("recipient", &options->recipient, "KEY", "Public key (age1...) to encrypt for. May be repeated.");
  flags->Add("recipients_file", &options->recipients_file, "FILE", "File with public keys to encrypt for.");
  AddKeyFlags(&options->keys, flags);
  flags->Add("armor", &options->armor, "Write the encrypted file as text (PEM), which is a third larger.");
  flags->Add("decrypt", &options->decrypt, "Decrypt, with private keys (--identity) or a passphrase.");
  flags->Add("keygen", &options->keygen,
             "Make a private key, write it to --out, a new file that only its owner can read, and print the public "
             "key.");
  flags->Add("inspect", &options->inspect,
             "Print the recipients and the size of an encrypted file. Needs no key, and the facts are not "
             "authenticated.");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  flags->MarkCommon({"in", "out", "recipient", "recipients_file", "decrypt", "identity", "passphrase_env", "keygen",
                     "inspect", "armor", "json"});
  flags->AcceptAsArguments({"in", "out"});
  flags->MarkOutputs({"out"});
}

bool NamesIdentity(const KeyFlags& keys) {
  return !keys.identity.empty() || keys.identity_fd.has_value() || !keys.identity_env.empty();
}

bool NamesPassphrase(const KeyFlags& keys) { return keys.passphrase_fd.has_value() || !keys.passphrase_env.empty(); }

bool NamesRecipient(const EncryptModelOptions& options) {
  return !options.recipient.empty() || !options.recipients_file.empty();
}

absl::Status CheckOptions(const EncryptModelOptions& options) {
  const auto bad = [](absl::string_view what) { return absl::InvalidArgumentError(what); };
  if (options.decrypt + options.keygen + options.inspect > 1) {
    return bad("found more than one of --decrypt, --keygen and --inspect, expected at most one");
  }
  const bool encrypts = !options.decrypt && !options.keygen && !options.inspect;
  if (options.in.empty() != options.keygen) {
    return bad(options.keygen ? "--keygen reads no --in" : "--in is missing, expected a file");
  }
  if (options.out.empty() != options.inspect) {
    return bad(options.inspect ? "--inspect writes no --out" : "--out is missing, expected a file");
  }
  if (!encrypts && options.armor) return bad("--armor is for encrypting");
  if (!encrypts && NamesRecipient(options)) return bad("--recipient and --recipients_file are for encrypting");
  if (!options.decrypt && NamesIdentity(options.keys)) return bad("private keys (--identity) are for --decrypt");
  if (!encrypts && !options.decrypt && NamesPassphrase(options.keys)) return bad("no passphrase is needed");
  if (options.decrypt && !NamesIdentity(options.keys) && !NamesPassphrase(options.keys)) {
    return bad(
        "no key to decrypt with is given, expected --identity=FILE, --identity_fd=N, --identity_env=NAME, "
        "--passphrase_env=NAME or --passphrase_fd=N");
  }
  if (encrypts && NamesRecipient(options) == NamesPassphrase(options.keys)) {
    return bad(NamesPassphrase(options.keys)
                   ? "found public keys and a passphrase to encrypt for, expected the ones or the other"
                   : "found no recipient, expected --recipient=age1..., --recipients_file=FILE, "
                     "--passphrase_env=NAME or --passphrase_fd=N");
  }
  return absl::OkStatus();
}

absl::StatusOr<AgeRecipients> ReadRecipients(const EncryptModelOptions& options, FileSystem& files) {
  AgeRecipients recipients;
  PF_ASSIGN_OR_RETURN(recipients.recipients, ReadRecipients(options.recipient, options.recipients_file, files));
  PF_ASSIGN_OR_RETURN(recipients.passphrase, ReadPassphrase(options.keys, files));
  return recipients;
}

// Copies all of `source` and shows progress.
absl::Status Copy(const ByteSource& source, absl::string_view what, Console& console, ByteSink* out) {
  for (uint64_t done = 0; done < source.size();) {
    console.Progress(absl::StrCat(what, ": ", 100 * done / source.size(), " % of ", FormatBytes(source.size())));
    const uint64_t length = std::min(kPiece, source.size() - done);
    PF_ASSIGN_OR_RETURN(const FileView piece, source.Read(done, length));
    PF_RETURN_IF_ERROR(out->Append(piece.bytes));
    done += length;
  }
  console.Progress("");
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ByteSource>> OpenInput(const std::string& path, FileSystem& files) {
  PF_ASSIGN_OR_RETURN(FileView file, files.MapFile(path));
  return MemorySource(std::move(file));
}

void PrintWritten(const EncryptModelOptions& options, uint64_t bytes, absl::string_view how, Console& console) {
  if (options.json) {
    JsonWriter json(console.out);
    json.BeginObject();
    json.Key("out").Text(options.out);
    json.Key("content_bytes").Count(bytes);
    json.End();
  } else {
    console.out << "wrote '" << Printable(options.out) << "': " << FormatBytesExactly(bytes) << how << "\n";
  }
}

absl::Status Encrypt(const EncryptModelOptions& options, FileSystem& files, Console& console) {
  PF_ASSIGN_OR_RETURN(const AgeRecipients recipients, ReadRecipients(options, files));
  PF_ASSIGN_OR_RETURN(const std::shared_ptr<const ByteSource> source, OpenInput(options.in, files));
  PF_ASSIGN_OR_RETURN(const FileView head, source->Read(0, std::min<uint64_t>(source->size(), 64)));
  if (IsAge(head.bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("'", options.in, "' is encrypted already"));
  }
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer,
                      files.NewWriter(options.out, options.armor ? 0 : source->size()));
  if (recipients.passphrase != nullptr) console.Progress("making a key of the passphrase");
  const std::unique_ptr<FilterSink> armor = options.armor ? age::ArmorInto(writer.get()) : nullptr;
  ByteSink* const out = options.armor ? static_cast<ByteSink*>(armor.get()) : writer.get();
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FilterSink> sink, EncryptInto(recipients, out));
  PF_RETURN_IF_ERROR(Copy(*source, "encrypting", console, sink.get()));
  PF_RETURN_IF_ERROR(sink->Finish());
  if (armor != nullptr) PF_RETURN_IF_ERROR(armor->Finish());
  PF_RETURN_IF_ERROR(writer->Commit());
  const size_t count = recipients.recipients.size();
  PrintWritten(options, source->size(),
               recipients.passphrase != nullptr
                   ? std::string(", encrypted with a passphrase")
                   : absl::StrCat(", encrypted for ", count, count == 1 ? " recipient" : " recipients"),
               console);
  return absl::OkStatus();
}

absl::Status Decrypt(const EncryptModelOptions& options, FileSystem& files, Console& console) {
  PF_ASSIGN_OR_RETURN(std::shared_ptr<const ByteSource> file, OpenInput(options.in, files));
  absl::StatusOr<AgeFile> opened = InspectAge(std::move(file));
  if (!opened.ok()) return Annotate(opened.status(), absl::StrCat("'", options.in, "'"));
  OpenOptions open;
  open.keys = KeysOf(options.keys, files);
  console.Progress("looking for the key");
  const absl::StatusOr<std::shared_ptr<const ByteSource>> source = DecryptAge(*std::move(opened), open);
  if (!source.ok()) return Annotate(source.status(), absl::StrCat("'", options.in, "'"));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, files.NewWriter(options.out, (*source)->size()));
  PF_RETURN_IF_ERROR(Annotate(Copy(**source, "decrypting", console, writer.get()), absl::StrCat("'", options.in, "'")));
  PF_RETURN_IF_ERROR(writer->Commit());
  PrintWritten(options, (*source)->size(), ", decrypted", console);
  return absl::OkStatus();
}

absl::Status MakeKey(const EncryptModelOptions& options, FileSystem& files, Console& console) {
  PF_RETURN_IF_ERROR(age::PrepareCrypto());
  const age::Identity identity = age::NewIdentity();
  const std::string recipient = age::RecipientText(identity.recipient);
  PF_ASSIGN_OR_RETURN(const LockedMemory secret, age::IdentityText(identity));
  const std::string comment = absl::StrCat("# public key: ", recipient, "\n");
  PF_ASSIGN_OR_RETURN(LockedMemory text, LockedMemory::Allocate(comment.size() + secret.size() + 1));
  char* end = std::copy(comment.begin(), comment.end(), text.data());
  end = std::copy(secret.bytes().begin(), secret.bytes().end(), end);
  *end = '\n';
  PF_RETURN_IF_ERROR(files.WritePrivateFile(options.out, text.bytes()));
  if (options.json) {
    JsonWriter json(console.out);
    json.BeginObject();
    json.Key("out").Text(options.out);
    json.Key("public_key").Text(recipient);
    json.End();
  } else {
    console.out << "wrote '" << Printable(options.out)
                << "', which only you can read; keep it\npublic key: " << recipient << "\n";
  }
  return absl::OkStatus();
}

// Returns, for example, "X25519" or "scrypt, work factor 2^18"; other types with all their arguments.
std::string RecipientLine(const age::Stanza& stanza) {
  if (age::IsForPassphrase(stanza))
    return absl::StrCat("a passphrase (scrypt, work factor 2^", stanza.arguments[2], ")");
  if (stanza.arguments[0] == "X25519") return "a public key (X25519)";
  return absl::StrCat(absl::StrJoin(stanza.arguments, " "), ", which is not known here");
}

absl::Status Inspect(const EncryptModelOptions& options, FileSystem& files, Console& console) {
  PF_ASSIGN_OR_RETURN(std::shared_ptr<const ByteSource> source, OpenInput(options.in, files));
  const uint64_t file_bytes = source->size();
  const absl::StatusOr<AgeFile> file = InspectAge(std::move(source));
  if (!file.ok()) return Annotate(file.status(), absl::StrCat("'", options.in, "'"));
  if (options.json) {
    JsonWriter json(console.out);
    json.BeginObject();
    json.Key("version").Text("v1");
    json.Key("armored").Bool(file->is_armored);
    json.Key("recipients").BeginArray();
    for (const age::Stanza& stanza : file->header.stanzas) {
      json.BeginObject();
      json.Key("type").Text(stanza.arguments[0]);
      json.Key("arguments").BeginArray();
      for (size_t i = 1; i < stanza.arguments.size(); ++i) json.Text(stanza.arguments[i]);
      json.End();
      json.End();
    }
    json.End();
    json.Key("file_bytes").Count(file_bytes);
    json.Key("header_bytes").Count(file->header.size);
    json.Key("content_bytes").Count(file->layout.plain_bytes);
    json.Key("chunks").Count(file->layout.chunks);
    json.End();
    return absl::OkStatus();
  }
  console.out << "age-encryption.org/v1, " << (file->is_armored ? "as text" : "binary") << ", "
              << FormatBytesExactly(file_bytes) << "\nencrypted for\n";
  for (const age::Stanza& stanza : file->header.stanzas)
    console.out << "  " << Printable(RecipientLine(stanza)) << "\n";
  console.out << "content " << FormatBytesExactly(file->layout.plain_bytes) << " in "
              << FormatCount(file->layout.chunks) << (file->layout.chunks == 1 ? " chunk" : " chunks") << "\n";
  return absl::OkStatus();
}

}  // namespace

absl::Status EncryptModel(const EncryptModelOptions& options, FileSystem& files, Console& console) {
  PF_RETURN_IF_ERROR(CheckOptions(options));
  if (options.keygen) return MakeKey(options, files, console);
  if (options.inspect) return Inspect(options, files, console);
  return options.decrypt ? Decrypt(options, files, console) : Encrypt(options, files, console);
}

Tool EncryptModelTool() {
  return DefineTool<EncryptModelOptions>(
      "encrypt_model", "encrypts and decrypts models in the age format, and makes keys",
      {{"Make a private key, and print its public key.", "--keygen --out=key.txt"},
       {"Encrypt for two recipients.", "model.pb model.pb.age --recipient=age1... --recipient=age1..."},
       {"Decrypt. The other tools also read encrypted files, with the same --identity.",
        "--decrypt model.pb.age model.pb --identity=key.txt"}},
      &DefineFlags, &EncryptModel);
}

}  // namespace permafrost
