// The primitives under age, from libsodium: nothing else includes it.
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

// N bytes that are wiped when they go.
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

using Key = SecretArray<32>;      // Of the cipher, of the MAC, and private ones.
using FileKey = SecretArray<16>;  // What a header hands to each recipient.
using Nonce = std::array<uint8_t, 12>;

inline constexpr size_t kPointBytes = 32;  // Of a public key.
inline constexpr size_t kTagBytes = 16;    // By which a sealed text is longer.

// To be called before anything else here, by any thread, as often as one likes. Internal: the library has no source of
// random numbers.
absl::Status PrepareCrypto();

void FillRandom(uint8_t* bytes, size_t size);

// HMAC-SHA-256.
std::string Hmac(absl::string_view key, absl::string_view message);
// HKDF-SHA-256 (RFC 5869) with 32 bytes of output.
Key Hkdf(absl::string_view secret, absl::string_view salt, absl::string_view info);
// Compares without telling by its time where the two differ. REQUIRES: equal sizes.
bool IsEqual(absl::string_view a, absl::string_view b);

// X25519 (RFC 7748) with the base point: the public key of a private one.
std::string PublicKey(const Key& secret);
// X25519 of two people. False, and *shared unchanged, when the point is one of the few whose result is zero.
// REQUIRES: a point of kPointBytes.
bool Agree(const Key& secret, absl::string_view point, Key* shared);

// scrypt (RFC 7914) with N = 2^`log_work`, r = 8, p = 1, which takes 2^(log_work + 10) bytes of memory for a while.
// ResourceExhausted: there is not so much.
absl::StatusOr<Key> Scrypt(absl::string_view passphrase, absl::string_view salt, int log_work);

// ChaCha20-Poly1305 (RFC 8439) without associated data. `sealed` has room for plain.size() + kTagBytes, `plain` for
// sealed.size() - kTagBytes; Open returns false, having written nothing of use, for a text that Seal did not make.
// REQUIRES: sealed.size() >= kTagBytes.
void Seal(const Key& key, const Nonce& nonce, absl::string_view plain, char* sealed);
bool Open(const Key& key, const Nonce& nonce, absl::string_view sealed, char* plain);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_CRYPTO_H_
