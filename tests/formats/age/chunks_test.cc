// Tests that reading parts of an encrypted file only decrypts those parts, and of the properties of the memory used.
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/formats/age/file_builder.h"

namespace permafrost::age {
namespace {

using ::testing::HasSubstr;

constexpr size_t kSize = 100 * kChunkBytes + 1000;

// Counts the bytes read from the encrypted file.
class CountingSource : public ByteSource {
 public:
  explicit CountingSource(std::string file) : bytes_(SourceOf(std::move(file))) {}
  uint64_t size() const override { return bytes_->size(); }
  absl::StatusOr<FileView> Read(uint64_t offset, uint64_t length) const override {
    read_ += length;
    return bytes_->Read(offset, length);
  }
  uint64_t TakeCount() const { return read_.exchange(0); }

 private:
  const std::shared_ptr<const ByteSource> bytes_;
  mutable std::atomic<uint64_t> read_{0};
};

class AgeChunksTest : public ::testing::Test {
 protected:
  AgeChunksTest() : plain_(Noise(kSize)), sealed_(std::make_shared<CountingSource>(FileOf(plain_))) {}

  std::shared_ptr<const ByteSource> OpenSealed(OpenOptions options = {}) const {
    options.keys = KeysInMemory(kTestIdentity);
    absl::StatusOr<std::shared_ptr<const ByteSource>> source = DecryptAge(*InspectAge(sealed_), options);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }

  const std::string plain_;
  const std::shared_ptr<CountingSource> sealed_;
};

TEST_F(AgeChunksTest, ReadingARangeDecryptsOnlyItsChunks) {
  const std::shared_ptr<const ByteSource> source = OpenSealed();
  EXPECT_EQ(source->size(), kSize);
  EXPECT_TRUE(source->is_secret());
  sealed_->TakeCount();
  const auto cost = [&](uint64_t offset, uint64_t length) {
    const absl::StatusOr<FileView> view = source->Read(offset, length);
    EXPECT_TRUE(view.ok()) << view.status();
    EXPECT_TRUE(view->bytes == absl::string_view(plain_).substr(offset, length)) << offset << ", " << length;
    return sealed_->TakeCount() / kSealedChunkBytes;
  };
  EXPECT_EQ(cost(10 * kChunkBytes + 5, 100), 1u);
  EXPECT_EQ(cost(10 * kChunkBytes + 500, 100), 0u) << "a recent chunk is kept";
  EXPECT_EQ(cost(20 * kChunkBytes, kChunkBytes), 1u);
  EXPECT_EQ(cost(30 * kChunkBytes, 5 * kChunkBytes), 5u);
  EXPECT_EQ(cost(40 * kChunkBytes + 7, 2 * kChunkBytes), 3u);
  EXPECT_EQ(cost(50 * kChunkBytes - 1, 2), 2u);
  EXPECT_EQ(cost(kSize - 10, 10), 0u) << "the last chunk was read to open the file";
  EXPECT_EQ(cost(12345, 0), 0u);
}

TEST_F(AgeChunksTest, EveryKindOfRangeIsReadCorrectly) {
  const std::shared_ptr<const ByteSource> source = OpenSealed();
  const uint64_t places[] = {0,
                             1,
                             1000,
                             kChunkBytes - 1,
                             kChunkBytes,
                             kChunkBytes + 1,
                             2 * kChunkBytes,
                             40 * kChunkBytes + 9,
                             100 * kChunkBytes - 1,
                             100 * kChunkBytes,
                             100 * kChunkBytes + 1,
                             kSize - 1,
                             kSize};
  for (const uint64_t begin : places) {
    for (const uint64_t end : places) {
      if (end < begin) continue;
      const absl::StatusOr<FileView> view = source->Read(begin, end - begin);
      ASSERT_TRUE(view.ok()) << view.status();
      EXPECT_TRUE(view->bytes == absl::string_view(plain_).substr(begin, end - begin)) << begin << " to " << end;
    }
  }
  for (const auto& [offset, length] :
       {std::pair<uint64_t, uint64_t>{kSize, 1}, {kSize + 1, 0}, {0, kSize + 1}, {1, ~0ull}}) {
    EXPECT_EQ(source->Read(offset, length).status().code(), absl::StatusCode::kOutOfRange);
  }
}

TEST_F(AgeChunksTest, SmallViewsOfAFileShareItsChunks) {
  const std::shared_ptr<const ByteSource> source = OpenSealed();
  std::vector<FileView> views;
  sealed_->TakeCount();
  for (int round = 0; round < 3; ++round) {
    for (uint64_t chunk = 0; chunk < 100; ++chunk) views.push_back(*source->Read(chunk * kChunkBytes + 100, 10));
  }
  EXPECT_EQ(sealed_->TakeCount() / kSealedChunkBytes, 100u);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(views[i].bytes.data(), views[i + 200].bytes.data());
}

TEST_F(AgeChunksTest, ViewsOutliveTheSource) {
  std::shared_ptr<const ByteSource> source = OpenSealed();
  const FileView small = *source->Read(100, 10), large = *source->Read(100, 10 * kChunkBytes);
  source = nullptr;
  EXPECT_TRUE(small.bytes == absl::string_view(plain_).substr(100, 10));
  EXPECT_TRUE(large.bytes == absl::string_view(plain_).substr(100, 10 * kChunkBytes));
}

TEST_F(AgeChunksTest, ManyThreadsMayRead) {
  const std::shared_ptr<const ByteSource> source = OpenSealed();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 50; ++i) {
        const uint64_t offset = (i * 7919 + static_cast<uint64_t>(t) * 104729) * 1009 % (kSize - 200000);
        const uint64_t length = i % 5 == 0 ? 200000 : 100;
        const absl::StatusOr<FileView> view = source->Read(offset, length);
        if (!view.ok() || view->bytes != absl::string_view(plain_).substr(offset, length)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Returns the kernel's flags of the mapping that contains an address.
std::string FlagsOf(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin, end;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      is_inside = begin <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < end;
    } else if (is_inside && line.rfind("VmFlags:", 0) == 0) {
      return line + " ";
    }
  }
  return "";
}

TEST_F(AgeChunksTest, DecryptedMemoryIsLockedAndNotDumped) {
  const std::shared_ptr<const ByteSource> source = OpenSealed();
  const FileView view = *source->Read(0, 10);
  EXPECT_THAT(FlagsOf(view.bytes.data()), HasSubstr(" lo "));
  EXPECT_THAT(FlagsOf(view.bytes.data()), HasSubstr(" dd "));
  EXPECT_THAT(FlagsOf(view.bytes.data()), ::testing::Not(HasSubstr(" ex ")));
}

TEST_F(AgeChunksTest, MemoryThatCannotBeLockedIsReported) {
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &old), 0);
  std::vector<std::string> notes;
  OpenOptions options;
  options.tell = [&](absl::string_view note) { notes.emplace_back(note); };
  const std::shared_ptr<const ByteSource> relaxed = OpenSealed(options);
  options.require_locked_memory = true;
  const std::shared_ptr<const ByteSource> strict = OpenSealed(options);
  rlimit none = old;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
  const LockedMemory probe = *LockedMemory::Allocate(10);
  const absl::StatusOr<FileView> first = relaxed->Read(0, 10), second = relaxed->Read(0, 10 * kChunkBytes);
  const absl::Status refused = strict->Read(0, 10 * kChunkBytes).status();
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &old), 0);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(second->bytes == absl::string_view(plain_).substr(0, 10 * kChunkBytes));
  if (probe.is_locked()) GTEST_SKIP() << "this process may lock memory beyond the limit";
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0],
            "65536 bytes of the decrypted model cannot be locked in memory and may be swapped: the system allows 0 "
            "bytes (ulimit -l)");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("655360 bytes of the decrypted model cannot be locked"));
}

TEST(LockedMemory, HoldsBytesAndMoves) {
  LockedMemory memory = *LockedMemory::CopyOf("secret");
  EXPECT_EQ(memory.bytes(), "secret");
  const char* const place = memory.bytes().data();
  LockedMemory moved = std::move(memory);
  EXPECT_EQ(moved.bytes().data(), place);
  EXPECT_EQ(memory.size(), 0u);
  moved = *LockedMemory::Allocate(10 << 20);
  EXPECT_EQ(moved.bytes(), std::string(10 << 20, '\0'));
  EXPECT_EQ(LockedMemory::CopyOf("")->bytes(), "");
  EXPECT_EQ(LockedMemory::Allocate(~size_t{0}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(LockedMemory::Allocate(size_t{1} << 60).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace permafrost::age
