// Sets the limits of a run, and reads memory regions from files.
#include "tools/model/tool_session.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

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
