// Tests of the primitives and encodings against published vectors: RFC 5869, 7748, 7914, BIP 173 and age's
// specification.
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/age/crypto.h"
#include "io/formats/age/encoding.h"
#include "io/formats/age/keys.h"

namespace permafrost::age {
namespace {

using absl::BytesToHexString;
using absl::HexStringToBytes;
using ::testing::HasSubstr;
using ::testing::Not;

Key KeyOf(absl::string_view hex) {
  const std::string bytes = HexStringToBytes(hex);
  Key key;
  for (size_t i = 0; i < 32; ++i) key.data()[i] = static_cast<uint8_t>(bytes[i]);
  return key;
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

class PrimitivesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(PrepareCrypto().ok()); }
};

TEST_F(PrimitivesTest, HkdfIsThatOfRfc5869) {
  const std::string secret(22, '\x0b');
  EXPECT_EQ(BytesToHexString(
                Hkdf(secret, HexStringToBytes("000102030405060708090a0b0c"), HexStringToBytes("f0f1f2f3f4f5f6f7f8f9"))
                    .bytes()),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
  EXPECT_EQ(BytesToHexString(Hkdf(secret, "", "").bytes()),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
}

TEST_F(PrimitivesTest, AgreementIsThatOfRfc7748) {
  const Key alice = KeyOf("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
  const Key bob = KeyOf("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
  EXPECT_EQ(BytesToHexString(PublicKey(alice)), "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
  EXPECT_EQ(BytesToHexString(PublicKey(bob)), "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
  Key shared;
  ASSERT_TRUE(Agree(alice, PublicKey(bob), &shared));
  EXPECT_EQ(BytesToHexString(shared.bytes()), "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
}

// Points of Curve25519 whose order divides 8: the result is zero for every private key.
TEST_F(PrimitivesTest, AgreementRefusesPointsOfLowOrder) {
  for (const char* point : {"0000000000000000000000000000000000000000000000000000000000000000",
                            "0100000000000000000000000000000000000000000000000000000000000000",
                            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
                            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"}) {
    Key shared;
    EXPECT_FALSE(Agree(NewIdentity().secret, HexStringToBytes(point), &shared)) << point;
  }
}

TEST_F(PrimitivesTest, ScryptIsThatOfRfc7914) {
  EXPECT_EQ(BytesToHexString(Scrypt("pleaseletmein", "SodiumChloride", 14)->bytes()),
            "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2");
}

TEST_F(PrimitivesTest, SealedTextsOpenOnlyWithTheirKey) {
  const Key key = KeyOf("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
  const std::string plain = "frozen";
  std::string sealed(plain.size() + kTagBytes, '\0'), opened(plain.size(), '\0');
  Nonce nonce{};
  Seal(key, nonce, plain, sealed.data());
  EXPECT_THAT(sealed, Not(HasSubstr(plain)));
  ASSERT_TRUE(Open(key, nonce, sealed, opened.data()));
  EXPECT_EQ(opened, plain);
  nonce[11] = 1;
  EXPECT_FALSE(Open(key, nonce, sealed, opened.data()));
  EXPECT_FALSE(Open(Key(), Nonce{}, sealed, opened.data()));
  EXPECT_TRUE(IsEqual("abc", "abc"));
  EXPECT_FALSE(IsEqual("abc", "abd"));
}

TEST(Base64, AcceptsOnlyCanonicalText) {
  for (const auto& [text, bytes] :
       {std::pair("", ""), {"Zg", "f"}, {"Zm8", "fo"}, {"Zm9v", "foo"}, {"Zm9vYg", "foob"}}) {
    EXPECT_EQ(Base64(bytes), text);
    EXPECT_EQ(*FromBase64(text), bytes);
  }
  EXPECT_EQ(Base64("\xfb\xff"), "+/8");
  EXPECT_THAT(Message(FromBase64("Zg==").status()), HasSubstr("with '='"));
  EXPECT_THAT(Message(FromBase64("Zh").status()), HasSubstr("unused bits"));
  EXPECT_THAT(Message(FromBase64("Zm9").status()), HasSubstr("unused bits"));
  EXPECT_THAT(Message(FromBase64("Z").status()), HasSubstr("within a byte"));
  EXPECT_THAT(Message(FromBase64("Zm9vY").status()), HasSubstr("within a byte"));
  for (const char* bad : {"Zm9v\n", "Zm-v", "Zm_v", " Zg", "Zg\xc3\xa9x"}) {
    EXPECT_THAT(Message(FromBase64(bad).status()), HasSubstr("not of base64")) << bad;
  }
}

TEST(Bech32, IsThatOfBip173) {
  for (const char* text : {"A12UEL5L", "a12uel5l",
                           "an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1tt5tgs",
                           "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw",
                           "split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w", "?1ezyfcl"}) {
    const absl::StatusOr<Bech32Text> decoded = FromBech32(text);
    ASSERT_TRUE(decoded.ok()) << text << ": " << decoded.status();
    EXPECT_EQ(Bech32(decoded->prefix, decoded->bytes), absl::AsciiStrToLower(text));
  }
  EXPECT_EQ(BytesToHexString(FromBech32("abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw")->bytes),
            "00443214c74254b635cf84653a56d7c675be77df");
  for (const auto& [text, why] : {std::pair("A1G7SGD8", "checksum"),
                                  {"10a06t8", "no prefix"},
                                  {"1qzzfhee", "no prefix"},
                                  {"x1b4n0q5v", "not of bech32"},
                                  {"li1dgmt3", "too few"},
                                  {"pzry9x0s0muk", "no prefix"},
                                  {"a12UEL5L", "mixed"},
                                  {"a12uel5m", "checksum"},
                                  {"", "no prefix"},
                                  {"a1", "too few"},
                                  {"a\x7f"
                                   "12uel5l",
                                   "not printable"},
                                  {"a 12uel5l", "not printable"}}) {
    EXPECT_THAT(Message(FromBech32(text).status()), HasSubstr(why)) << text;
  }
}

TEST(Bech32, RejectsNonZeroUnusedBits) {
  // Five zero characters are 25 bits: three bytes and one unused bit. Changing the last character sets that bit.
  const std::string fits = Bech32("x", std::string(3, '\0'));
  EXPECT_EQ(fits.substr(0, 7), "x1qqqqq");
  EXPECT_EQ(FromBech32(fits)->bytes, std::string(3, '\0'));
  EXPECT_FALSE(FromBech32("x1qqqqp" + fits.substr(7)).ok());
}

TEST(Keys, AreThoseOfTheSpecification) {
  const char kIdentity[] = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
  const char kRecipient[] = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
  const absl::StatusOr<std::vector<Identity>> identities =
      ParseIdentities(std::string("# created: today\r\n\n") + kIdentity + "\n");
  ASSERT_TRUE(identities.ok()) << identities.status();
  ASSERT_EQ(identities->size(), 1u);
  EXPECT_EQ(identities->front().secret.bytes(), std::string(32, 'B'));
  EXPECT_EQ(RecipientText(identities->front().recipient), kRecipient);
  EXPECT_EQ(IdentityText(identities->front())->bytes(), kIdentity);
  EXPECT_EQ(ParseRecipient(kRecipient)->point, identities->front().recipient.point);
  EXPECT_EQ(ParseRecipients(std::string("# us\n") + kRecipient + "\r\n\n" + kRecipient)->size(), 2u);
}

TEST(Keys, AreRejectedWithoutShowingThem) {
  const char* const kSecret = "GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFP";
  const std::pair<std::string, const char*> cases[] = {
      {std::string("AGE-SECRET-KEY-1") + kSecret + "Q4EGAEY\n", "line 1: found a wrong checksum"},
      {std::string("#\n\nage-secret-key-1") + absl::AsciiStrToLower(kSecret) + "q4egaex\n", "line 3: found neither"},
      {std::string("AGE-SECRET-KEY-1g") + kSecret, "line 1: found lower and upper case mixed"},
      {"age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj", "found a public key"},
      {"AGE-PLUGIN-YUBIKEY-1QQQQ", "plugin"},
      {"AGE-SECRET-KEY-PQ-1QQQQ", "post-quantum"},
      {"age-encryption.org/v1\n", "encrypted identity file"},
      {"-----BEGIN OPENSSH PRIVATE KEY-----\n", "SSH key"},
      {"# nothing\n", "found no private key"},
      {"", "found no private key"},
  };
  for (const auto& [text, expected] : cases) {
    const absl::Status status = ParseIdentities(text).status();
    EXPECT_THAT(Message(status), HasSubstr(expected));
    EXPECT_THAT(absl::AsciiStrToUpper(status.message()), Not(HasSubstr("FPYYSJZ")));
  }
  for (const auto& [text, expected] : {std::pair("AGE-SECRET-KEY-1GFPYYSJZ", "found a private key"),
                                       {"ssh-ed25519 AAAA", "SSH key"},
                                       {"age1", "too few characters"},
                                       {"AGE1ZVKYG2LQZRAA2LNJVQEJ32NKUU0UES2S82HZRYE869XEEXVN73EQUNUJWJ", "kind"},
                                       {"split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w", "kind"}}) {
    EXPECT_THAT(Message(ParseRecipient(text).status()), HasSubstr(expected)) << text;
  }
  EXPECT_THAT(Message(ParseRecipients("\n#x\nage1x\n").status()), HasSubstr("line 3: public key 'age1x': "));
  EXPECT_THAT(Message(ParseRecipients("").status()), HasSubstr("no public key"));
}

}  // namespace
}  // namespace permafrost::age
