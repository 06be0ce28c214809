// Implements the text form with protobuf's text format and the binary codec of this folder.
#include "io/formats/graphdef_text.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <memory>
#include <string>
#include <utility>

#include "graph/base/status.h"
#include "io/formats/graphdef.h"
#include "io/formats/proto/graphdef.pb.h"
#include "io/formats/text_message.h"

namespace permafrost {
namespace {

namespace pb = google::protobuf;

// Forwards protobuf's output to a ByteSink.
class SinkStream : public pb::io::CopyingOutputStream {
 public:
  explicit SinkStream(ByteSink* sink) : sink_(sink) {}

  bool Write(const void* buffer, int size) override {
    if (status_.ok()) status_ = sink_->Append({static_cast<const char*>(buffer), static_cast<size_t>(size)});
    return status_.ok();
  }

  const absl::Status& status() const { return status_; }

 private:
  ByteSink* sink_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> ReadGraphDefText(absl::string_view text, std::vector<std::string>* dangling) {
  graphdef::GraphDef message;
  PF_ASSIGN_OR_RETURN(std::string binary, TextToBinary(text, {}, &message));
  message.Clear();
  auto kept = std::make_shared<const std::string>(std::move(binary));
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(*kept, kept, /*name_offsets=*/false, dangling);
  // Only one such error is possible here: a string whose escapes are not UTF-8.
  if (absl::IsDataLoss(graph.status())) return Annotate(graph.status(), "in the binary form of the text");
  return graph;
}

absl::Status WriteGraphDefText(const Graph& graph, ByteSink* sink) {
  SinkStream stream(sink);
  pb::io::CopyingOutputStreamAdaptor output(&stream);
  pb::TextFormat::Printer printer;
  graphdef::GraphDef message;
  // The text of a GraphDef is the concatenation of its fields' texts, so they are printed one at a time.
  const auto print = [&](const std::string& encoded) -> absl::Status {
    if (!message.ParseFromString(encoded)) {
      return absl::InternalError("a part of the graph is not well-formed, so it has no text form");
    }
    return printer.Print(message, &output) ? absl::OkStatus()
                                           : absl::InternalError("a part of the graph cannot be printed");
  };
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    StringSink encoded;
    PF_RETURN_IF_ERROR(WriteGraphDefNode(*node, &encoded));
    const absl::Status status = print(encoded.text());
    PF_RETURN_IF_ERROR(stream.status());
    PF_RETURN_IF_ERROR(Annotate(status, node->Describe()));
  }
  StringSink encoded;
  PF_RETURN_IF_ERROR(WriteGraphDefSurroundings(graph, &encoded));
  const absl::Status status = print(encoded.text());
  (void)output.Flush();
  PF_RETURN_IF_ERROR(stream.status());
  return status;
}

}  // namespace permafrost
