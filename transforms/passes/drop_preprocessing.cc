// Removes the nodes that prepare images, so that the caller prepares them.
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/preprocessing_chain.h"

namespace permafrost {
namespace {

struct Params {
  std::string input;
};

absl::StatusOr<int64_t> Drop(Graph* graph, const Params& params, PassContext* context) {
  int64_t rewrites = 0;
  for (const PreprocessingChain& chain : FindPreprocessing(*graph)) {
    if (!params.input.empty() && chain.placeholder->name() != params.input) continue;
    if (chain.nodes.empty()) {
      if (!chain.placeholder->uses().empty()) {
        context->MissIfWanted(*chain.placeholder, "is read by ", chain.placeholder->uses()[0].consumer->Describe(),
                              ", expected a node that only scales, shifts, casts or reorders channels");
      }
      continue;
    }
    const bool is_float = TypeAttr(*chain.end().node, "T").value_or(DType::kFloat) == DType::kFloat;
    if (!is_float || (chain.dtype == DType::kFloat && chain.map.IsIdentity())) continue;
    std::vector<const Node*> matched = {chain.placeholder};
    matched.insert(matched.end(), chain.nodes.begin(), chain.nodes.end());
    const RewriteScope rewrite(context, graph, matched);
    if (!rewrite) continue;
    const std::string name(chain.placeholder->name());
    Node* placeholder = chain.placeholder;
    PF_RETURN_IF_ERROR(RemoveChain(graph, chain, {placeholder, 0}));
    placeholder->SetAttr("dtype", AttrValue::Type(DType::kFloat));
    SetInputMap(placeholder, Compose(InputMapOf(*placeholder), chain.map));
    ++rewrites;
    context->Note(absl::StrCat("input '", name, "' now takes ", chain.map.ToString(), ", where v is what it took (",
                               DTypeName(chain.dtype), "); the inverse is ", Inverse(chain.map).ToString()));
  }
  return rewrites;
}

}  // namespace

// Cuts off the nodes that prepare an image input: the caller does their work.
//
//   Conv2D(Mul(Sub(Cast x, mean), scale), w)   =>   Conv2D(x, w), where x is float
//
// Recognises Cast, Add, Sub, Mul, RealDiv and BiasAdd with constants of one value, or of one per channel, and the
// reversal of the channels (ReverseV2, x[..., ::-1]). The first note tells what the input takes now and how to compute
// the old input from it. Verification feeds the graphs before and after with matching images.
//
// Leaves an input unchanged if the first node that reads it is none of these, has a second reader or is declared.
DEFINE_PASS(drop_preprocessing) {
  return Pass<Params>("Removes the nodes at an image input that scale, shift, cast or reorder channels.")
      .Why("The app prepares images anyway, and does it while it reads them.")
      .Param("input", &Params::input, "Name of the input; all image inputs if empty.")
      .ChangesInterface("an image input takes prepared images as float")
      .Numerics(Within(1e-5))
      .Idempotent()
      .Run(Drop);
}

}  // namespace permafrost
