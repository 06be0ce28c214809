// Lays out and writes packages.
#include "io/formats/package_conversion.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/integer_propagation.h"
#include "graph/shapes/shape_reads.h"
#include "io/formats/graphdef.h"

namespace permafrost {
namespace {

bool IsQuantized(DType dtype) {
  return dtype == DType::kQInt8 || dtype == DType::kQUint8 || dtype == DType::kQInt16 || dtype == DType::kQUint16 ||
         dtype == DType::kQInt32;
}

// Determines, by id, the nodes whose values shapes depend on. If shapes cannot be inferred, includes every constant
// that a shape could depend on.
class ShapeReads {
 public:
  explicit ShapeReads(const Graph& graph) : read_(NodesReadByShapes(graph)) {}

  bool Include(const Node& node, DType dtype, int64_t count) const {
    if (read_.ok()) return (*read_)[node.id()];
    return (dtype == DType::kInt32 || dtype == DType::kInt64) && count <= kMostPropagatedElements;
  }

 private:
  const absl::StatusOr<std::vector<bool>> read_;
};

// Finds constants with equal bytes.
class SameBytes {
 public:
  // Returns the region that holds the bytes of `constant`, or the index of the next region if there is none.
  absl::StatusOr<size_t> RegionOf(const PackedConstant& constant, const std::vector<RegionLayout>& regions) {
    PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*constant.node));
    std::vector<size_t>& candidates = by_hash_[absl::HashOf(constant.bytes, value.bytes())];
    for (const size_t candidate : candidates) {
      if (regions[candidate].length != constant.bytes) continue;
      PF_ASSIGN_OR_RETURN(const Tensor other, ConstValue(*regions[candidate].node));
      if (other.bytes() == value.bytes()) return candidate;
    }
    candidates.push_back(regions.size());
    return regions.size();
  }

 private:
  absl::flat_hash_map<size_t, std::vector<size_t>> by_hash_;
};

class LayoutMaker {
 public:
  LayoutMaker(const Graph& graph, const PackageOptions& options)
      : graph_(graph), options_(options), shape_reads_(graph) {}

  absl::StatusOr<PackageLayout> Make() {
    layout_.alignment = options_.alignment;
    names_.Reserve(kPackageGraphName);
    ReserveForeignNames();
    layout_.extra = options_.extra;
    for (const ExtraRegion& extra : layout_.extra) names_.Reserve(extra.name);
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (node->op() == ops::kConst) PF_RETURN_IF_ERROR(Annotate(AddConstant(*node), node->Describe()));
    }
    MakeGraph();
    PF_RETURN_IF_ERROR(Measure());
    return std::move(layout_);
  }

 private:
  // Reserves region names that the graph already uses, because it comes from another package.
  void ReserveForeignNames() {
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (node->op() != ops::kImmutableConst) continue;
      const absl::StatusOr<std::string> name = StringAttr(*node, "memory_region_name");
      if (name.ok() && absl::StartsWith(*name, kPackagePrefix)) names_.Reserve(*name);
    }
  }

  absl::Status AddConstant(const Node& node) {
    const AttrValue* const value = node.FindAttr("value");
    if (value == nullptr) return absl::InvalidArgumentError("has no attr 'value'");
    PackedConstant constant;
    constant.node = &node;
    PF_RETURN_IF_ERROR(Annotate(value->CheckTensor(&constant.dtype, &constant.shape), "attr 'value'"));
    if (constant.dtype == DType::kResource || constant.dtype == DType::kVariant) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(const int64_t count, constant.shape.CheckedNumElements());
    if (constant.dtype == DType::kString) {
      if (value->EncodedSize() >= options_.min_conversion_tensor_size) ++layout_.kept.of_type;
      return absl::OkStatus();
    }
    // CheckTensor has checked this product for overflow.
    constant.bytes = static_cast<uint64_t>(count) * SizeOf(constant.dtype);
    if (constant.bytes == 0 || constant.bytes < options_.min_conversion_tensor_size) return absl::OkStatus();
    if (IsQuantized(constant.dtype) && !options_.include_quantized) {
      ++layout_.kept.of_type;
      return absl::OkStatus();
    }
    if (shape_reads_.Include(node, constant.dtype, count)) {
      ++layout_.kept.for_shapes;
      return absl::OkStatus();
    }
    constant.region = layout_.regions.size();
    if (options_.dedupe) {
      PF_ASSIGN_OR_RETURN(constant.region, same_bytes_.RegionOf(constant, layout_.regions));
    }
    if (constant.region == layout_.regions.size()) {
      layout_.regions.push_back({names_.NameFor(node.name()), 0, constant.bytes, &node});
    }
    layout_.constants.push_back(std::move(constant));
    return absl::OkStatus();
  }

  void MakeGraph() {
    layout_.graph = graph_.Clone();
    size_t next = 0;
    const Node* from = graph_.first();
    for (Node* node = layout_.graph->first(); node != nullptr; node = node->next(), from = from->next()) {
      if (next == layout_.constants.size() || layout_.constants[next].node != from) continue;
      const PackedConstant& constant = layout_.constants[next++];
      const std::vector<Attr> attrs(node->attrs().begin(), node->attrs().end());
      node->ClearAttrs();
      layout_.graph->ReserveAttrs(node, attrs.size() + 2);
      // Keeps the order of the attributes in the file, so that the graph can be restored unchanged.
      bool has_type = false;
      for (const Attr& attr : attrs) {
        if (attr.key == "value") {
          AppendRegion(constant, node);
        } else if (attr.key == "dtype") {
          layout_.graph->AppendAttrView(node, attr.key, AttrValue::Type(constant.dtype));
          has_type = true;
        } else if (absl::StartsWith(attr.key, "_")) {
          layout_.graph->AppendAttrView(node, attr.key, attr.value);
        }
      }
      if (!has_type) layout_.graph->AppendAttrView(node, "dtype", AttrValue::Type(constant.dtype));
      node->set_op(ops::kImmutableConst);
    }
  }

  void AppendRegion(const PackedConstant& constant, Node* node) {
    layout_.graph->AppendAttrView(node, "memory_region_name", AttrValue::String(layout_.regions[constant.region].name));
    layout_.graph->AppendAttrView(node, "shape", AttrValue::OfShape(constant.shape));
  }

  absl::Status Measure() {
    uint64_t offset = 0, directory = 0;
    const auto add = [&](uint64_t bytes) { return !__builtin_add_overflow(offset, bytes, &offset); };
    for (RegionLayout& region : layout_.regions) {
      if (offset > UINT64_MAX - layout_.alignment) return TooLarge();
      region.offset = offset = AlignUp(offset, layout_.alignment);
      if (!add(region.length)) return TooLarge();
      directory += PackageEntrySize(region.name, region.offset, region.length);
    }
    for (const ExtraRegion& extra : layout_.extra) {
      if (offset > UINT64_MAX - kPageAlignment) return TooLarge();
      offset = AlignUp(offset, kPageAlignment);
      directory += PackageEntrySize(extra.name, offset, extra.bytes);
      if (!add(extra.bytes)) return TooLarge();
    }
    layout_.graph_bytes = GraphDefSize(*layout_.graph);
    if (layout_.graph_bytes > kMaxGraphDefBytes) {
      return absl::FailedPreconditionError(absl::StrCat("the rest of the graph takes ", layout_.graph_bytes,
                                                        " bytes, but a GraphDef has at most ", kMaxGraphDefBytes,
                                                        "; reduce the minimum size of constants that become regions"));
    }
    if (layout_.graph_bytes == 0)
      return absl::InvalidArgumentError("the graph is empty: a package has no empty regions");
    directory += PackageEntrySize(kPackageGraphName, offset, layout_.graph_bytes);
    constexpr uint64_t kFooterBytes = 8;
    if (!add(layout_.graph_bytes) || !add(directory) || !add(kFooterBytes)) return TooLarge();
    layout_.file_bytes = offset;
    return absl::OkStatus();
  }

  static absl::Status TooLarge() {
    return absl::InvalidArgumentError("the constants have more than 2^64 bytes in total");
  }

  const Graph& graph_;
  const PackageOptions& options_;
  ShapeReads shape_reads_;
  RegionNames names_;
  SameBytes same_bytes_;
  PackageLayout layout_;
};

}  // namespace

absl::StatusOr<PackageLayout> LayOutPackage(const Graph& graph, const PackageOptions& options) {
  return LayoutMaker(graph, options).Make();
}

absl::Status WritePackage(const PackageLayout& layout, ByteSink* sink) {
  PackageWriter writer(sink, layout.alignment);
  for (const RegionLayout& region : layout.regions) {
    const absl::StatusOr<Tensor> value = ConstValue(*region.node);
    PF_RETURN_IF_ERROR(value.status());
    PF_RETURN_IF_ERROR(writer.AddTensor(region.name, value->bytes()));
  }
  for (const ExtraRegion& extra : layout.extra) {
    PF_RETURN_IF_ERROR(writer.BeginAligned(extra.name, kPageAlignment));
    const uint64_t begin = writer.offset();
    RegionSink region(&writer);
    PF_RETURN_IF_ERROR(extra.write(&region));
    if (writer.offset() - begin != extra.bytes) {
      return absl::InternalError(absl::StrCat("the region '", extra.name, "' has ", writer.offset() - begin, " bytes, ",
                                              extra.bytes, " were announced"));
    }
  }
  PF_RETURN_IF_ERROR(writer.AddGraph(*layout.graph));
  return writer.Finish();
}

}  // namespace permafrost
