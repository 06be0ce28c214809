// Tests of valid and invalid age files. Covers the situations of the format's public test vectors.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/age/encoding.h"
#include "tests/formats/age/file_builder.h"

namespace permafrost::age {
namespace {

using ::testing::HasSubstr;

constexpr char kPlain[] = "some plain text";

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::string Passphrase(absl::string_view work = "10") {
  const Stanza stanza = *WrapWithPassphrase("winter", 10, TestFileKey());
  return StanzaText({{stanza.arguments[0], stanza.arguments[1], std::string(work)}, stanza.body});
}

// Returns a file with these recipients and a valid payload.
std::string With(absl::string_view stanzas) { return HeaderText(stanzas) + PayloadOf(kPlain); }
// Returns a file with another header than `HeaderText` makes.
std::string WithHeader(absl::string_view header) { return std::string(header) + PayloadOf(kPlain); }
std::string WithPayload(const std::vector<ChunkToSeal>& chunks) {
  return HeaderText(X25519Text()) + PayloadText(chunks);
}

// The recipient of the files below.
const std::string& Good() {
  static const std::string* const kGood = new std::string(X25519Text());
  return *kGood;
}

// Replaces text in a header for the test identity without updating the MAC.
std::string Changed(absl::string_view from, absl::string_view to) {
  const std::string header = HeaderText(Good());
  const std::string changed = absl::StrReplaceAll(header, {{from, to}});
  EXPECT_NE(header, changed);
  return WithHeader(changed);
}

std::string X25519Arguments(std::vector<std::string> arguments, size_t body = 32) {
  arguments.insert(arguments.begin(), "X25519");
  return StanzaText({arguments, std::string(body, 'x')});
}

TEST(AgeFormat, OpensWellFormedFiles) {
  const std::string other = X25519Text(OtherIdentity().recipient);
  const std::string grease = "-> grease-1 ~!#$%&'()*+,-./:;<=>?@[]^_`{|}\n\n-> x\nAAAA\n";
  for (const auto& [name, file] : std::vector<std::pair<std::string, std::string>>{
           {"plain", With(X25519Text())},
           {"several recipients", With(absl::StrCat(other, X25519Text(), other))},
           {"unknown recipients", With(absl::StrCat(grease, X25519Text(), grease))},
           {"a body of whole lines", With(absl::StrCat(StanzaText({{"long"}, std::string(48, 'a')}), X25519Text()))},
           {"a body of many lines", With(absl::StrCat(StanzaText({{"long"}, std::string(500, 'a')}), X25519Text()))},
           {"a type that differs in case", With(absl::StrCat("-> x25519 AAAA\n\n", X25519Text()))},
           {"armour", Armored(With(X25519Text()))},
           {"armour with CR LF", absl::StrReplaceAll(Armored(With(X25519Text())), {{"\n", "\r\n"}})},
           {"armour with space round it", absl::StrCat(" \n\t\n", Armored(With(X25519Text())), "\n\n \n")}}) {
    const absl::StatusOr<std::string> plain = Decrypt(file);
    ASSERT_TRUE(plain.ok()) << name << ": " << plain.status();
    EXPECT_EQ(*plain, kPlain) << name;
  }
  EXPECT_EQ(*Decrypt(With(Passphrase()), KeysInMemory("", "winter")), kPlain);
}

TEST(AgeFormat, PayloadsOfEveryLengthOpen) {
  for (const size_t size : {size_t{0}, size_t{1}, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1, 3 * kChunkBytes}) {
    const std::string plain = Noise(size);
    const absl::StatusOr<std::string> opened = Decrypt(FileOf(plain));
    ASSERT_TRUE(opened.ok()) << size << ": " << opened.status();
    EXPECT_EQ(*opened, plain) << size;
  }
}

struct Refused {
  std::string name;
  std::string file;
  absl::StatusCode code;
  std::string message;
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

class AgeRefusesTest : public ::testing::TestWithParam<Refused> {};

TEST_P(AgeRefusesTest, WithAMessage) {
  const absl::Status status = Decrypt(GetParam().file, KeysInMemory(kTestIdentity, "winter")).status();
  EXPECT_EQ(status.code(), GetParam().code) << status;
  EXPECT_THAT(Message(status), HasSubstr(GetParam().message));
}

std::vector<Refused> BadHeaders() {
  constexpr auto kDamaged = absl::StatusCode::kDataLoss;
  const std::string good = Good();
  const std::string share = good.substr(10, 43);
  const std::string header = HeaderText(good);
  const std::string mac = header.substr(header.size() - 44, 43);
  const std::string start = "age-encryption.org/v1\n";
  return {
      {"other_version", Changed("org/v1", "org/v2"), absl::StatusCode::kUnimplemented, "version 'v2'"},
      {"version_crlf", Changed("org/v1\n", "org/v1\r\n"), kDamaged, "found 'age-encryption.org/v1\\r'"},
      {"version_space", Changed("org/v1\n", "org/v1 \n"), kDamaged, "byte 0"},
      {"no_stanza", WithHeader(start + "--- " + mac + "\n"), kDamaged, "byte 0: found no recipient"},
      {"empty", "", kDamaged, "the file is truncated within the header"},
      {"stanza_bad_start", Changed("-> ", "->"), kDamaged, "expected a line that begins with '-> '"},
      {"stanza_no_arguments", Changed("-> X25519 " + share, "-> "), kDamaged, "found the argument ''"},
      {"stanza_empty_argument", Changed("-> X25519 ", "-> X25519  "), kDamaged, "found the argument ''"},
      {"stanza_trailing_space", Changed(share, share + " "), kDamaged, "found the argument ''"},
      {"stanza_character", Changed("X25519", "X2551\x7f"), kDamaged, "found the argument 'X2551\\x7f'"},
      {"stanza_utf8", Changed("X25519", "X2551\xc3\xa9"), kDamaged, "expected printable"},
      {"stanza_spurious_cr", Changed(share + "\n", share + "\r\n"), kDamaged, "found the argument"},
      {"stanza_body_crlf", WithHeader(start + "-> a\nAAAA\r\n--- " + mac + "\n"), kDamaged, "not of base64"},
      {"stanza_padding", WithHeader(start + "-> a\nAA==\n--- " + mac + "\n"), kDamaged, "base64 with '='"},
      {"stanza_not_canonical", WithHeader(start + "-> a\nAB\n--- " + mac + "\n"), kDamaged,
       "byte 27: found base64 whose"},
      {"stanza_body_within_byte", WithHeader(start + "-> a\nA\n--- " + mac + "\n"), kDamaged,
       "is truncated within a byte"},
      {"stanza_long_line", WithHeader(start + "-> a\n" + std::string(68, 'A') + "\n\n--- " + mac + "\n"), kDamaged,
       "found a line of 68 columns"},
      {"stanza_short_lines", WithHeader(start + "-> a\nAAAA\nAAAA\n--- " + mac + "\n"), kDamaged,
       "found 'AAAA', expected a line that begins"},
      {"stanza_no_last_line", WithHeader(start + "-> a\n" + std::string(64, 'A') + "\n--- " + mac + "\n"), kDamaged,
       "not of base64"},
      {"stanza_no_body", WithHeader(start + "-> a\n--- " + mac + "\n"), kDamaged, "not of base64"},
      {"empty_line", WithHeader(start + "\n" + good + "--- " + mac + "\n"), kDamaged, "byte 22: found ''"},
      {"mac_missing", WithHeader(start + good + "---\n"), kDamaged, "found no space after '---'"},
      {"mac_empty", WithHeader(start + good + "--- \n"), kDamaged, "found a checksum of 0 bytes"},
      {"mac_no_space", Changed("--- ", "---"), kDamaged, "found no space after '---'"},
      {"mac_extra_space", Changed("--- ", "---  "), kDamaged, "not of base64"},
      {"mac_trailing_space", Changed(mac, mac + " "), kDamaged, "not of base64"},
      {"mac_short", Changed(mac, mac.substr(0, 42)), kDamaged, "byte"},
      {"mac_long", Changed(mac, mac + "A"), kDamaged, "byte"},
      {"mac_crlf", Changed(mac + "\n", mac + "\r\n"), kDamaged, "not of base64"},
      {"mac_wrong", WithHeader(start + good + "--- " + std::string(43, 'A') + "\n"), kDamaged,
       "found a wrong checksum: the header was modified"},
      {"mac_of_another_header", WithHeader(start + "-> grease\n\n" + good + "--- " + mac + "\n"), kDamaged,
       "the header was modified"},
      {"x25519_extra_argument", With(X25519Arguments({share, "1"})), kDamaged, "found 2 arguments, expected 1"},
      {"x25519_no_argument", With(X25519Arguments({})), kDamaged, "found 0 arguments, expected 1"},
      {"x25519_short_share", With(X25519Arguments({Base64(std::string(31, 'x'))})), kDamaged, "found 31 bytes"},
      {"x25519_long_share", With(X25519Arguments({Base64(std::string(33, 'x'))})), kDamaged, "found 33 bytes"},
      {"x25519_share_not_canonical", With(X25519Arguments({std::string(42, 'A') + "B"})), kDamaged, "unused bits"},
      {"x25519_long_file_key", With(X25519Arguments({share}, 40)), kDamaged, "found a body of 40 bytes"},
      {"x25519_low_order", With(X25519Arguments({std::string(43, 'A')})), kDamaged, "low order"},
      {"x25519_bad_tag", With(X25519Arguments({share})), absl::StatusCode::kPermissionDenied,
       "none of the 1 private keys"},
      {"x25519_no_match", With(X25519Text(OtherIdentity().recipient)), absl::StatusCode::kPermissionDenied,
       "none of the 1 private keys of the test's keys opens it"},
      {"scrypt_and_x25519", With(Passphrase() + good), kDamaged, "found a passphrase among 2 recipients"},
      {"x25519_and_scrypt", With(good + Passphrase()), kDamaged, "found a passphrase among 2 recipients"},
      {"scrypt_twice", With(Passphrase() + Passphrase()), kDamaged, "found a passphrase among 2 recipients"},
      {"scrypt_and_unknown", With(Passphrase() + "-> grease\n\n"), kDamaged, "found a passphrase among 2 recipients"},
      {"scrypt_no_work", With(StanzaText({{"scrypt", Base64(std::string(16, 's'))}, std::string(32, 'x')})), kDamaged,
       "found 1 arguments, expected 2"},
      {"scrypt_extra_argument", With(Passphrase("10 10")), kDamaged, "found 3 arguments, expected 2"},
      {"scrypt_short_salt", With(StanzaText({{"scrypt", Base64("salt"), "10"}, std::string(32, 'x')})), kDamaged,
       "found 4 bytes, expected 16"},
      {"scrypt_long_file_key", With(StanzaText({{"scrypt", Base64(std::string(16, 's')), "10"}, std::string(33, 'x')})),
       kDamaged, "found a body of 33 bytes"},
      {"scrypt_bad_tag", With(StanzaText({{"scrypt", Base64(std::string(16, 's')), "10"}, std::string(32, 'x')})),
       absl::StatusCode::kPermissionDenied, "the passphrase of the test's passphrase does not open it"},
      {"scrypt_work_wrong", With(Passphrase("9")), absl::StatusCode::kPermissionDenied, "does not open it"},
      {"scrypt_work_zero", With(Passphrase("0")), kDamaged, "work factor '0'"},
      {"scrypt_work_leading_zero", With(Passphrase("010")), kDamaged, "work factor '010'"},
      {"scrypt_work_plus", With(Passphrase("+10")), kDamaged, "work factor '+10'"},
      {"scrypt_work_negative", With(Passphrase("-10")), kDamaged, "work factor '-10'"},
      {"scrypt_work_hex", With(Passphrase("0xa")), kDamaged, "work factor '0xa'"},
      {"scrypt_work_garbage", With(Passphrase("10a")), kDamaged, "work factor '10a'"},
  };
}

std::vector<Refused> HostileWorkFactors() {
  std::vector<Refused> cases;
  for (const char* work : {"21", "22", "23", "31", "32", "63", "64", "255", "4294967306", "18446744073709551626",
                           "99999999999999999999999999999999"}) {
    cases.push_back({absl::StrCat("scrypt_work_", work), With(Passphrase(work)), absl::StatusCode::kResourceExhausted,
                     absl::StrCat("found the work factor 2^", work, ", expected at most 2^20")});
  }
  return cases;
}

std::vector<Refused> BadPayloads() {
  constexpr auto kDamaged = absl::StatusCode::kDataLoss;
  const std::string full(kChunkBytes, 'a');
  const std::string header = HeaderText(X25519Text());
  const std::string nonce = PayloadText({});
  std::string bad_tag = PayloadOf("text");
  bad_tag.back() ^= 1;
  return {
      {"no_nonce", header, kDamaged, "it is truncated"},
      {"short_nonce", header + nonce.substr(0, 15), kDamaged, "it is truncated"},
      {"no_chunk", header + nonce, kDamaged, "it is truncated"},
      {"short_tag", header + PayloadOf("").substr(0, 31), kDamaged, "it is truncated"},
      {"bad_tag", header + bad_tag, kDamaged, "chunk 1 of 1, byte 184: found bytes that are not authentic"},
      {"not_final", WithPayload({{"text", 0, false}}), kDamaged, "chunk 1 of 1"},
      {"not_final_full", WithPayload({{full, 0, false}}), kDamaged, "chunk 1 of 1"},
      {"not_final_two", WithPayload({{full, 0, false}, {"text", 1, false}}), kDamaged, "chunk 2 of 2"},
      {"two_final", WithPayload({{full, 0, true}, {"text", 1, true}}), kDamaged, "chunk 1 of 2"},
      {"two_final_full", WithPayload({{full, 0, true}, {full, 1, true}}), kDamaged, "chunk 1 of 2"},
      {"empty_last", WithPayload({{full, 0, false}, {"", 1, true}}), kDamaged, "a last chunk, expected at least 17"},
      {"short_first", WithPayload({{"short", 0, false}, {"text", 1, true}}), kDamaged, "not authentic"},
      {"wrong_number", WithPayload({{"text", 1, true}}), kDamaged, "chunk 1 of 1"},
      {"number_again", WithPayload({{full, 0, false}, {full, 0, false}, {"text", 2, true}}), kDamaged, "chunk 2 of 3"},
      {"too_long_chunk", WithPayload({{full + "a", 0, true}}), kDamaged, "is truncated"},
      {"trailing_byte", FileOf("text") + "x", kDamaged, "chunk 1 of 1"},
      {"trailing_zeros", FileOf("text") + std::string(kSealedChunkBytes, '\0'), kDamaged, "chunk 2 of 2"},
      {"two_files", FileOf("text") + FileOf("text"), kDamaged, "not authentic"},
  };
}

std::vector<Refused> BadArmor() {
  constexpr auto kDamaged = absl::StatusCode::kDataLoss;
  const std::string good = Armored(FileOf(kPlain));
  const auto changed = [&](absl::string_view from, absl::string_view to) {
    const std::string text = absl::StrReplaceAll(good, {{from, to}});
    EXPECT_NE(text, good);
    return text;
  };
  const std::string end = "-----END AGE ENCRYPTED FILE-----";
  const std::string foreign = Armored("frozen\n");
  return {
      {"armor_no_end", changed(end + "\n", ""), kDamaged, "the text has no"},
      {"armor_only_begin", "-----BEGIN AGE ENCRYPTED FILE-----\n", kDamaged, "line 1: the text has no"},
      {"armor_empty", "-----BEGIN AGE ENCRYPTED FILE-----\n" + end + "\n", kDamaged, "found no content"},
      {"armor_other_end", changed(end, "-----END AGE MESSAGE-----"), kDamaged, "the text has no"},
      {"armor_lowercase_end", changed(end, "-----end age encrypted file-----"), kDamaged, "the text has no"},
      {"armor_text_after", good + "x\n", kDamaged, "armour, line"},
      {"armor_headers", changed("FILE-----\nYWdl", "FILE-----\nVersion: 1\n\nYWdl"), kDamaged,
       "line 2: found a line of 10"},
      {"armor_empty_line", changed("FILE-----\nYWdl", "FILE-----\n\nYWdl"), kDamaged, "line 2: found a line of 0"},
      {"armor_empty_line_at_end", changed("\n" + end, "\n\n" + end), kDamaged, "armour, line"},
      {"armor_space_in_line", changed("YWdlLW", "YWdl LW"), kDamaged, "line 2: found a line of 65"},
      {"armor_space_at_end", changed("FILE-----\nYWdl", "FILE-----\n YWdl"), kDamaged, "line 2"},
      {"armor_character", changed("YWdlLW", "YWd*LW"), kDamaged, "line 2: found a character"},
      {"armor_url_alphabet", changed("YWdlLW", "YWd_LW"), kDamaged, "line 2: found a character"},
      {"armor_no_padding", changed("=\n", "\n"), kDamaged, "armour, line"},
      {"armor_short_line", "-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\nYWdl\n" + end, kDamaged,
       "a line after a short one"},
      {"armor_padding_within", "-----BEGIN AGE ENCRYPTED FILE-----\nYQ==\nYWdl\n" + end, kDamaged, "after a short one"},
      {"armor_long_line", "-----BEGIN AGE ENCRYPTED FILE-----\n" + std::string(68, 'A') + "\n" + end, kDamaged,
       "found a line of 68 columns"},
      {"armor_not_canonical", "-----BEGIN AGE ENCRYPTED FILE-----\nYR==\n" + end, kDamaged, "unused bits"},
      {"armor_text_in_first_line", "-----BEGIN AGE ENCRYPTED FILE-----x\nYWdl\n" + end, kDamaged,
       "line 1: found text after"},
      {"armor_of_something_else", foreign, kDamaged, "expected 'age-encryption.org/v1'"},
  };
}

std::string NameOf(const ::testing::TestParamInfo<Refused>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Headers, AgeRefusesTest, ::testing::ValuesIn(BadHeaders()), NameOf);
INSTANTIATE_TEST_SUITE_P(WorkFactors, AgeRefusesTest, ::testing::ValuesIn(HostileWorkFactors()), NameOf);
INSTANTIATE_TEST_SUITE_P(Payloads, AgeRefusesTest, ::testing::ValuesIn(BadPayloads()), NameOf);
INSTANTIATE_TEST_SUITE_P(Armor, AgeRefusesTest, ::testing::ValuesIn(BadArmor()), NameOf);

TEST(AgeFormat, NamesTheMissingKey) {
  const auto message = [](const std::string& file, std::shared_ptr<KeySource> keys) {
    OpenOptions options;
    options.keys = std::move(keys);
    const absl::Status status = DecryptAge(*InspectAge(SourceOf(file)), options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return Message(status);
  };
  const std::string for_two = With(X25519Text() + "-> ssh-rsa abc\n\n");
  for (const auto& keys : {std::shared_ptr<KeySource>(), KeysInMemory("", "winter")}) {
    EXPECT_EQ(message(for_two, keys),
              "it is encrypted for 2 recipients (X25519, ssh-rsa), and no private key is given, expected "
              "--identity=FILE, --identity_fd=N or --identity_env=NAME");
  }
  for (const auto& keys : {std::shared_ptr<KeySource>(), KeysInMemory(kTestIdentity)}) {
    EXPECT_EQ(message(With(Passphrase()), keys),
              "it is encrypted with a passphrase, and none is given, expected --passphrase_env=NAME or "
              "--passphrase_fd=N");
  }
}

TEST(AgeFormat, HeaderSizeIsLimited) {
  const absl::Status status = Decrypt("age-encryption.org/v1\n-> " + std::string(2 << 20, 'x')).status();
  EXPECT_EQ(Message(status), "header, byte 22: the header has more than 1048576 bytes");
}

TEST(AgeFormat, ManyRecipientsOpen) {
  std::string stanzas;
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&stanzas, "-> grease ", i, "\n\n");
  EXPECT_EQ(*Decrypt(With(stanzas + X25519Text())), kPlain);
}

TEST(AgeEncryption, NeedsRecipientsOrAPassphrase) {
  StringSink out;
  EXPECT_THAT(Message(EncryptInto({}, &out).status()), HasSubstr("found no recipients"));
  AgeRecipients both{{TestIdentity().recipient}, std::make_shared<const LockedMemory>(*LockedMemory::CopyOf("winter"))};
  EXPECT_THAT(Message(EncryptInto(both, &out).status()), HasSubstr("expected one of the two"));
  AgeRecipients low{{Recipient{std::string(32, '\0')}}};
  EXPECT_THAT(Message(EncryptInto(low, &out).status()), HasSubstr("it is of low order"));
  AgeRecipients crowd{std::vector<Recipient>(20000, TestIdentity().recipient)};
  EXPECT_THAT(Message(EncryptInto(crowd, &out).status()), HasSubstr("found 20000 recipients"));
  EXPECT_EQ(out.text(), "");
}

TEST(AgeEncryption, OpensForEachRecipientAndIsRandomised) {
  const AgeRecipients two{{TestIdentity().recipient, OtherIdentity().recipient}};
  const absl::StatusOr<std::string> file = Encrypt(two, kPlain);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*Decrypt(*file), kPlain);
  EXPECT_EQ(*Decrypt(*file, KeysInMemory(IdentityText(OtherIdentity())->bytes())), kPlain);
  EXPECT_EQ(*Decrypt(*file, KeysInMemory(absl::StrCat(IdentityText(NewIdentity())->bytes(), "\n", kTestIdentity))),
            kPlain);
  EXPECT_NE(*file, *Encrypt(two, kPlain));
  AgeRecipients knowing;
  knowing.passphrase = std::make_shared<const LockedMemory>(*LockedMemory::CopyOf("winter"));
  knowing.log_work = 8;
  EXPECT_EQ(*Decrypt(*Encrypt(knowing, kPlain), KeysInMemory("", "winter")), kPlain);
  EXPECT_EQ(Decrypt(*Encrypt(knowing, kPlain), KeysInMemory("", "summer")).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(AgeEncryption, DoesNotDependOnTheSizesOfAppends) {
  const AgeRecipients me{{TestIdentity().recipient}};
  for (const size_t size :
       {size_t{0}, size_t{1}, kChunkBytes, 2 * kChunkBytes, 2 * kChunkBytes + 1, 200 * kChunkBytes}) {
    const std::string plain = Noise(size);
    for (const size_t piece : {size_t{1000}, kChunkBytes, kChunkBytes + 1, 3 * kChunkBytes, 300 * kChunkBytes}) {
      const std::string file = *Encrypt(me, plain, piece);
      ASSERT_EQ(file.size(), HeaderText(X25519Text()).size() + PayloadBytes(size)) << size << " by " << piece;
      ASSERT_TRUE(*Decrypt(file) == plain) << size << " by " << piece;
    }
  }
}

}  // namespace
}  // namespace permafrost::age
