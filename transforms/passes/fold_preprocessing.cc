// Moves scale, mean, channel order and an integer type of image inputs into the first convolutions.
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/channel_scaling.h"
#include "transforms/rewrites/colocation.h"
#include "transforms/rewrites/image_windows.h"
#include "transforms/rewrites/preprocessing_chain.h"

namespace permafrost {
namespace {

struct Params {
  std::string mean;
  std::string std;
  std::string order = "rgb";
  std::string input = "same";
  std::string name;
};

absl::StatusOr<std::vector<double>> NumbersOf(absl::string_view key, const std::string& text, double otherwise) {
  if (text.empty()) return std::vector<double>{otherwise};
  std::vector<double> numbers;
  for (const absl::string_view piece : absl::StrSplit(text, ',')) {
    double number = 0;
    if (!absl::SimpleAtod(piece, &number) || !std::isfinite(number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter '", key, "': found '", text, "', expected one number, or one for each channel"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

// The change of the interface that the arguments demand: the map from the new input to the old one, and the new type.
struct Demand {
  ChannelMap to_old;
  bool wants_uint8 = false;
  bool wants_float = false;
};

absl::StatusOr<Demand> DemandOf(const Params& params) {
  Demand demand;
  if (params.order != "rgb" && params.order != "bgr") {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'order': found '", params.order, "', expected rgb or bgr"));
  }
  if (params.input != "same" && params.input != "float" && params.input != "uint8") {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'input': found '", params.input, "', expected same, float or uint8"));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<double> mean, NumbersOf("mean", params.mean, 0));
  PF_ASSIGN_OR_RETURN(const std::vector<double> deviation, NumbersOf("std", params.std, 1));
  if (mean.size() != 1 && deviation.size() != 1 && mean.size() != deviation.size()) {
    return absl::InvalidArgumentError(absl::StrCat("parameter 'mean' has ", mean.size(), " values and 'std' has ",
                                                   deviation.size(), ", expected as many, or one"));
  }
  const size_t channels = std::max(mean.size(), deviation.size());
  demand.to_old.scale.clear();
  demand.to_old.offset.clear();
  for (size_t c = 0; c < channels; ++c) {
    const double divisor = deviation[deviation.size() == 1 ? 0 : c];
    demand.to_old.scale.push_back(1 / divisor);
    demand.to_old.offset.push_back(-mean[mean.size() == 1 ? 0 : c] / divisor);
  }
  demand.to_old.is_reversed = params.order == "bgr";
  demand.wants_uint8 = params.input == "uint8";
  demand.wants_float = params.input == "float";
  if (demand.to_old.IsInvertible()) return demand;
  return absl::InvalidArgumentError("parameter 'std': expected values other than 0");
}

// A convolution that reads the prepared image, directly or through a Pad that only it reads.
struct Reader {
  Node* convolution = nullptr;
  Node* pad = nullptr;
  Tensor weights;
  Margin y, x;                 // The whole padding.
  bool knows_margins = false;  // False if SAME padding depends on a size that is not known.
  double pad_value = 0;
  WindowForms forms;
  Shape image;  // Of the convolution's input.

  bool is_padded() const { return !knows_margins || !y.is_zero() || !x.is_zero(); }
};

absl::StatusOr<Reader> ReaderOf(const Graph& graph, Use use, int64_t channels, int channel_dim,
                                const ShapeMap* shapes) {
  Reader reader;
  reader.convolution = use.consumer;
  if (use.index == 0 && (use.consumer->op() == ops::kPad || use.consumer->op() == ops::kPadV2)) {
    reader.pad = use.consumer;
    PF_RETURN_IF_ERROR(RequireUsedOnce(*reader.pad));
    if (reader.pad->num_inputs() != reader.pad->num_data_inputs()) return Blocked(*reader.pad, "has control inputs");
    use = reader.pad->uses()[0];
    reader.convolution = use.consumer;
  }
  Node* convolution = reader.convolution;
  if (convolution->op() != ops::kConv2D || use.index != 0) return Blocked(*convolution, "is no Conv2D");
  if (graph.IsInput(convolution)) return BlockedByEndpoint(*convolution);
  PF_RETURN_IF_ERROR(RequireUnmarked(*convolution));
  PF_ASSIGN_OR_RETURN(reader.weights, WeightsOf(*convolution));
  const Shape& shape = reader.weights.shape();
  if (shape.rank() != 4 || shape.num_elements() == 0) return Blocked(*convolution, "has no weights of rank 4");
  PF_ASSIGN_OR_RETURN(reader.forms, WindowFormsOf(*convolution, shape.dim(0), shape.dim(1)));
  if (reader.forms.channel_dim != channel_dim) return Blocked(*convolution, "has another layout than the input");
  if (shape.dim(2) != channels) {
    return Blocked(*convolution, absl::StrCat("has groups: weights for ", shape.dim(2), " of ", channels, " channels"));
  }
  reader.image = KnownShape(convolution->input(0), shapes);
  const auto size = [&](int dim) {
    return reader.image.has_rank() && reader.image.rank() == 4 ? reader.image.dim(dim) : kUnknownDim;
  };
  if (reader.forms.padding == "EXPLICIT") {
    reader.y = reader.forms.y.explicit_padding;
    reader.x = reader.forms.x.explicit_padding;
    reader.knows_margins = true;
  } else if (reader.forms.padding == "SAME") {
    reader.knows_margins = reader.forms.y.SamePadding(size(reader.forms.y.dim), &reader.y) &&
                           reader.forms.x.SamePadding(size(reader.forms.x.dim), &reader.x);
  } else {
    reader.knows_margins = true;
  }
  if (reader.pad == nullptr) return reader;
  if (reader.is_padded())
    return Blocked(*convolution, "pads besides the Pad before it", WayOut{"run fold_pad_into_conv"});
  PF_ASSIGN_OR_RETURN(const std::vector<Margin> margins, MarginsAt(*reader.pad, 1, 4));
  if (!margins[0].is_zero() || !margins[static_cast<size_t>(channel_dim)].is_zero()) {
    return Blocked(*reader.pad, "pads the batch or the channels");
  }
  if (reader.pad->op() == ops::kPadV2) {
    const Node* constant = ConstantBehind(reader.pad->input(2));
    if (constant == nullptr) return BlockedByVariable(*reader.pad, 2, "pads with a value that is not constant");
    PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*constant));
    if (value.dtype() != DType::kFloat || value.num_elements() != 1) return Blocked(*reader.pad, "pads with no float");
    reader.pad_value = value.elements<float>()[0];
  }
  reader.y = margins[static_cast<size_t>(reader.forms.y.dim)];
  reader.x = margins[static_cast<size_t>(reader.forms.x.dim)];
  return reader;
}

// The value of the input, by its channels, that becomes `value` in every prepared channel.
std::vector<double> SourceOf(const ChannelMap& map, double value, size_t channels) {
  const ChannelMap inverse = Inverse(map);
  std::vector<double> source(channels);
  for (size_t c = 0; c < channels; ++c) source[c] = inverse.ScaleOf(c) * value + inverse.OffsetOf(c);
  return source;
}

// Returns the value with which the input has to be padded, so that the border becomes what it was: one for all
// channels.
std::optional<float> BorderOf(const Reader& reader, const ChannelMap& map, size_t channels) {
  const std::vector<double> source = SourceOf(map, reader.pad_value, channels);
  for (const double value : source) {
    if (static_cast<float>(value) != static_cast<float>(source[0])) return std::nullopt;
  }
  return static_cast<float>(source[0]);
}

// Sets the weights of a convolution over prepared channels to those over the channels of the input.
Tensor MovedWeights(const Tensor& weights, const ChannelMap& map) {
  const auto channels = static_cast<size_t>(weights.shape().dim(2)),
             outputs = static_cast<size_t>(weights.shape().dim(3));
  const auto values = weights.elements<float>();
  std::vector<float> moved(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t channel = i / outputs % channels;
    const size_t source = map.is_reversed ? channels - 1 - channel : channel;
    moved[i + (source - channel) * outputs] = static_cast<float>(values[i] * map.ScaleOf(channel));
  }
  return Tensor::FromVector(weights.shape(), std::move(moved));
}

// Returns what the offsets of the channels add to each output of a convolution.
std::vector<double> BiasOf(const Tensor& weights, const ChannelMap& map) {
  const auto channels = static_cast<size_t>(weights.shape().dim(2)),
             outputs = static_cast<size_t>(weights.shape().dim(3));
  const auto values = weights.elements<float>();
  std::vector<double> bias(outputs, 0);
  for (size_t i = 0; i < values.size(); ++i) bias[i % outputs] += values[i] * map.OffsetOf(i / outputs % channels);
  return bias;
}

// Adds a bias to the result of a convolution: to the constant of a BiasAdd that is its only reader, or by a new
// BiasAdd, which takes the convolution's name.
absl::Status AddBias(Graph* graph, Node* convolution, const std::vector<double>& bias, bool is_nchw) {
  if (convolution->uses().size() == 1 && !graph->IsEndpoint(convolution)) {
    Node* next = convolution->uses()[0].consumer;
    const Node* constant = next->op() == ops::kBiasAdd && convolution->uses()[0].index == 0 && !graph->IsInput(next)
                               ? ConstantBehind(next->input(1))
                               : nullptr;
    absl::StatusOr<Tensor> old = constant == nullptr ? absl::NotFoundError("") : ConstValue(*constant);
    if (old.ok() && old->dtype() == DType::kFloat && old->num_elements() == static_cast<int64_t>(bias.size())) {
      std::vector<float> sum;
      for (size_t i = 0; i < bias.size(); ++i) sum.push_back(static_cast<float>(old->elements<float>()[i] + bias[i]));
      return SetConstantInput(graph, next, 1, Tensor::FromVector(old->shape(), std::move(sum)));
    }
  }
  PF_ASSIGN_OR_RETURN(Node * inner, graph->AddNode(graph->UniqueName(absl::StrCat(convolution->name(), "/folded")),
                                                   convolution->op(), convolution));
  inner->CopyAttrs(*convolution);
  inner->set_device(convolution->device());
  for (int i = 0; i < convolution->num_inputs(); ++i) graph->AddInput(inner, convolution->input(i));
  graph->ClearInputs(convolution);
  convolution->ClearAttrs();
  convolution->set_op(ops::kBiasAdd);
  convolution->SetAttr("T", AttrValue::Type(DType::kFloat));
  if (is_nchw) convolution->SetAttr("data_format", AttrValue::String("NCHW"));
  const std::vector<float> values(bias.begin(), bias.end());
  PF_ASSIGN_OR_RETURN(
      Node * constant,
      graph->AddConst(graph->UniqueName(absl::StrCat(convolution->name(), "/preprocessing_bias")),
                      Tensor::FromVector<float>({static_cast<int64_t>(values.size())}, values), convolution));
  constant->set_device(convolution->device());
  graph->AddInput(convolution, {inner, 0});
  graph->AddInput(convolution, {constant, 0});
  return absl::OkStatus();
}

class Folder {
 public:
  Folder(Graph* graph, const PreprocessingChain& chain, const Demand& demand, const ShapeMap* shapes)
      : graph_(graph), chain_(chain), demand_(demand), shapes_(shapes) {
    ChannelMap to_old = demand.to_old;
    to_old.channel_dim = chain.map.channel_dim;
    map_ = Compose(to_old, chain.map);
  }

  // Decides. A reason why nothing can move into convolutions is in why_not().
  absl::Status Decide() {
    const Shape shape = ShapeAttr(*chain_.placeholder, "shape").value_or(Shape::UnknownRank());
    channels_ = shape.has_rank() && shape.rank() == 4 ? shape.dim(map_.channel_dim) : kUnknownDim;
    const auto given = static_cast<int64_t>(map_.num_channels());
    if (given > 1 && given != channels_) {
      return Blocked(*chain_.placeholder, absl::StrCat("has not the ", given, " channels of the arguments"));
    }
    if (channels_ <= 0) {
      why_not_ = Blocked(*chain_.placeholder, "has an unknown number of channels");
      return absl::OkStatus();
    }
    if (chain_.end().node->uses().empty()) why_not_ = Blocked(*chain_.placeholder, "has no readers");
    for (const Use& use : chain_.end().node->uses()) {
      if (use.consumer->input(static_cast<int>(use.index)).is_control()) continue;
      absl::StatusOr<Reader> reader = ReaderOf(*graph_, use, channels_, map_.channel_dim, shapes_);
      if (!reader.ok()) {
        if (!absl::IsFailedPrecondition(reader.status())) return reader.status();
        why_not_ = reader.status();
        return absl::OkStatus();
      }
      readers_.push_back(*std::move(reader));
    }
    return absl::OkStatus();
  }

  const absl::Status& why_not() const { return why_not_; }
  const ChannelMap& map() const { return map_; }
  bool changes_interface() const { return !demand_.to_old.IsIdentity() || type_after() != chain_.dtype; }
  DType type_after() const {
    if (demand_.wants_uint8) return DType::kUint8;
    return demand_.wants_float ? DType::kFloat : chain_.dtype;
  }

  std::vector<const Node*> Matched() const {
    std::vector<const Node*> matched = {chain_.placeholder};
    matched.insert(matched.end(), chain_.nodes.begin(), chain_.nodes.end());
    for (const Reader& reader : readers_) matched.push_back(reader.convolution);
    return matched;
  }

  // True if there would be as many nodes as before at the input, and nothing else changes.
  bool IsVain() const {
    return !changes_interface() && (map_.IsIdentity() || !why_not_.ok() || (AnyKeepsMean() && !DoesMore()));
  }

  absl::Status Fold(std::string* outside) {
    Node* placeholder = chain_.placeholder;
    const DType type = type_after();
    const ChannelMap before = InputMapOf(*placeholder);
    if (type != chain_.dtype) placeholder->SetAttr("dtype", AttrValue::Type(type));
    const std::vector<Use> readers = graph_->UsesOf(chain_.end());
    PF_RETURN_IF_ERROR(MakeCast(type));
    TensorRef prepared = as_float_;
    if (!why_not_.ok()) {
      PF_RETURN_IF_ERROR(PrepareOutside(&prepared));
      *outside = map_.IsIdentity() ? "" : std::string(why_not_.message());
    }
    for (const Use& use : readers) graph_->SetInput(use.consumer, static_cast<int>(use.index), prepared);
    if (!chain_.nodes.empty()) PF_RETURN_IF_ERROR(RemoveChain(graph_, chain_, prepared));
    if (why_not_.ok()) {
      TensorRef shifted;
      for (const Reader& reader : readers_) {
        PF_RETURN_IF_ERROR(FoldInto(reader, &shifted));
        if (shifted.node != nullptr) {
          *outside =
              "the mean, because a convolution pads the image, and the means differ by channel or the padding depends "
              "on an unknown size";
        }
      }
    }
    if (changes_interface()) {
      ChannelMap to_new = Inverse(demand_.to_old);
      to_new.channel_dim = map_.channel_dim;
      SetInputMap(placeholder, Compose(before, to_new));
    }
    return absl::OkStatus();
  }

 private:
  bool FoldsMean(const Reader& reader) const {
    if (!reader.is_padded()) return true;
    const std::optional<float> border = BorderOf(reader, map_, static_cast<size_t>(channels_));
    return border.has_value() && (reader.knows_margins || *border == 0);
  }
  bool AnyKeepsMean() const {
    for (const Reader& reader : readers_) {
      if (!FoldsMean(reader)) return true;
    }
    return false;
  }
  // True if something besides one subtraction would go.
  bool DoesMore() const {
    size_t arithmetic = 0;
    for (const Node* node : chain_.nodes) arithmetic += node->op() == ops::kCast ? 0 : 1;
    return arithmetic > 1;
  }

  absl::Status MakeCast(DType type) {
    Node* placeholder = chain_.placeholder;
    as_float_ = {placeholder, 0};
    if (type == DType::kFloat) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(Node * cast, graph_->AddNode(graph_->UniqueName(absl::StrCat(placeholder->name(), "/as_float")),
                                                     ops::kCast, placeholder->next()));
    cast->SetAttr("SrcT", AttrValue::Type(type));
    cast->SetAttr("DstT", AttrValue::Type(DType::kFloat));
    cast->set_device(placeholder->device());
    graph_->AddInput(cast, {placeholder, 0});
    as_float_ = {cast, 0};
    return absl::OkStatus();
  }

  absl::StatusOr<TensorRef> Combine(TensorRef data, Op op, const char* suffix, const std::vector<double>& numbers) {
    std::vector<float> values(numbers.begin(), numbers.end());
    const auto count = static_cast<int64_t>(values.size());
    const bool is_nchw = map_.channel_dim == 1 && count > 1;
    const std::string base = absl::StrCat(chain_.placeholder->name(), "/", suffix);
    PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(graph_->UniqueName(base), op, data.node->next()));
    PF_ASSIGN_OR_RETURN(
        Node * constant,
        graph_->AddConst(graph_->UniqueName(absl::StrCat(base, "/value")),
                         Tensor::FromVector(is_nchw ? Shape({count, 1, 1}) : Shape({count}), std::move(values)), node));
    constant->set_device(chain_.placeholder->device());
    node->set_device(chain_.placeholder->device());
    node->SetAttr("T", AttrValue::Type(DType::kFloat));
    graph_->AddInput(node, data);
    graph_->AddInput(node, {constant, 0});
    return TensorRef{node, 0};
  }

  // Makes nodes that compute the whole map, where no convolution takes it.
  absl::Status PrepareOutside(TensorRef* data) {
    if (map_.is_reversed) {
      const std::string base = absl::StrCat(chain_.placeholder->name(), "/reversed");
      PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(graph_->UniqueName(base), ops::kReverseV2, data->node->next()));
      PF_ASSIGN_OR_RETURN(Node * axis, graph_->AddConst(graph_->UniqueName(absl::StrCat(base, "/axis")),
                                                        Tensor::FromVector<int32_t>({1}, {map_.channel_dim}), node));
      node->SetAttr("T", AttrValue::Type(DType::kFloat));
      node->SetAttr("Tidx", AttrValue::Type(DType::kInt32));
      graph_->AddInput(node, *data);
      graph_->AddInput(node, {axis, 0});
      *data = {node, 0};
    }
    ChannelMap rest = map_;
    rest.is_reversed = false;
    ChannelMap scaled = rest, shifted = rest;
    scaled.offset = {0};
    shifted.scale = {1};
    if (!scaled.IsIdentity()) {
      PF_ASSIGN_OR_RETURN(*data, Combine(*data, ops::kMul, "scaled", map_.scale));
    }
    if (!shifted.IsIdentity()) {
      PF_ASSIGN_OR_RETURN(*data, Combine(*data, ops::kAddV2, "shifted", map_.offset));
    }
    return absl::OkStatus();
  }

  // Folds the map into one convolution. *shifted is the input minus the mean, made when the first reader needs it.
  absl::Status FoldInto(const Reader& reader, TensorRef* shifted) {
    Node* convolution = reader.convolution;
    Node* head = reader.pad != nullptr ? reader.pad : convolution;
    ChannelMap map = map_;
    const std::optional<float> border = BorderOf(reader, map_, static_cast<size_t>(channels_));
    if (!FoldsMean(reader)) {
      // The border of (input - source of the border) is 0 again.
      std::vector<double> source = SourceOf(map_, reader.pad_value, static_cast<size_t>(channels_));
      if (shifted->node == nullptr) {
        PF_ASSIGN_OR_RETURN(*shifted, Combine(as_float_, ops::kSub, "minus_mean", source));
      }
      graph_->SetInput(head, 0, *shifted);
      if (reader.pad_value != 0) {
        PF_RETURN_IF_ERROR(SetConstantInput(graph_, reader.pad, 2, Tensor::Scalar<float>(0)));
      }
      for (double& offset : map.offset) offset = reader.pad_value;
    } else if (reader.is_padded() && *border != 0) {
      PF_RETURN_IF_ERROR(PadWith(reader, *border));
    } else if (reader.pad != nullptr && reader.pad->op() == ops::kPadV2) {
      PF_RETURN_IF_ERROR(SetConstantInput(graph_, reader.pad, 2, Tensor::Scalar<float>(border.value_or(0))));
    }
    const std::vector<double> bias = BiasOf(reader.weights, map);
    PF_RETURN_IF_ERROR(SetConstantInput(graph_, convolution, kWeightsInput, MovedWeights(reader.weights, map)));
    for (const double value : bias) {
      if (value != 0) return AddBias(graph_, convolution, bias, map.channel_dim == 1);
    }
    return absl::OkStatus();
  }

  // Pads the input of a convolution with `border` instead of with its own zeros, or those of its Pad.
  absl::Status PadWith(const Reader& reader, float border) {
    Node* convolution = reader.convolution;
    if (reader.pad != nullptr) {
      if (reader.pad->op() == ops::kPadV2) {
        return SetConstantInput(graph_, reader.pad, 2, Tensor::Scalar<float>(border));
      }
      PF_ASSIGN_OR_RETURN(Node * value, graph_->AddConst(graph_->UniqueName(absl::StrCat(reader.pad->name(), "/value")),
                                                         Tensor::Scalar<float>(border), reader.pad));
      reader.pad->set_op(ops::kPadV2);
      graph_->AddInput(reader.pad, {value, 0});
      return absl::OkStatus();
    }
    std::vector<int32_t> margins(8, 0);
    for (const auto& [dim, margin] :
         {std::make_pair(reader.forms.y.dim, reader.y), std::make_pair(reader.forms.x.dim, reader.x)}) {
      margins[static_cast<size_t>(2 * dim)] = static_cast<int32_t>(margin.before);
      margins[static_cast<size_t>(2 * dim + 1)] = static_cast<int32_t>(margin.after);
    }
    const std::string base = absl::StrCat(convolution->name(), "/padded");
    PF_ASSIGN_OR_RETURN(Node * pad, graph_->AddNode(graph_->UniqueName(base), ops::kPadV2, convolution));
    PF_ASSIGN_OR_RETURN(Node * paddings,
                        graph_->AddConst(graph_->UniqueName(absl::StrCat(base, "/paddings")),
                                         Tensor::FromVector<int32_t>({4, 2}, std::move(margins)), pad));
    PF_ASSIGN_OR_RETURN(Node * value, graph_->AddConst(graph_->UniqueName(absl::StrCat(base, "/value")),
                                                       Tensor::Scalar<float>(border), pad));
    pad->SetAttr("T", AttrValue::Type(DType::kFloat));
    pad->SetAttr("Tpaddings", AttrValue::Type(DType::kInt32));
    pad->set_device(convolution->device());
    graph_->AddInput(pad, convolution->input(0));
    graph_->AddInput(pad, {paddings, 0});
    graph_->AddInput(pad, {value, 0});
    graph_->SetInput(convolution, 0, {pad, 0});
    SetPadding(convolution, reader.forms, {}, {}, Shape::UnknownRank());
    return absl::OkStatus();
  }

  Graph* graph_;
  const PreprocessingChain& chain_;
  const Demand& demand_;
  const ShapeMap* shapes_;
  ChannelMap map_;  // From the input after the pass to what the first convolutions read before.
  int64_t channels_ = kUnknownDim;
  std::vector<Reader> readers_;
  absl::Status why_not_;
  TensorRef as_float_;
};

absl::StatusOr<int64_t> Fold(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const Demand demand, DemandOf(params));
  const std::vector<PreprocessingChain> chains = FindPreprocessing(*graph);
  const absl::StatusOr<ShapeMap> shapes = InferShapes(*graph);
  int64_t rewrites = 0;
  bool is_found = params.name.empty();
  for (const PreprocessingChain& chain : chains) {
    if (!params.name.empty() && chain.placeholder->name() != params.name) continue;
    is_found = true;
    Folder folder(graph, chain, demand, shapes.ok() ? &*shapes : nullptr);
    const absl::Status decided = folder.Decide();
    if (absl::IsFailedPrecondition(decided)) {
      context->Miss(*chain.placeholder, decided);
      continue;
    }
    PF_RETURN_IF_ERROR(decided);
    if (folder.IsVain()) {
      if (!folder.why_not().ok() && !chain.nodes.empty()) context->Miss(*chain.placeholder, folder.why_not());
      continue;
    }
    const RewriteScope rewrite(context, graph, folder.Matched());
    if (!rewrite) continue;
    const std::string name(chain.placeholder->name());
    std::string outside;
    PF_RETURN_IF_ERROR(folder.Fold(&outside));
    ++rewrites;
    if (folder.changes_interface()) {
      context->Note(absl::StrCat("input '", name, "' now takes v (", DTypeName(folder.type_after()),
                                 "), where it took ", demand.to_old.ToString()));
    }
    if (!outside.empty()) context->Note(absl::StrCat("input '", name, "': not in a convolution: ", outside));
  }
  if (!is_found) context->NoteAbsent(absl::StrCat("no image input is named '", params.name, "'"));
  if (rewrites > 0) DropDanglingColocations(graph);
  return rewrites;
}

}  // namespace

// Moves the preparation of images into the first convolution: the input takes pixels, and nothing is computed for it.
//
//   Conv2D c((x - mean) / std, w)   =>   BiasAdd c(Conv2D(x, w / std), -sum(w * mean / std))
//
// With arguments, an input that took (v - mean) / std takes v: the arguments are those that the app used. mean and std
// are one number or one for each channel, in the order that the model was trained with; order=bgr reverses the channels
// of the new input; input=uint8 makes it an input of bytes, with a Cast before the convolution. Without arguments, the
// nodes that the graph already has for this (as drop_preprocessing recognises them) go into the convolution.
//
// Borders stay exact. A convolution with padding (its own or a Pad before it) pads the prepared image with zeros, which
// stand for pixels of the value mean. If that is one value for all channels, a PadV2 with it replaces the padding. If
// it differs by channel, or the size of the padding is not known, the subtraction of the mean stays in the graph, while
// scale and order are folded.
//
// Where the first reader is no Conv2D with constant weights, nodes prepare the image, and a note gives the reason.
// Verification feeds the graphs before and after with matching images.
DEFINE_PASS(fold_preprocessing) {
  return Pass<Params>("Moves scale, mean, channel order and an integer input into the first convolution.")
      .Why("The app passes pixels as the camera delivers them, and no time is spent on their preparation.")
      .Param("mean", &Params::mean, "Mean that the app subtracted: one number, or one for each channel.")
      .Param("std", &Params::std, "Deviation by which the app divided: one number, or one for each channel.")
      .Param("order", &Params::order,
             "Order of the channels of the new input relative to the old one: rgb (same) or bgr.")
      .Param("input", &Params::input, "Type of the new input: same, float or uint8.")
      .Param("name", &Params::name, "Name of the input; all image inputs if empty.")
      .ChangesInterface("with arguments, an image input takes other values, or uint8 instead of float")
      .Numerics(Within(1e-4))
      .Run(Fold);
}

}  // namespace permafrost
