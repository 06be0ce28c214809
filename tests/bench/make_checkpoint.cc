// Writes a checkpoint of any size quickly, and a graph that uses it, for measurements of freezing.
//
//     make_checkpoint PREFIX MEGABYTES SHARDS [resource|ref GRAPH]
//
// The variables are square matrices of 4 MiB, layer_00000/kernel and so on, distributed over the shards in turn. The
// graph multiplies its input x, one row, by all of them, with a Relu after each; its output is y. The variables are of
// the given kind: VarHandleOp and ReadVariableOp, or VariableV2 and Identity.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "graph/graph.h"
#include "io/crc32c.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "tests/formats/checkpoint/checkpoint_encoding.h"

namespace permafrost {
namespace {

constexpr int64_t kSide = 1024;
constexpr uint64_t kMatrixBytes = kSide * kSide * sizeof(float);
// Matrices are windows at different offsets in one pool of random numbers.
constexpr int64_t kWindowStep = 64;

struct Request {
  std::string prefix;
  int64_t matrices = 0;
  int shards = 0;
  bool is_resource = false;
  std::string graph;
};

std::string NameOf(int64_t matrix) { return absl::StrFormat("layer_%05d/kernel", matrix); }

std::vector<float> Pool(int64_t matrices) {
  std::mt19937 random(20240229);
  // Keeps the magnitude of activations roughly constant across layers.
  const float limit = std::sqrt(6.0f / kSide);
  std::uniform_real_distribution<float> numbers(-limit, limit);
  std::vector<float> pool(kSide * kSide + matrices * kWindowStep);
  for (float& number : pool) number = numbers(random);
  return pool;
}

absl::Status WriteBundle(const Request& request) {
  const std::vector<float> pool = Pool(request.matrices);
  std::map<std::string, std::string> index;
  index[""] = EncodeBundleHeader({request.shards});
  for (int shard = 0; shard < request.shards; ++shard) {
    const std::string path = absl::StrFormat("%s.data-%05d-of-%05d", request.prefix, shard, request.shards);
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> file, RealFileSystem().NewWriter(path));
    EntryFields entry;
    entry.shape = Shape({kSide, kSide});
    entry.shard = shard;
    entry.size = kMatrixBytes;
    for (int64_t i = shard; i < request.matrices; i += request.shards) {
      const absl::string_view bytes(reinterpret_cast<const char*>(&pool[i * kWindowStep]), kMatrixBytes);
      entry.masked_crc = MaskCrc32c(Crc32c(bytes));
      index[NameOf(i)] = EncodeBundleEntry(entry);
      entry.offset += kMatrixBytes;
      PF_RETURN_IF_ERROR(file->Append(bytes));
    }
    PF_RETURN_IF_ERROR(file->Commit());
  }
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> file,
                      RealFileSystem().NewWriter(absl::StrCat(request.prefix, ".index")));
  PF_RETURN_IF_ERROR(file->Append(MakeTable(index)));
  return file->Commit();
}

absl::StatusOr<Node*> AddVariable(const std::string& name, bool is_resource, Graph* graph) {
  PF_ASSIGN_OR_RETURN(Node* const variable, graph->AddNode(name, is_resource ? ops::kVarHandleOp : ops::kVariableV2));
  variable->SetAttr("dtype", AttrValue::Type(DType::kFloat));
  variable->SetAttr("shape", AttrValue::OfShape(Shape({kSide, kSide})));
  variable->SetAttr("container", AttrValue::String(""));
  variable->SetAttr("shared_name", AttrValue::String(is_resource ? name : ""));
  PF_ASSIGN_OR_RETURN(Node* const read,
                      graph->AddNode(absl::StrCat(name, is_resource ? "/Read/ReadVariableOp" : "/read"),
                                     is_resource ? ops::kReadVariableOp : ops::kIdentity));
  read->SetAttr(is_resource ? "dtype" : "T", AttrValue::Type(DType::kFloat));
  graph->AddInput(read, {variable, 0});
  return read;
}

absl::Status WriteGraph(const Request& request) {
  Graph graph;
  PF_ASSIGN_OR_RETURN(Node * last, graph.AddNode("x", ops::kPlaceholder));
  last->SetAttr("dtype", AttrValue::Type(DType::kFloat));
  last->SetAttr("shape", AttrValue::OfShape(Shape({1, kSide})));
  for (int64_t i = 0; i < request.matrices; ++i) {
    PF_ASSIGN_OR_RETURN(Node* const kernel, AddVariable(NameOf(i), request.is_resource, &graph));
    const std::string layer = absl::StrFormat("layer_%05d", i);
    PF_ASSIGN_OR_RETURN(Node* const product, graph.AddNode(absl::StrCat(layer, "/MatMul"), ops::kMatMul));
    product->SetAttr("T", AttrValue::Type(DType::kFloat));
    product->SetAttr("transpose_a", AttrValue::Bool(false));
    product->SetAttr("transpose_b", AttrValue::Bool(false));
    graph.AddInput(product, {last, 0});
    graph.AddInput(product, {kernel, 0});
    const bool is_last = i + 1 == request.matrices;
    PF_ASSIGN_OR_RETURN(last, graph.AddNode(is_last ? "y" : absl::StrCat(layer, "/Relu"), ops::kRelu));
    last->SetAttr("T", AttrValue::Type(DType::kFloat));
    graph.AddInput(last, {product, 0});
  }
  return SaveModel(RealFileSystem(), graph, request.graph);
}

absl::Status Run(const Request& request) {
  PF_RETURN_IF_ERROR(WriteBundle(request));
  return request.graph.empty() ? absl::OkStatus() : WriteGraph(request);
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  const std::string kind = argc == 6 ? argv[4] : "";
  permafrost::Request request;
  if (argc == 4 || kind == "resource" || kind == "ref") {
    request.prefix = argv[1];
    request.matrices = static_cast<int64_t>(std::atoi(argv[2]) * 1e6 / permafrost::kMatrixBytes) + 1;
    request.shards = std::atoi(argv[3]);
    request.is_resource = kind == "resource";
    if (argc == 6) request.graph = argv[5];
  }
  if (request.shards < 1 || std::atoi(argv[2]) < 1) {
    std::fprintf(stderr, "usage: make_checkpoint PREFIX MEGABYTES SHARDS [resource|ref GRAPH]\n");
    return 2;
  }
  const absl::Status status = permafrost::Run(request);
  if (status.ok()) return 0;
  std::fprintf(stderr, "make_checkpoint: %s\n", std::string(status.message()).c_str());
  return 1;
}
