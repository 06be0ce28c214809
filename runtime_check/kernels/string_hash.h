// Hashes of strings that TensorFlow's ops promise to keep: the same in every version and on every machine.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_STRING_HASH_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_STRING_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace permafrost {

// Fingerprint64 of FarmHash (Pike, 2014).
uint64_t FarmFingerprint(absl::string_view text);
// SipHash-2-4 (Aumasson and Bernstein, 2012) under a key of 128 bits.
uint64_t SipHash(uint64_t key0, uint64_t key1, absl::string_view text);
// MurmurHash64A (Appleby, 2008) with TensorFlow's seed.
uint64_t MurmurHash(absl::string_view text);
// One fingerprint of two, in this order.
uint64_t JoinFingerprints(uint64_t first, uint64_t second);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_STRING_HASH_H_
