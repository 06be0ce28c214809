// Implements the comparison, with an independent check that graphs are valid.
#include "tests/formats/differential.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "io/formats/graphdef.h"
#include "io/formats/proto/graphdef.pb.h"

namespace permafrost {
namespace {

namespace pb = google::protobuf;

std::string Deterministic(const graphdef::GraphDef& message) {
  std::string bytes;
  pb::io::StringOutputStream stream(&bytes);
  pb::io::CodedOutputStream output(&stream);
  output.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&output);
  output.Trim();
  return bytes;
}

bool IsDigits(const std::string& text) {
  const bool is_short = !text.empty() && text.size() <= 10;
  return is_short && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool IsGraph(const graphdef::GraphDef& message) {
  std::set<std::string> names;
  for (const graphdef::NodeDef& node : message.node()) {
    const std::string& name = node.name();
    if (name.empty() || node.op().empty() || name[0] == '^' || name.find(':') != std::string::npos) return false;
    if (!names.insert(name).second) return false;
  }
  for (const graphdef::NodeDef& node : message.node()) {
    bool saw_control = false;
    for (std::string input : node.input()) {
      const bool is_control = !input.empty() && input[0] == '^';
      if (is_control) {
        input.erase(0, 1);
      } else if (const size_t colon = input.rfind(':'); colon != std::string::npos) {
        const std::string port = input.substr(colon + 1);
        if (!IsDigits(port) || (port.size() > 1 && port[0] == '0') || std::stoll(port) > INT32_MAX) return false;
        input.erase(colon);
      }
      if (saw_control && !is_control) return false;
      saw_control |= is_control;
      if (names.count(input) == 0) return false;
    }
  }
  return true;
}

// Decodes all attributes so that sanitizers can detect invalid accesses; results are ignored.
void DecodeAttributes(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    for (const Attr& attr : node->attrs()) {
      (void)attr.value.kind();
      (void)attr.value.AsString();
      (void)attr.value.AsShape();
      (void)attr.value.AsTensor();
      (void)attr.value.AsIntList();
      (void)attr.value.AsFloatList();
      (void)attr.value.AsBoolList();
      (void)attr.value.AsStringList();
      (void)attr.value.AsTypeList();
      (void)attr.value.AsShapeList();
      (void)attr.value.AsFunctionName();
    }
  }
}

}  // namespace

std::string CompareWithProtobuf(absl::string_view bytes) {
  const pb::LogSilencer no_reports;  // Silences protobuf's logging of text that is not UTF-8.
  graphdef::GraphDef expected;
  const bool is_message = expected.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  // Allocates exactly this size, so that a sanitizer detects reads beyond the end.
  const std::unique_ptr<char[]> copy(new char[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef({copy.get(), bytes.size()}, nullptr);
  if (!graph.ok()) {
    const std::string ours = graph.status().ToString();
    if (absl::IsDataLoss(graph.status()))
      return is_message ? absl::StrCat("protobuf accepts it, the codec returns: ", ours) : "";
    if (!is_message) return absl::StrCat("protobuf rejects it, the codec returns: ", ours);
    if (!absl::IsInvalidArgument(graph.status())) return absl::StrCat("unexpected status: ", ours);
    return IsGraph(expected) ? absl::StrCat("it is a valid graph, the codec returns: ", ours) : "";
  }
  if (!is_message) return "protobuf rejects it, the codec accepts it";
  if (!IsGraph(expected)) return "it is not a valid graph, the codec accepts it";
  DecodeAttributes(**graph);
  StringSink written;
  if (const absl::Status status = WriteGraphDef(**graph, &written); !status.ok()) return status.ToString();
  if (written.text().size() != GraphDefSize(**graph)) {
    return absl::StrCat("GraphDefSize returned ", GraphDefSize(**graph), ", expected ", written.text().size());
  }
  graphdef::GraphDef actual;
  if (!actual.ParseFromString(written.text())) return "protobuf rejects the codec's output";
  return Deterministic(actual) == Deterministic(expected) ? "" : "the codec's output has another meaning";
}

}  // namespace permafrost
