// Tests of models compressed with zstd: accepted and rejected files, and error messages.
#include "io/formats/zstd.h"

#include <zstd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

std::string Frame(absl::string_view content, int level = kDefaultZstdLevel, bool sized = true) {
  StringSink out;
  ZstdSink sink(&out, level, sized ? content.size() : 0);
  EXPECT_TRUE(sink.Append(content).ok());
  EXPECT_TRUE(sink.Finish().ok());
  return out.Release();
}

absl::StatusOr<std::string> Opened(absl::string_view file, uint64_t most = uint64_t{1} << 30) {
  ModelSource source;
  source.bytes = MemorySource({file, nullptr});
  source.head = {file.substr(0, ModelSource::kEndBytes), nullptr};
  EXPECT_TRUE(kZstdWrapping.is(source));
  OpenOptions options;
  options.max_model_bytes = most;
  absl::StatusOr<std::shared_ptr<const ByteSource>> inner = kZstdWrapping.open(source, options);
  if (!inner.ok()) return inner.status();
  return std::string((*ReadAll(**inner)).bytes);
}

std::string Refusal(absl::string_view file, uint64_t most = uint64_t{1} << 30) {
  const absl::StatusOr<std::string> text = Opened(file, most);
  return text.ok() ? "was read" : std::string(text.status().message());
}

std::string Skippable(absl::string_view content) {
  std::string frame("\x5a\x2a\x4d\x18", 4);
  for (int i = 0; i < 4; ++i) frame.push_back(static_cast<char>(content.size() >> (8 * i)));
  return frame.append(content.data(), content.size());
}

// Returns bytes like those of a model: text, and numbers that hardly compress.
std::string Sample(size_t size) {
  std::string sample;
  for (uint32_t state = 1; sample.size() < size;) {
    state = state * 1664525u + 1013904223u;
    sample.append(state % 3 == 0 ? "node { name: \"layer" : "").push_back(static_cast<char>(state >> 24));
  }
  sample.resize(size);
  return sample;
}

TEST(Zstd, RestoresTheBytes) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{3} << 20, (size_t{9} << 20) + 1}) {
    const std::string sample = Sample(size);
    for (const bool sized : {false, true}) EXPECT_EQ(*Opened(Frame(sample, 1, sized)), sample) << size << sized;
  }
}

TEST(Zstd, DeclaresItsSizeAndNeedsNoLargeWindow) {
  const std::string sample = Sample(size_t{20} << 20);
  const std::string frame = Frame(sample, 1);
  EXPECT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()), sample.size());
  EXPECT_EQ(ZSTD_getDictID_fromFrame(frame.data(), frame.size()), 0u);
  EXPECT_EQ(frame[4] & 4, 4) << "no checksum";
}

TEST(Zstd, FindsRepetitionsFarApart) {
  // Random bytes, so that only the repetition compresses. It is too far away for level 1's default window.
  std::string random;
  for (uint64_t state = 88172645463325252u; random.size() < size_t{12} << 20;) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    random.append(reinterpret_cast<const char*>(&state), sizeof(state));
  }
  EXPECT_LT(Frame(random + random, 1).size(), random.size() * 11 / 10);
}

TEST(Zstd, GivesTheSameBytesOnAnyNumberOfThreads) {
  const std::string sample = Sample(size_t{40} << 20);  // Several jobs.
  std::string one;
  for (const int num_threads : {1, 3}) {
    StringSink out;
    uint64_t told = 0;
    ZstdOptions options;
    options.level = kFastestZstdLevel;
    options.num_threads = num_threads;
    options.progress = [&](uint64_t done, uint64_t size) {
      EXPECT_EQ(size, sample.size());
      EXPECT_GE(done, told);
      told = done;
    };
    ZstdSink sink(&out, options, sample.size());
    for (size_t at = 0; at < sample.size(); at += size_t{2} << 20) {
      ASSERT_TRUE(sink.Append(absl::string_view(sample).substr(at, size_t{2} << 20)).ok());
    }
    ASSERT_TRUE(sink.Finish().ok());
    EXPECT_EQ(told, sample.size());
    const std::string frame = out.Release();
    EXPECT_EQ(*Opened(frame), sample);
    if (one.empty()) one = frame;
    EXPECT_EQ(frame, one) << num_threads;
  }
}

TEST(Zstd, ReportsAWrongSize) {
  StringSink out;
  ZstdSink sink(&out, 3, 10);
  ASSERT_TRUE(sink.Append("nine byte").ok());
  EXPECT_EQ(sink.Finish().code(), absl::StatusCode::kInternal);
}

TEST(Zstd, ReadsSeveralFramesAndSkippableOnes) {
  const std::string file = Skippable("a note") + Frame("one ", 3, false) + Skippable("") + Frame("") + Frame("two");
  EXPECT_EQ(*Opened(file), "one two");
}

TEST(Zstd, LimitsTheDecompressedSize) {
  const std::string sample(1000000, 'x');
  EXPECT_EQ(Refusal(Frame(sample), 999999),
            "byte 0: the model declares 1000000 bytes, expected at most 999999 (max_model_bytes)");
  EXPECT_EQ(Refusal(Frame(sample, 3, false), 999999),
            "byte 0: the model has more than 999999 bytes, expected at most 999999 (max_model_bytes)");
  const std::string first = Frame("12345");
  EXPECT_EQ(
      Refusal(first + Frame("1234567"), 10),
      absl::StrCat("byte ", first.size(), ": the model declares 12 bytes, expected at most 10 (max_model_bytes)"));
  for (const bool sized : {false, true}) {
    EXPECT_EQ(Opened(Frame(sample, 3, sized), 1000000)->size(), 1000000u);
    EXPECT_EQ(*Opened(Frame("", 3, sized), 0), "");
  }
}

TEST(Zstd, RejectsAnImplausibleSize) {
  // A frame with an 8-byte content size of 2^40, a window of 1 KiB, and one block of a repeated byte.
  const std::string bomb("\x28\xb5\x2f\xfd\xc0\x00\x00\x00\x00\x00\x00\x01\x00\x00\x03\x00\x00x", 18);
  EXPECT_EQ(Refusal(bomb, uint64_t{1} << 50),
            "byte 0: the frame declares 1099511627776 bytes, more than the 18 bytes that are left can hold");
}

TEST(Zstd, RejectsUnsupportedFrames) {
  // Window descriptor 0x90: 2^28 bytes.
  const std::string wide("\x28\xb5\x2f\xfd\x00\x90\x03\x00\x00x", 10);
  EXPECT_EQ(Refusal(wide),
            "byte 0: the frame needs a window of more than 128 MiB; compress it again without --ultra or "
            "--long");
  const std::string with_dictionary("\x28\xb5\x2f\xfd\x21\x07\x01\x09\x00\x00x", 11);
  EXPECT_EQ(Refusal(with_dictionary), "byte 0: the frame needs dictionary 7, expected one without a dictionary");
  EXPECT_EQ(Refusal(Frame("a") + "garbage"),
            absl::StrCat("byte ", Frame("a").size(), ": found no frame, expected one or the end of the file"));
}

TEST(Zstd, EveryTruncationIsRejected) {
  const std::string file = Frame(Sample(300), 3, false) + Skippable("note") + Frame(Sample(300));
  size_t ends[] = {Frame(Sample(300), 3, false).size(), 0};
  ends[1] = ends[0] + Skippable("note").size();
  for (size_t size = 4; size < file.size(); ++size) {
    if (size == ends[0] || size == ends[1]) continue;
    const absl::Status status = Opened(absl::string_view(file).substr(0, size)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size << status;
  }
}

TEST(Zstd, NoFlippedBitChangesTheModel) {
  const std::string content = Sample(200);
  const std::string frame = Frame(content);
  int meaningless = 0;
  for (size_t bit = 32; bit < frame.size() * 8; ++bit) {
    std::string flipped = frame;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const absl::StatusOr<std::string> opened = Opened(flipped);
    if (!opened.ok()) continue;
    EXPECT_EQ(*opened, content) << bit;
    ++meaningless;
  }
  EXPECT_LE(meaningless, 8) << "decoders ignore two bits of the header and two reserved ones of each block";
  std::string wrong = frame;
  wrong.back() = static_cast<char>(wrong.back() ^ 1);
  EXPECT_EQ(Refusal(wrong), "byte 0: the checksum of the frame is wrong");
}

TEST(Zstd, NestingOfWrappingsIsLimited) {
  std::string file = *RealFileSystem().ReadFile(DataFile("tests/models/digits/digits.pb"));
  for (int i = 0; i < 4; ++i) file = Frame(file);
  EXPECT_TRUE(ReadModel({file, nullptr}).ok());
  EXPECT_EQ(ReadModel({Frame(file), nullptr}).status().message(),
            "found more than 4 nested layers of compression or encryption, the last is zstd, expected a model");
}

}  // namespace
}  // namespace permafrost
