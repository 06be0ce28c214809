// Implements reading and writing of Flex operators.
#include "io/formats/tflite/flex.h"

#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "flatbuffers/flexbuffers.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/ops/op_schema.h"
#include "graph/wire_format/node_def.h"

namespace permafrost {
namespace {

// Field numbers of NodeDef and of entries of its map `attr` (io/formats/proto/graphdef.proto).
constexpr uint32_t kName = 1, kOp = 2, kInput = 3, kAttr = 5, kKey = 1, kValue = 2;

bool IsInput(Op op) { return op == ops::kPlaceholder || op == ops::kPlaceholderV2 || op == ops::k_Arg; }

// Returns whether an attribute names a function.
bool CallsFunctions(const OpSchema& schema) {
  for (const AttrSpec& attr : schema.attrs) {
    if (attr.kind == AttrValue::Kind::kFunction) return true;
  }
  return false;
}

Results Flex(OperatorImport* op) {
  const auto* bytes = op->op().custom_options();
  if (bytes == nullptr || bytes->size() == 0) return absl::InvalidArgumentError("has no options");
  std::vector<uint8_t> visited;
  if (!flexbuffers::VerifyBuffer(bytes->data(), bytes->size(), &visited)) {
    return absl::InvalidArgumentError("has options that are no valid FlexBuffers");
  }
  const flexbuffers::Reference root = flexbuffers::GetRoot(bytes->data(), bytes->size());
  if (!root.IsVector() || root.AsVector().size() != 2 || !root.AsVector()[0].IsString() ||
      !root.AsVector()[1].IsString()) {
    return absl::InvalidArgumentError("has options that are no vector of an op and its NodeDef");
  }
  const flexbuffers::String name = root.AsVector()[0].AsString(), encoded = root.AsVector()[1].AsString();
  const absl::string_view op_name(name.c_str(), name.size());
  // Values of attributes refer to these bytes.
  auto node_def = std::make_shared<const std::string>(encoded.c_str(), encoded.size());
  OperatorImport::Attrs attrs;
  absl::string_view defined_op;
  WireReader reader(*node_def);
  WireField field;
  while (reader.Next(&field)) {
    if (field.number == kOp) defined_op = field.bytes;
    if (field.number != kAttr) continue;
    WireReader entry(field.bytes);
    WireField part;
    absl::string_view key, value;
    while (entry.Next(&part)) {
      if (part.number == kKey) key = part.bytes;
      if (part.number == kValue) value = part.bytes;
    }
    PF_RETURN_IF_ERROR(entry.status());
    attrs.emplace_back(op->graph().Intern(key), AttrValue::FromWire(value, node_def));
  }
  PF_RETURN_IF_ERROR(reader.status());
  if (defined_op != op_name) {
    return absl::InvalidArgumentError(
        absl::StrCat("names the op '", op_name, "', but its NodeDef is of the op '", defined_op, "'"));
  }
  const OpSchema* schema = FindSchema(Op::Named(op_name));
  if (schema == nullptr || !Op::Named(op_name).is_known()) {
    return absl::UnimplementedError(absl::StrCat("is the op '", op_name, "', which is not in the table of ops"));
  }
  if (CallsFunctions(*schema)) return absl::UnimplementedError("calls functions");
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  if (schema->fixed_inputs >= 0 && static_cast<size_t>(schema->fixed_inputs) != inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", inputs.size(), " operands, expected ", schema->fixed_inputs));
  }
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(Op::Named(op_name), inputs, attrs));
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*node));
  if (types.size() != static_cast<size_t>(op->num_outputs())) {
    return absl::InvalidArgumentError(absl::StrCat("has ", op->num_outputs(), " results, expected ", types.size()));
  }
  for (int i = 0; i < op->num_outputs(); ++i) {
    if (types[static_cast<size_t>(i)] != op->OutputType(i)) {
      return absl::InvalidArgumentError(absl::StrCat("has result ", i, " of type ", DTypeName(op->OutputType(i)),
                                                     ", expected ", DTypeName(types[static_cast<size_t>(i)])));
    }
  }
  return AllOutputs(node, op->num_outputs());
}

}  // namespace

absl::StatusOr<std::string> FlexOptions(const Node& node) {
  const OpSchema* schema = FindSchema(node.op());
  const absl::string_view name = node.op().name();
  if (schema == nullptr || !node.op().is_known() || absl::StartsWith(name, "_")) {
    return absl::UnimplementedError("TensorFlow has no such op");
  }
  if (IsInput(node.op()) || schema->Is(kControlFlow) || CallsFunctions(*schema)) {
    return absl::UnimplementedError("TensorFlow's kernels cannot run it outside of a graph");
  }
  StringSink sink;
  Gatherer gatherer(&sink);
  constexpr uint32_t kNode = 1;
  PF_RETURN_IF_ERROR(WriteNodeDef(node, kNode, &gatherer));
  PF_RETURN_IF_ERROR(gatherer.Flush());
  WireReader message(sink.text());
  WireField field;
  if (!message.Next(&field)) return absl::InternalError("the encoded node cannot be read");
  // The operator's operands are the inputs, without those that only order nodes.
  std::string node_def;
  WireReader reader(field.bytes);
  WireField part;
  while (reader.Next(&part)) {
    if (part.number == kName || part.number == kOp) absl::StrAppend(&node_def, part.whole);
  }
  for (int i = 0; i < node.num_data_inputs(); ++i) AppendBytesField(kInput, absl::StrCat("input", i), &node_def);
  for (reader = WireReader(field.bytes); reader.Next(&part);) {
    if (part.number == kAttr) absl::StrAppend(&node_def, part.whole);
  }
  PF_RETURN_IF_ERROR(reader.status());
  flexbuffers::Builder builder;
  builder.Vector([&] {
    builder.String(name.data(), name.size());
    builder.String(node_def.data(), node_def.size());
  });
  builder.Finish();
  const std::vector<uint8_t>& options = builder.GetBuffer();
  return std::string(options.begin(), options.end());
}

const OperatorRow& FlexRow() {
  static constexpr OperatorRow kRow = {tflite::BuiltinOperator::CUSTOM, 0, -1, Flex, Codes::kRefused};
  return kRow;
}

}  // namespace permafrost
