// Turns the flags into what io/ takes.
#include "tools/model_flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "io/formats/zstd.h"
#include "io/model_file.h"

namespace permafrost {

void AddReadFlags(ReadFlags* read, FlagTable* flags) {
  flags->Add("max_model_bytes", &read->max_model_bytes, "N",
             "What a compressed model may grow to, in bytes; one that would be larger is refused.");
}

void AddWriteFlags(WriteFlags* write, FlagTable* flags) {
  flags->Add(
      "compress", &write->compress, "zstd[:LEVEL]",
      absl::StrCat("Compress what is written, at a level from ", kFastestZstdLevel, " (fast) to ", kSmallestZstdLevel,
                   " (small); without one, ", kDefaultZstdLevel, ". Every tool reads it as it is."));
}

absl::StatusOr<SaveOptions> ToSaveOptions(const WriteFlags& write, absl::string_view format) {
  SaveOptions options;
  options.format = format;
  if (write.compress.empty()) return options;
  absl::string_view text = write.compress;
  int level = kDefaultZstdLevel;
  bool is_known = absl::ConsumePrefix(&text, "zstd");
  if (is_known && !text.empty()) is_known = absl::ConsumePrefix(&text, ":") && absl::SimpleAtoi(text, &level);
  if (!is_known || level < kFastestZstdLevel || level > kSmallestZstdLevel) {
    return absl::InvalidArgumentError(absl::StrCat("--compress is '", write.compress,
                                                   "', expected zstd or zstd:LEVEL, ", kFastestZstdLevel, " to ",
                                                   kSmallestZstdLevel));
  }
  options.zstd_level = level;
  return options;
}

absl::StatusOr<std::unique_ptr<Graph>> OpenModelFile(FileSystem& files, const std::string& path,
                                                     const ReadFlags& read) {
  OpenOptions options;
  options.max_model_bytes = read.max_model_bytes;
  return OpenModel(files, path, options);
}

}  // namespace permafrost
