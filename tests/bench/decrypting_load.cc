// Compares the load time of an encrypted model with that of a plain one and with libsodium's throughput, alternating in
// one run:
//     decrypting_load MODEL FOLDER [ROUNDS]
// The encrypted copy is written to FOLDER and removed at the end.
#include <sched.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/formats/age/age.h"
#include "io/model_file.h"

namespace permafrost {
namespace {

double Seconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The key, generated for each run.
class OneKey : public KeySource {
 public:
  explicit OneKey(LockedMemory text) : text_(std::make_shared<const LockedMemory>(std::move(text))) {}
  absl::StatusOr<std::vector<GivenSecret>> Identities() override { return {{{"the key", text_}}}; }
  absl::StatusOr<std::vector<GivenSecret>> Passphrases() override { return std::vector<GivenSecret>(); }

 private:
  const std::shared_ptr<const LockedMemory> text_;
};

// Returns the seconds until the graph is loaded. *close_seconds is the time to free it, which includes wiping the
// decrypted bytes.
absl::StatusOr<double> TimeLoad(const std::string& path, const OpenOptions& options, double* close_seconds) {
  const auto start = std::chrono::steady_clock::now();
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, OpenModel(RealFileSystem(), path, options));
  const double seconds = Seconds(start);
  const auto close_start = std::chrono::steady_clock::now();
  graph = nullptr;
  *close_seconds = Seconds(close_start);
  return seconds;
}

// Returns the seconds that libsodium takes to decrypt `bytes` bytes in age chunks, on one thread, from warm memory.
double TimeCipher(uint64_t bytes) {
  constexpr size_t kChunks = 64;
  std::vector<unsigned char> sealed(kChunks * age::kSealedChunkBytes), plain(kChunks * age::kChunkBytes);
  const unsigned char key[32] = {1}, nonce[12] = {};
  for (size_t i = 0; i < kChunks; ++i) {
    crypto_aead_chacha20poly1305_ietf_encrypt(&sealed[i * age::kSealedChunkBytes], nullptr,
                                              &plain[i * age::kChunkBytes], age::kChunkBytes, nullptr, 0, nullptr,
                                              nonce, key);
  }
  const auto start = std::chrono::steady_clock::now();
  const uint64_t count = (bytes + age::kChunkBytes - 1) / age::kChunkBytes;
  for (uint64_t i = 0; i < count; ++i) {
    if (crypto_aead_chacha20poly1305_ietf_decrypt(&plain[i % kChunks * age::kChunkBytes], nullptr, nullptr,
                                                  &sealed[i % kChunks * age::kSealedChunkBytes], age::kSealedChunkBytes,
                                                  nullptr, 0, nonce, key) != 0) {
      std::abort();
    }
  }
  return Seconds(start);
}

absl::Status Run(const std::string& path, const std::string& folder, int rounds) {
  PF_RETURN_IF_ERROR(age::PrepareCrypto());
  const age::Identity identity = age::NewIdentity();
  PF_ASSIGN_OR_RETURN(LockedMemory text, age::IdentityText(identity));
  OpenOptions options;
  options.keys = std::make_shared<OneKey>(std::move(text));
  bool is_locked = true;
  options.tell = [&](absl::string_view) { is_locked = false; };
  const std::string encrypted = absl::StrCat(folder, "/decrypting_load.age");
  uint64_t bytes;
  double seal_seconds;
  {
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, OpenModel(RealFileSystem(), path));
    SaveOptions save;
    save.filters.push_back(
        [&](ByteSink* out, uint64_t) { return EncryptInto(AgeRecipients{{identity.recipient}}, out); });
    const auto start = std::chrono::steady_clock::now();
    PF_RETURN_IF_ERROR(SaveModel(RealFileSystem(), *graph, encrypted, save));
    seal_seconds = Seconds(start);
    PF_ASSIGN_OR_RETURN(bytes, EncodedSize(*graph));
  }
  std::vector<double> plain, opened, closed, cipher, ratios;
  for (int i = 0; i < rounds; ++i) {
    PF_ASSIGN_OR_RETURN(plain.emplace_back(), TimeLoad(path, options, &closed.emplace_back()));
    closed.pop_back();
    PF_ASSIGN_OR_RETURN(opened.emplace_back(), TimeLoad(encrypted, options, &closed.emplace_back()));
    cipher.push_back(TimeCipher(bytes));
    ratios.push_back(opened.back() / (plain.back() + cipher.back()));
  }
  unlink(encrypted.c_str());
  cpu_set_t processors;
  const int count = sched_getaffinity(0, sizeof(processors), &processors) == 0 ? CPU_COUNT(&processors) : 0;
  const double cipher_seconds = Median(cipher);
  std::printf(
      "{\"bytes\": %llu, \"processors\": %d, \"locked\": %s, \"plain_ms\": %.3f, \"encrypted_ms\": %.3f, "
      "\"close_ms\": %.3f, \"cipher_ms\": %.3f, \"cipher_mb_per_s\": %.0f, \"ratio\": %.3f, \"save_encrypted_ms\": "
      "%.1f}\n",
      static_cast<unsigned long long>(bytes), count, is_locked ? "true" : "false", 1e3 * Median(plain),
      1e3 * Median(opened), 1e3 * Median(closed), 1e3 * cipher_seconds,
      static_cast<double>(bytes) / cipher_seconds / 1e6, Median(ratios), 1e3 * seal_seconds);
  return absl::OkStatus();
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: decrypting_load MODEL FOLDER [ROUNDS]\n");
    return 2;
  }
  const int rounds = argc == 4 ? std::max(1, std::atoi(argv[3])) : 9;
  const absl::Status status = permafrost::Run(argv[1], argv[2], rounds);
  if (status.ok()) return 0;
  std::fprintf(stderr, "decrypting_load: %s\n", std::string(status.message()).c_str());
  return 1;
}
