// The cryptographic primitives of age. The implementation is the only file that includes libsodium.
#ifndef PERMAFROST_IO_FORMATS_AGE_CRYPTO_H_
#define PERMAFROST_IO_FORMATS_AGE_CRYPTO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/locked_memory.h"

namespace permafrost::age {

// N bytes that are wiped on destruction.
template <size_t N>
class SecretArray {
 public:
  SecretArray() = default;
  SecretArray(const SecretArray&) = default;
  SecretArray& operator=(const SecretArray&) = default;
  ~SecretArray() { Wipe(bytes_.data(), N); }

  uint8_t* data() { return bytes_.data(); }
  const uint8_t* data() const { return bytes_.data(); }
  absl::string_view bytes() const { return absl::string_view(reinterpret_cast<const char*>(bytes_.data()), N); }

 private:
  std::array<uint8_t, N> bytes_{};
};

using Key = SecretArray<32>;      // Keys of the cipher and the MAC, and private keys.
using FileKey = SecretArray<16>;  // The key that a header conveys to each recipient.
using Nonce = std::array<uint8_t, 12>;

inline constexpr size_t kPointBytes = 32;  // Size of a public key.
inline constexpr size_t kTagBytes = 16;    // Size by which encryption extends a text.

// Initialises the library. Must be called before any other function of this header, from any thread and any number of
// times. Returns Internal if the library has no source of random numbers.
absl::Status PrepareCrypto();

void FillRandom(uint8_t* bytes, size_t size);

// Returns the SHA-256 of the bytes (FIPS 180-4), 32 bytes. Needs no PrepareCrypto().
std::string Sha256(absl::string_view bytes);
// Computes HMAC-SHA-256.
std::string Hmac(absl::string_view key, absl::string_view message);
// Computes HKDF-SHA-256 (RFC 5869) with 32 bytes of output.
Key Hkdf(absl::string_view secret, absl::string_view salt, absl::string_view info);
// Compares in constant time. REQUIRES: equal sizes.
bool IsEqual(absl::string_view a, absl::string_view b);

// Returns the public key of a private key: X25519 (RFC 7748) with the base point.
std::string PublicKey(const Key& secret);
// Computes the shared secret of X25519. Returns false, without changing *shared, for a point of low order, whose result
// is zero. REQUIRES: `point` has kPointBytes bytes.
bool Agree(const Key& secret, absl::string_view point, Key* shared);

// Computes scrypt (RFC 7914) with N = 2^`log_work`, r = 8, p = 1. Temporarily uses 2^(log_work + 10) bytes of memory.
// Returns ResourceExhausted if there is not enough memory.
absl::StatusOr<Key> Scrypt(absl::string_view passphrase, absl::string_view salt, int log_work);

// Encrypt and decrypt with ChaCha20-Poly1305 (RFC 8439) without associated data. Seal writes plain.size() + kTagBytes
// bytes to `sealed`; Open writes sealed.size() - kTagBytes bytes to `plain`. Open returns false, with `plain`
// unspecified, if the text is not authentic. REQUIRES: sealed.size() >= kTagBytes.
void Seal(const Key& key, const Nonce& nonce, absl::string_view plain, char* sealed);
bool Open(const Key& key, const Nonce& nonce, absl::string_view sealed, char* plain);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_CRYPTO_H_
