// Draws graphs from the grammar of the fuzzers and computes them, for comparison with TensorFlow.
//
//   draw_graphs FOLDER FIRST_SEED COUNT MOST_NODES
//
// Writes for each seed FOLDER/SEED.pb, in which the inputs are constants; FOLDER/SEED.outputs, with a name of an output
// on each line; and FOLDER/SEED.results.pb, with a constant r0, r1, ... for each output. The results come from a
// session that gets the inputs as feeds. A graph that fails has FOLDER/SEED.error in the place of results.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/wire.h"
#include "io/formats/graphdef.h"
#include "runtime_check/session.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/graph_grammar.h"

namespace permafrost {
namespace {

void Write(const std::string& path, absl::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.good()) {
    std::fprintf(stderr, "draw_graphs: cannot write %s\n", path.c_str());
    std::exit(1);
  }
}

std::string Encoded(const Graph& graph) {
  StringSink sink;
  return WriteGraphDef(graph, &sink).ok() ? sink.text() : "";
}

absl::StatusOr<std::vector<Tensor>> Compute(const DrawnGraph& drawn) {
  SessionOptions options;
  options.memory_limit = int64_t{64} << 20;
  absl::StatusOr<std::unique_ptr<Session>> session =
      Session::Create(*drawn.graph, drawn.inputs, drawn.outputs, options);
  if (!session.ok()) return session.status();
  return (*session)->Run(drawn.feeds);
}

void DrawOne(const std::string& prefix, uint64_t seed, int most_nodes) {
  Choices choices(seed);
  GrammarOptions options;
  options.most_nodes = most_nodes;
  options.may_be_wrong = false;
  options.may_be_extreme = false;
  const DrawnGraph drawn = DrawGraph(&choices, options);
  const absl::StatusOr<std::vector<Tensor>> results = Compute(drawn);
  Write(prefix + ".outputs", absl::StrJoin(drawn.outputs, "\n"));
  if (results.ok()) {
    Graph holder;
    for (size_t i = 0; i < results->size(); ++i) (void)holder.AddConst(absl::StrCat("r", i), (*results)[i]);
    Write(prefix + ".results.pb", Encoded(holder));
  } else {
    Write(prefix + ".error", results.status().ToString());
  }
  for (size_t i = 0; i < drawn.inputs.size(); ++i) {
    Node* node = drawn.graph->Find(drawn.inputs[i]);
    node->ClearAttrs();
    node->set_op(ops::kConst);
    node->SetAttr("dtype", AttrValue::Type(drawn.feeds[i].dtype()));
    node->SetAttr("value", AttrValue::OfTensor(drawn.feeds[i]));
  }
  Write(prefix + ".pb", Encoded(*drawn.graph));
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: draw_graphs FOLDER FIRST_SEED COUNT MOST_NODES\n");
    return 2;
  }
  const uint64_t first = std::strtoull(argv[2], nullptr, 10), count = std::strtoull(argv[3], nullptr, 10);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    permafrost::DrawOne(absl::StrCat(argv[1], "/", seed), seed, std::atoi(argv[4]));
  }
  return 0;
}
