// Hash functions whose results are part of TensorFlow's op definitions: equal in every version and on every machine.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_STRING_HASH_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_STRING_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace permafrost {

// Returns Fingerprint64 of FarmHash (Pike, 2014).
uint64_t FarmFingerprint(absl::string_view text);
// Returns SipHash-2-4 (Aumasson and Bernstein, 2012) with a 128-bit key.
uint64_t SipHash(uint64_t key0, uint64_t key1, absl::string_view text);
// Returns MurmurHash64A (Appleby, 2008) with TensorFlow's seed.
uint64_t MurmurHash(absl::string_view text);
// Combines two fingerprints; the order matters.
uint64_t JoinFingerprints(uint64_t first, uint64_t second);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_STRING_HASH_H_
