// Sets the limits of a run, and reads memory regions from files.
#include "tools/model/tool_session.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/printable.h"
#include "graph/base/status.h"
#include "tools/command_line/memory_limit.h"

namespace permafrost {
namespace {

// Prints text of a Print node. A model's text cannot pass for a line of the tool: it goes to standard error, with a
// prefix on each line.
void PrintFromModel(absl::string_view /*stream*/, absl::string_view text) {
  if (absl::EndsWith(text, "\n")) text.remove_suffix(1);
  std::string lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n'))
    absl::StrAppend(&lines, "print: ", Printable(line), "\n");
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

absl::StatusOr<Tensor> ReadRegion(FileSystem& files, const std::string& region, DType dtype, const Shape& shape) {
  if (absl::StartsWith(region, kPackagePrefix)) {
    return absl::UnimplementedError(
        absl::StrCat("the memory region '", region, "' lies in a memory-mapped package, which is not read here"));
  }
  PF_ASSIGN_OR_RETURN(const FileView file, files.MapFile(region));
  absl::StatusOr<Tensor> tensor = Tensor::FromBytes(dtype, shape, file.bytes, file.owner);
  PF_RETURN_IF_ERROR(Annotate(tensor.status(), absl::StrCat("the memory region '", region, "'")));
  return tensor;
}

}  // namespace

SessionOptions ToolSessionOptions(int num_threads, FileSystem& files) {
  SessionOptions options;
  options.num_threads = num_threads;
  options.loop_limits.most_iterations = kMostLoopIterations;
  options.memory_limit = static_cast<int64_t>(std::min<uint64_t>(MemoryLimitInForce(), INT64_MAX));
  options.print = &PrintFromModel;
  options.region_reader = [&files](const std::string& region, DType dtype, const Shape& shape) {
    return ReadRegion(files, region, dtype, shape);
  };
  return options;
}

RegionReader PackageRegions(std::shared_ptr<const Package> package, FileSystem& files) {
  return [package = std::move(package), &files](const std::string& region, DType dtype, const Shape& shape) {
    if (absl::StartsWith(region, kPackagePrefix)) return package->ReadTensor(region, dtype, shape);
    return ReadRegion(files, region, dtype, shape);
  };
}

}  // namespace permafrost
