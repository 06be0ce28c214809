// Implements the cryptographic primitives with libsodium.
#include "io/formats/age/crypto.h"

#include <sodium.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace permafrost::age {
namespace {

const uint8_t* Bytes(absl::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }

static_assert(crypto_auth_hmacsha256_BYTES == 32);
static_assert(crypto_scalarmult_BYTES == kPointBytes && crypto_scalarmult_SCALARBYTES == 32);
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == kTagBytes);
static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == std::tuple_size_v<Nonce>);

class Hmacer {
 public:
  explicit Hmacer(absl::string_view key) { crypto_auth_hmacsha256_init(&state_, Bytes(key), key.size()); }
  ~Hmacer() { Wipe(&state_, sizeof(state_)); }
  void Add(absl::string_view text) { crypto_auth_hmacsha256_update(&state_, Bytes(text), text.size()); }
  void Finish(uint8_t* result) { crypto_auth_hmacsha256_final(&state_, result); }

 private:
  crypto_auth_hmacsha256_state state_;
};

}  // namespace

absl::Status PrepareCrypto() {
  if (sodium_init() >= 0) return absl::OkStatus();
  return absl::InternalError("libsodium cannot be initialised: found no source of random numbers");
}

void FillRandom(uint8_t* bytes, size_t size) { randombytes_buf(bytes, size); }

std::string Sha256(absl::string_view bytes) {
  std::string hash(crypto_hash_sha256_BYTES, '\0');
  crypto_hash_sha256(reinterpret_cast<uint8_t*>(hash.data()), Bytes(bytes), bytes.size());
  return hash;
}

std::string Hmac(absl::string_view key, absl::string_view message) {
  std::string mac(crypto_auth_hmacsha256_BYTES, '\0');
  Hmacer hmacer(key);
  hmacer.Add(message);
  hmacer.Finish(reinterpret_cast<uint8_t*>(mac.data()));
  return mac;
}

Key Hkdf(absl::string_view secret, absl::string_view salt, absl::string_view info) {
  Key extracted;
  Hmacer extract(salt);
  extract.Add(secret);
  extract.Finish(extracted.data());
  // One block of output suffices for the 32 bytes.
  Key expanded;
  Hmacer expand(extracted.bytes());
  expand.Add(info);
  expand.Add("\x01");
  expand.Finish(expanded.data());
  return expanded;
}

bool IsEqual(absl::string_view a, absl::string_view b) { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

std::string PublicKey(const Key& secret) {
  std::string point(kPointBytes, '\0');
  // Cannot fail for the base point.
  (void)crypto_scalarmult_base(reinterpret_cast<uint8_t*>(point.data()), secret.data());
  return point;
}

bool Agree(const Key& secret, absl::string_view point, Key* shared) {
  Key result;
  if (crypto_scalarmult(result.data(), secret.data(), Bytes(point)) != 0) return false;
  if (sodium_is_zero(result.data(), 32) != 0) return false;
  *shared = result;
  return true;
}

absl::StatusOr<Key> Scrypt(absl::string_view passphrase, absl::string_view salt, int log_work) {
  constexpr uint32_t kBlockSize = 8, kParallelism = 1;
  Key key;
  if (crypto_pwhash_scryptsalsa208sha256_ll(Bytes(passphrase), passphrase.size(), Bytes(salt), salt.size(),
                                            uint64_t{1} << log_work, kBlockSize, kParallelism, key.data(), 32) == 0) {
    return key;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot allocate ", uint64_t{128} * kBlockSize << log_work, " bytes to try the passphrase"));
}

void Seal(const Key& key, const Nonce& nonce, absl::string_view plain, char* sealed) {
  (void)crypto_aead_chacha20poly1305_ietf_encrypt(reinterpret_cast<uint8_t*>(sealed), nullptr, Bytes(plain),
                                                  plain.size(), nullptr, 0, nullptr, nonce.data(), key.data());
}

bool Open(const Key& key, const Nonce& nonce, absl::string_view sealed, char* plain) {
  return crypto_aead_chacha20poly1305_ietf_decrypt(reinterpret_cast<uint8_t*>(plain), nullptr, nullptr, Bytes(sealed),
                                                   sealed.size(), nullptr, 0, nonce.data(), key.data()) == 0;
}

}  // namespace permafrost::age
