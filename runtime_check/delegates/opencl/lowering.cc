// Makes the launches of each kind of node, and orders them.
#include "runtime_check/delegates/opencl/lowering.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/fusion_stages.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/opencl/step_code.h"
#include "runtime_check/delegates/opencl/weights.h"
#include "runtime_check/kernels/sampling.h"

namespace permafrost {
namespace opencl {
namespace {

using onednn::Chain;
using onednn::Chains;
using onednn::FusedPads;
using onednn::NodeKind;
using onednn::ParsedNode;
using onednn::ParsedPartition;
using onednn::Product;
using onednn::Rows;
using onednn::Step;
using onednn::StepGraph;
using onednn::StepGroups;
using onednn::Storages;
using onednn::WindowGeometry;

constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();

int64_t Blocks(int64_t channels) { return (channels + 3) / 4; }

class Lowering {
 public:
  explicit Lowering(ParsedPartition parsed)
      : parsed_(std::move(parsed)),
        storages_(onednn::FindStorages(parsed_)),
        graph_(onednn::MakeSteps(parsed_, &storages_)),
        pads_(onednn::FusePads(storages_, graph_, &parsed_)),
        chains_(onednn::ChainSteps(parsed_, storages_, &graph_, onednn::PostSteps::kAny)),
        groups_(onednn::GroupSteps(storages_, graph_, chains_)) {}

  absl::StatusOr<LoweredPartition> Run() {
    for (size_t i = 0; i < parsed_.nodes.size(); ++i) {
      if (!pads_.is_fused[i]) Make(i);
    }
    MakeGroups();
    std::vector<int> order(made_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [this](int a, int b) { return made_[a].position < made_[b].position; });
    LoweredPartition result;
    for (const int number : order) {
      Launch& launch = made_[number].launch;
      if (launch.items > kMostElements) return TooLarge(launch.name);
      result.launches.push_back(std::move(launch));
    }
    for (const int64_t bytes : storages_.bytes) {
      if (bytes / 4 > kMostElements) return TooLarge("a tensor");
    }
    if (constants_.size() > kMostElements) return TooLarge("the weights");
    result.constants = constants_.Take();
    result.storage = std::move(storages_.storage);
    result.bytes = std::move(storages_.bytes);
    result.checks = std::move(checks_);
    return result;
  }

 private:
  struct Made {
    int position;
    Launch launch;
  };

  static absl::Status TooLarge(absl::string_view name) {
    return absl::ResourceExhaustedError(absl::StrCat(name, " has more than 2^31 - 1 elements"));
  }

  // Adds the launch of a kernel in `file` for node `i`.
  void Add(size_t i, absl::string_view file, const std::string& kernel, const Table& table, int64_t items,
           std::string description, Launch launch) {
    launch.source = ProgramOf(file);
    Finish(i, kernel, table, items, std::move(description), static_cast<int>(i), std::move(launch));
  }
  void Finish(size_t i, const std::string& kernel, const Table& table, int64_t items, std::string description,
              int position, Launch launch) {
    launch.name = parsed_.NameOf(i);
    launch.description = std::move(description);
    launch.kernel = kernel;
    launch.table = constants_.AddWords(table.words());
    launch.items = items;
    made_.push_back({position, std::move(launch)});
  }

  const Shape& InputShape(size_t i, int input) const { return parsed_.Input(i, input).shape; }

  // Adds input `j` of node `i` to the arguments: a storage or a constant.
  void Read(size_t i, int j, Launch* launch, int64_t offset = 0) {
    const DelegateTensor& tensor = parsed_.Input(i, j);
    const int bytes = static_cast<int>(SizeOf(tensor.dtype));
    if (!tensor.constant.has_value()) {
      launch->Read(storages_.Input(i, j), offset, bytes);
      return;
    }
    // Positions of constants are in words; int64 indices are never constants.
    launch->Read(kConstants, constants_.AddBytes(tensor.constant->bytes()) * 4 / bytes + offset, bytes);
  }

  void Make(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    switch (node.kind) {
      case NodeKind::kElementwise:
      case NodeKind::kBatchNorm:
        break;
      case NodeKind::kAlias:
        if (storages_.is_copied[i]) {
          const int64_t count = parsed_.OutputShape(i).num_elements();
          CopyRuns(i, 0, count, count, 0, "copy");
        }
        break;
      case NodeKind::kConvolution:
      case NodeKind::kTransposedConvolution:
      case NodeKind::kMatMul:
        MakeWeighted(i);
        break;
      case NodeKind::kPool:
        MakePool(i);
        break;
      case NodeKind::kReduce:
        MakeReduce(i);
        break;
      case NodeKind::kConcat:
        MakeConcat(i);
        break;
      case NodeKind::kPad:
        MakePad(i);
        break;
      case NodeKind::kResize:
        MakeResize(i);
        break;
      case NodeKind::kSoftmax: {
        const Rows rows(parsed_.OutputShape(i));
        Launch launch;
        Read(i, 0, &launch);
        launch.Write(storages_.Output(i));
        Add(i, "rows.cl", "softmax", Table().Int(rows.channels), rows.rows, "softmax", std::move(launch));
        break;
      }
      case NodeKind::kBroadcast:
        MakeBroadcast(i);
        break;
      case NodeKind::kSelect:
        MakeSelect(i);
        break;
      case NodeKind::kGather:
        MakeGather(i);
        break;
      case NodeKind::kProduct:
        MakeProduct(i);
        break;
      case NodeKind::kNormalize:
        MakeNormalize(i);
        break;
      case NodeKind::kAttention:
        MakeAttention(i);
        break;
      case NodeKind::kView:
        MakeViews(i);
        break;
    }
  }

  // A convolution or matrix product, with the steps that follow it.
  void MakeWeighted(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    const Chain& chain = chains_.chains[i];
    Rows rows(parsed_.OutputShape(i));
    const int64_t channels = onednn::OutputChannels(node);
    rows.rows = rows.elements() / channels;
    rows.channels = channels;
    std::vector<Step> steps;
    if (node.has_bias) {
      Step& bias = steps.emplace_back(parsed_.OutputShape(i));
      bias.op = onednn::LoopOp::kAdd;
      bias.constants = onednn::FloatsOf(*parsed_.Input(i, 2).constant);
      bias.meeting = onednn::Meeting::kPerChannel;
    }
    steps.insert(steps.end(), chain.post_steps.begin(), chain.post_steps.end());
    // Each step continues the previous one, whose result is held under a number that no storage has.
    for (Step& step : steps) step.value = step.result = kValueInside;
    const int output = chain.steps.empty() ? storages_.Output(i) : graph_.steps[chain.steps.back()].result;
    const int input = pads_.input_of[i] != onednn::kNone ? pads_.input_of[i] : storages_.Input(i, parsed_.DataInput(i));
    int64_t images = 1;
    for (const Step& step : steps) {
      if (step.meeting == onednn::Meeting::kPerImage) images = step.images;
    }
    WeightedKernel kernel = KernelOf(node, rows.rows);
    kernel.table.Int(PackWeights(node, kernel, *parsed_.Input(i, node.weights).constant, &constants_));
    std::string description = kernel.description;
    for (const Step& step : steps) absl::StrAppend(&description, " + ", onednn::NameOf(step.op));
    Launch launch;
    launch.Read(input);
    launch.Write(output);
    launch.source = ProgramWithSteps(kernel.file, steps, rows, images, &constants_, &launch);
    Finish(i, kernel.name, kernel.table, kernel.items, std::move(description), chains_.end[i], std::move(launch));
  }

  void MakeGroups() {
    for (const std::vector<int>& group : groups_.groups) {
      std::vector<const Step*> steps;
      std::vector<int> results;
      for (const int member : group) {
        const Step& step = graph_.steps[member];
        steps.push_back(&step);
        const onednn::Readers& readers = graph_.readers[step.result];
        const auto is_outside = [&](int reader) { return groups_.group_of[reader] != groups_.group_of[member]; };
        if (readers.others > 0 || std::any_of(readers.steps.begin(), readers.steps.end(), is_outside)) {
          results.push_back(step.result);
        }
      }
      if (results.empty()) continue;  // The results have no readers.
      const Step& last = *steps.back();
      Launch launch = MakeElementwise(steps, results, &constants_);
      launch.name = parsed_.NameOf(static_cast<size_t>(last.node));
      made_.push_back({last.position, std::move(launch)});
    }
  }

  void MakePool(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    const WindowGeometry& window = node.window;
    Launch launch;
    Read(i, node.data, &launch);
    launch.Write(storages_.Output(i));
    Table table;
    table.Int(window.y.input).Int(window.x.input).Int(window.input_channels).Int(window.y.output).Int(window.x.output);
    table.Int(window.y.taps).Int(window.x.taps).Int(window.y.stride).Int(window.x.stride);
    table.Int(window.y.pad_before).Int(window.x.pad_before);
    Add(i, "pool.cl", node.is_average ? "average_pool" : "max_pool", table, parsed_.OutputShape(i).num_elements(),
        node.is_average ? "average pooling" : "maximum pooling", std::move(launch));
  }

  void MakeReduce(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    Launch launch;
    Read(i, node.data, &launch);
    launch.Write(storages_.Output(i));
    Table table;
    table.Int(node.reduced).Int(node.inner).Int(node.reduced_last);
    table.Float(node.is_mean ? static_cast<float>(node.reduced * node.reduced_last) : 1.0f);
    Add(i, "rows.cl", "reduce", table, node.outer * node.inner, node.is_mean ? "mean" : "sum", std::move(launch));
  }

  // Copies input `j` into the result, in runs of `run` elements to rows of `out_run`.
  void CopyRuns(size_t i, int j, int64_t run, int64_t out_run, int64_t position, std::string description) {
    Launch launch;
    Read(i, j, &launch);
    launch.Write(storages_.Output(i));
    Add(i, "copies.cl", "copy_runs", Table().Int(run).Int(out_run).Int(position), InputShape(i, j).num_elements(),
        std::move(description), std::move(launch));
  }

  void MakeConcat(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    const Shape& shape = parsed_.OutputShape(i);
    int64_t outer = 1, position = 0;
    for (int d = 0; d < node.axis; ++d) outer *= shape.dim(d);
    const int64_t out_run = shape.num_elements() / outer;
    for (int j = 0; j < node.num_values; ++j) {
      const int64_t run = InputShape(i, j).num_elements() / outer;
      CopyRuns(i, j, run, out_run, position, "concatenation");
      position += run;
    }
  }

  void MakePad(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    const Shape &image = InputShape(i, 0), &result = parsed_.OutputShape(i);
    Launch launch;
    Read(i, 0, &launch);
    launch.Write(storages_.Output(i));
    Table table;
    table.Int(image.dim(1)).Int(image.dim(2)).Int(image.dim(3)).Int(result.dim(1)).Int(result.dim(2));
    table.Int(node.pad_top).Int(node.pad_left);
    Add(i, "copies.cl", "pad", table, result.num_elements(), "pad", std::move(launch));
  }

  int64_t AddTaps(const std::vector<Tap>& taps) {
    Table table;
    for (const Tap& tap : taps) table.Int(tap.lower).Int(tap.upper).Float(tap.fraction);
    return constants_.AddWords(table.words());
  }

  void MakeResize(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    const Shape &image = InputShape(i, 0), &result = parsed_.OutputShape(i);
    const auto taps = node.is_bilinear ? &BilinearTaps : &NearestTaps;
    Launch launch;
    Read(i, 0, &launch);
    launch.Write(storages_.Output(i));
    Table table;
    table.Int(image.dim(1)).Int(image.dim(2)).Int(image.dim(3)).Int(result.dim(1)).Int(result.dim(2));
    table.Int(AddTaps(taps(image.dim(1), result.dim(1), node.align_corners, node.half_pixel_centers)));
    table.Int(AddTaps(taps(image.dim(2), result.dim(2), node.align_corners, node.half_pixel_centers)));
    Add(i, "copies.cl", node.is_bilinear ? "resize_bilinear" : "resize_nearest", table, result.num_elements(),
        node.is_bilinear ? "bilinear resize" : "nearest-neighbour resize", std::move(launch));
  }

  // A table of the dimensions of the shape, and the strides of each operand.
  static Table Dimensions(const Shape& shape, const std::vector<std::vector<int64_t>>& strides) {
    Table table;
    table.Int(shape.rank());
    for (int d = 0; d < shape.rank(); ++d) {
      table.Int(shape.dim(d));
      for (const std::vector<int64_t>& of : strides) table.Int(of[static_cast<size_t>(d)]);
    }
    return table;
  }

  void MakeBroadcast(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    const Shape& shape = parsed_.OutputShape(i);
    const std::string op(onednn::NameOf(node.loop));
    Launch launch;
    Read(i, 0, &launch);
    Read(i, 1, &launch);
    launch.Write(storages_.Output(i));
    launch.steps.emplace_back().op = node.loop;
    launch.source = ProgramOf("broadcast.cl", absl::StrCat("#define BROADCAST_OP op_", op, "\n"));
    Finish(i, "broadcast", Dimensions(shape, node.strides), shape.num_elements(), absl::StrCat(op, ", broadcast"),
           static_cast<int>(i), std::move(launch));
  }

  void MakeSelect(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    const Shape& shape = parsed_.OutputShape(i);
    Launch launch;
    for (int j = 0; j < 3; ++j) Read(i, j, &launch);
    launch.Write(storages_.Output(i));
    Add(i, "copies.cl", "choose", Dimensions(shape, node.strides), shape.num_elements(), "select", std::move(launch));
  }

  void MakeGather(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    const DelegateTensor& indices = parsed_.Input(i, 1);
    const bool is_wide = indices.dtype == DType::kInt64;
    const int64_t count = indices.shape.num_elements();
    Launch launch;
    Read(i, 0, &launch);
    Read(i, 1, &launch);
    launch.Write(storages_.Output(i));
    checks_.push_back({storages_.Input(i, 1), count, node.reduced, is_wide, parsed_.NameOf(i)});
    Add(i, "copies.cl", is_wide ? "gather_long" : "gather_int", Table().Int(node.reduced).Int(node.inner).Int(count),
        parsed_.OutputShape(i).num_elements(), "gather", std::move(launch));
  }

  // Adds the positions of each batch in the operands of a product.
  static void AddBatches(const std::vector<std::vector<int64_t>>& steps, const std::vector<Product::Batch>& batches,
                         Table* table) {
    int64_t count = 1;
    for (const Product::Batch& batch : batches) count *= batch.size;
    for (int64_t number = 0; number < count; ++number) {
      for (const std::vector<int64_t>& of : steps) {
        int64_t position = 0, rest = number;
        for (size_t d = batches.size(); d-- > 0;) {
          position += rest % batches[d].size * of[d];
          rest /= batches[d].size;
        }
        table->Int(position);
      }
    }
  }

  static std::vector<int64_t> StepsOf(const std::vector<Product::Batch>& batches, int64_t Product::Batch::*step) {
    std::vector<int64_t> steps;
    for (const Product::Batch& batch : batches) steps.push_back(batch.*step);
    return steps;
  }

  static Table TableOf(const Product& product) {
    Table table;
    table.Int(product.rows).Int(product.columns).Int(product.depth).Int(product.row_a).Int(product.depth_a);
    table.Int(product.depth_b).Int(product.column_b).Int(product.row_c).Int(product.column_c);
    AddBatches({StepsOf(product.batches, &Product::Batch::a), StepsOf(product.batches, &Product::Batch::b),
                StepsOf(product.batches, &Product::Batch::c)},
               product.batches, &table);
    return table;
  }

  static int64_t ItemsOf(const Product& product) {
    return product.num_batches() * Blocks(product.rows) * Blocks(product.columns);
  }

  void MakeProduct(size_t i) {
    const Product& product = parsed_.nodes[i].product;
    Launch launch;
    Read(i, product.left, &launch, product.offset_a);
    Read(i, product.right, &launch, product.offset_b);
    launch.Write(storages_.Output(i));
    Add(i, "product.cl", "product", TableOf(product), ItemsOf(product),
        product.batches.empty() ? "product" : "batched product", std::move(launch));
  }

  void MakeNormalize(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    const Rows rows(parsed_.OutputShape(i));
    Launch launch;
    Read(i, 0, &launch);
    launch.Write(storages_.Output(i));
    Table table;
    table.Int(rows.channels).Int(node.is_centred ? 1 : 0).Float(node.epsilon);
    table.Int(constants_.AddFloats(node.factor)).Int(constants_.AddFloats(node.offset));
    Add(i, "rows.cl", "normalize_rows", table, rows.rows, node.is_centred ? "layer normalisation" : "RMS normalisation",
        std::move(launch));
  }

  // Attention: scores, probabilities, and their product with the values.
  void MakeAttention(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    Product first = node.product, second = node.second;
    const int64_t batches = first.num_batches(), rows = first.rows, columns = first.columns;
    const int scores = storages_.Add(batches * rows * columns);
    const int probabilities = storages_.Add(batches * rows * columns);
    first.row_c = columns;
    first.column_c = 1;
    int64_t step = rows * columns;
    for (size_t d = first.batches.size(); d-- > 0;) {
      first.batches[d].c = second.batches[d].a = step;
      step *= first.batches[d].size;
    }
    second.row_a = columns;
    second.depth_a = 1;

    Launch score;
    Read(i, 0, &score, first.offset_a);
    Read(i, 1, &score, first.offset_b);
    score.Write(scores);
    Add(i, "product.cl", "product", TableOf(first), ItemsOf(first), "attention, scores", std::move(score));

    Launch softmax;
    softmax.Read(scores);
    softmax.Write(probabilities);
    size_t next = 0;
    std::vector<int64_t> mask(first.batches.size() + 2, 0), condition = mask;
    if (node.has_mask) {
      Read(i, 3, &softmax);
      mask = node.strides[next++];
    } else {
      softmax.Read(kConstants);
    }
    if (node.has_condition) {
      Read(i, 3 + static_cast<int>(next), &softmax);
      condition = node.strides[next];
    } else {
      softmax.Read(kConstants, 0, 1);
    }
    const size_t row_step = first.batches.size();
    Table table;
    table.Int(rows).Int(columns).Float(node.scale).Float(node.fill).Int(node.has_mask).Int(node.has_condition);
    table.Int(node.keeps_true).Int(mask[row_step]).Int(mask[row_step + 1]);
    table.Int(condition[row_step]).Int(condition[row_step + 1]);
    AddBatches({mask, condition}, first.batches, &table);
    Add(i, "rows.cl", "masked_softmax", table, batches * rows, "attention, probabilities", std::move(softmax));

    Launch value;
    value.Read(probabilities);
    Read(i, 2, &value, second.offset_b);
    value.Write(storages_.Output(i));
    Add(i, "product.cl", "product", TableOf(second), ItemsOf(second), "attention", std::move(value));
  }

  // Makes one launch for each output that has readers.
  void MakeViews(size_t i) {
    const ParsedNode& node = parsed_.nodes[i];
    const DelegateNode& source = parsed_.Source(i);
    for (size_t j = 0; j < source.outputs.size(); ++j) {
      const int output = storages_.storage[source.outputs[j]];
      const onednn::Readers& readers = graph_.readers[output];
      if (readers.steps.empty() && readers.others == 0) continue;
      const Shape& shape = parsed_.partition->tensors[source.outputs[j]].shape;
      const onednn::StridedView& view = node.views[j];
      Launch launch;
      Read(i, node.data, &launch);
      launch.Write(output);
      Table table;
      table.Int(shape.rank()).Int(view.offset);
      for (int d = 0; d < shape.rank(); ++d) table.Int(shape.dim(d)).Int(view.strides[static_cast<size_t>(d)]);
      Add(i, "copies.cl", "view", table, shape.num_elements(), "copy of a view", std::move(launch));
    }
  }

  static constexpr int kValueInside = -2;

  ParsedPartition parsed_;
  Storages storages_;
  StepGraph graph_;
  const FusedPads pads_;
  const Chains chains_;
  const StepGroups groups_;
  Constants constants_;
  std::vector<Made> made_;
  std::vector<IndexCheck> checks_;
};

}  // namespace

absl::StatusOr<LoweredPartition> Lower(const Partition& partition) {
  PF_ASSIGN_OR_RETURN(ParsedPartition parsed, onednn::ParsePartition(partition, PrecisionPlan()));
  return Lowering(std::move(parsed)).Run();
}

}  // namespace opencl
}  // namespace permafrost
