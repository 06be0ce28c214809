// Implements reading of packages: directory, regions and graph.
#include "io/formats/memmapped_package.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/wire_format/node_def.h"
#include "io/formats/graphdef.h"
#include "io/formats/package_directory.h"
#include "io/little_endian.h"

namespace permafrost {
namespace {

using package_directory::kFooterBytes;

constexpr uint64_t kMostDirectoryBytes = 0x7fffffff;  // Protobuf's limit on a message.

}  // namespace

const PackageRegion* Package::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &regions_[found->second];
}

absl::StatusOr<FileView> Package::Read(absl::string_view name) const {
  const PackageRegion* const region = Find(name);
  if (region == nullptr) return absl::NotFoundError(absl::StrCat("the package has no region ", Quoted(name)));
  return source_->Read(region->offset, region->length);
}

absl::Status Package::CheckTensorRegion(const PackageRegion& region, DType dtype, const Shape& shape,
                                        uint64_t* size) const {
  const int64_t element_size = static_cast<int64_t>(SizeOf(dtype));
  if (element_size == 0) {
    return absl::InvalidArgumentError(absl::StrCat("type ", DTypeName(dtype), " has no fixed-size elements"));
  }
  if (!shape.IsFullyKnown()) {
    return absl::InvalidArgumentError(absl::StrCat("found shape ", shape.ToString(), ", expected known dimensions"));
  }
  PF_ASSIGN_OR_RETURN(const int64_t count, shape.CheckedNumElements());
  int64_t wanted;
  if (__builtin_mul_overflow(count, element_size, &wanted) || static_cast<uint64_t>(wanted) > region.length) {
    return absl::DataLossError(absl::StrCat("the region ", Quoted(region.name), " has ", region.length,
                                            " bytes, expected ", count, " elements of ", element_size));
  }
  if (region.offset % kLeastTensorAlignment != 0) {
    return absl::DataLossError(absl::StrCat("the region ", Quoted(region.name), " of a tensor begins at byte ",
                                            region.offset, ", expected a multiple of ", kLeastTensorAlignment));
  }
  *size = static_cast<uint64_t>(wanted);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Package::ReadTensor(absl::string_view name, DType dtype, const Shape& shape) const {
  const PackageRegion* const region = Find(name);
  if (region == nullptr) return absl::NotFoundError(absl::StrCat("the package has no region ", Quoted(name)));
  uint64_t size;
  PF_RETURN_IF_ERROR(CheckTensorRegion(*region, dtype, shape, &size));
  PF_ASSIGN_OR_RETURN(const FileView view, source_->Read(region->offset, size));
  return Tensor::FromBytes(dtype, shape, view.bytes, view.owner);
}

absl::StatusOr<std::unique_ptr<Graph>> Package::ReadGraph() const {
  const PackageRegion* const region = Find(kPackageGraphName);
  if (region == nullptr) {
    return absl::DataLossError(absl::StrCat("has no region '", kPackageGraphName, "', which holds the graph"));
  }
  PF_ASSIGN_OR_RETURN(const FileView view, source_->Read(region->offset, region->length));
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(view.bytes, view.owner);
  PF_RETURN_IF_ERROR(Annotate(graph.status(), absl::StrCat("the graph, which begins at byte ", region->offset)));
  return graph;
}

absl::Status Package::MakeConstants(Graph* graph) const {
  // Views by region. A view of a mapped region is free, but an encrypted source must decrypt.
  absl::flat_hash_map<const PackageRegion*, FileView> views;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kImmutableConst) continue;
    const auto make = [&]() -> absl::Status {
      PF_ASSIGN_OR_RETURN(const std::string name, StringAttr(*node, "memory_region_name"));
      if (!absl::StartsWith(name, kPackagePrefix)) return absl::OkStatus();
      PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*node, "dtype"));
      PF_ASSIGN_OR_RETURN(const Shape shape, ShapeAttr(*node, "shape"));
      const PackageRegion* const region = Find(name);
      if (region == nullptr) {
        return absl::DataLossError(absl::StrCat("the package has no region ", Quoted(name)));
      }
      uint64_t size;
      PF_RETURN_IF_ERROR(CheckTensorRegion(*region, dtype, shape, &size));
      const auto [view, is_new] = views.try_emplace(region);
      if (is_new) {
        PF_ASSIGN_OR_RETURN(view->second, source_->Read(region->offset, region->length));
      }
      PF_ASSIGN_OR_RETURN(Tensor value,
                          Tensor::FromBytes(dtype, shape, view->second.bytes.substr(0, size), view->second.owner));
      // Replaces the attributes in place, to keep their order.
      const std::vector<Attr> attrs(node->attrs().begin(), node->attrs().end());
      node->ClearAttrs();
      graph->ReserveAttrs(node, attrs.size());
      for (const Attr& attr : attrs) {
        if (attr.key == "shape" || attr.key == "value") continue;
        const bool is_name = attr.key == "memory_region_name";
        graph->AppendAttrView(node, is_name ? absl::string_view("value") : attr.key,
                              is_name ? AttrValue::OfTensor(value) : attr.value);
      }
      node->set_op(ops::kConst);
      return absl::OkStatus();
    };
    if (const absl::Status status = make(); !status.ok()) return Annotate(status, node->Describe());
  }
  return absl::OkStatus();
}

absl::Status Package::AddRegion(const PackageRegion& region, uint64_t end) {
  const auto place = [&] { return absl::StrCat("directory entry ", regions_.size(), " (", Quoted(region.name), ")"); };
  if (region.name.empty()) return absl::DataLossError(absl::StrCat(place(), " has no name"));
  if (region.offset >= end) {
    return absl::DataLossError(
        absl::StrCat(place(), " begins at byte ", region.offset, ", but the directory at byte ", end));
  }
  if (!regions_.empty()) {
    PackageRegion& before = regions_.back();
    if (region.offset <= before.offset) {
      return absl::DataLossError(absl::StrCat(place(), " begins at byte ", region.offset, ", expected one beyond byte ",
                                              before.offset, ", where the entry before begins"));
    }
    const uint64_t room = region.offset - before.offset;
    if (before.length == 0) before.length = room;
    if (before.length > room) {
      return absl::DataLossError(absl::StrCat("directory entry ", regions_.size() - 1, " (", Quoted(before.name),
                                              ") has ", before.length, " bytes from byte ", before.offset,
                                              " on, but the next begins at byte ", region.offset));
    }
  }
  if (!by_name_.try_emplace(region.name, regions_.size()).second) {
    return absl::DataLossError(absl::StrCat(place(), " has the same name as entry ", by_name_[region.name]));
  }
  regions_.push_back(region);
  return absl::OkStatus();
}

absl::Status Package::ReadDirectory() {
  const uint64_t size = source_->size();
  if (size <= kFooterBytes) {
    return absl::DataLossError(absl::StrCat("found ", size, " bytes, expected more than ", kFooterBytes));
  }
  PF_ASSIGN_OR_RETURN(const FileView footer, source_->Read(size - kFooterBytes, kFooterBytes));
  const uint64_t begin = LoadLittleEndian64(footer.bytes.data()), end = size - kFooterBytes;
  if (begin >= end) {
    return absl::DataLossError(absl::StrCat("according to the last 8 bytes the directory begins at byte ", begin,
                                            ", expected one before byte ", end,
                                            ", where it ends; the file may be truncated"));
  }
  if (end - begin > kMostDirectoryBytes) {
    return absl::DataLossError(
        absl::StrCat("the directory has ", end - begin, " bytes, expected at most ", kMostDirectoryBytes));
  }
  PF_ASSIGN_OR_RETURN(directory_, source_->Read(begin, end - begin));
  WireReader reader(directory_.bytes, begin);
  WireField field;
  while (reader.Next(&field)) {
    if (!IsMessage(field, package_directory::kElement)) continue;
    PackageRegion region;
    WireReader entry(field.bytes, begin + static_cast<uint64_t>(field.bytes.data() - directory_.bytes.data()));
    WireField part;
    while (entry.Next(&part)) {
      if (part.number == package_directory::kOffset && part.type == WireType::kVarint) region.offset = part.value;
      if (part.number == package_directory::kName && part.type == WireType::kLengthDelimited) region.name = part.bytes;
      if (part.number == package_directory::kLength && part.type == WireType::kVarint) region.length = part.value;
    }
    PF_RETURN_IF_ERROR(Annotate(entry.status(), "the directory"));
    PF_RETURN_IF_ERROR(AddRegion(region, begin));
  }
  PF_RETURN_IF_ERROR(Annotate(reader.status(), "the directory"));
  if (regions_.empty()) return absl::DataLossError("the directory is empty");
  PackageRegion& last = regions_.back();
  if (last.length == 0) last.length = begin - last.offset;
  if (last.length > begin - last.offset) {
    return absl::DataLossError(absl::StrCat("directory entry ", regions_.size() - 1, " (", Quoted(last.name), ") has ",
                                            last.length, " bytes from byte ", last.offset,
                                            " on, but the directory begins at byte ", begin));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Package>> OpenPackage(std::shared_ptr<const ByteSource> source) {
  auto package = std::make_shared<Package>();
  package->source_ = std::move(source);
  PF_RETURN_IF_ERROR(package->ReadDirectory());
  return std::shared_ptr<const Package>(std::move(package));
}

bool LooksLikePackage(const ByteSource& source, absl::string_view head, absl::string_view tail) {
  const uint64_t size = source.size();
  if (size > kFooterBytes && tail.size() >= kFooterBytes) {
    const uint64_t begin = LoadLittleEndian64(tail.data() + tail.size() - kFooterBytes);
    const uint64_t end = size - kFooterBytes;
    if (begin < end) {
      // The name is near the start of the first entry; only an offset may precede it.
      constexpr uint64_t kLooked = 64;
      const absl::StatusOr<FileView> entry = source.Read(begin, std::min(end - begin, kLooked));
      if (entry.ok() && absl::StrContains(entry->bytes, kPackagePrefix)) return true;
    }
  }
  // A GraphDef that names regions ends like a package with a missing end, but begins with one of its own fields.
  const bool begins_like_graph = !head.empty() && (head[0] == '\x0a' || head[0] == '\x12' || head[0] == '\x22');
  const bool begins_like_text = absl::StartsWith(head, "node") || absl::StartsWith(head, "library");
  return !begins_like_graph && !begins_like_text && absl::StrContains(tail, kPackagePrefix);
}

}  // namespace permafrost
