// Prepares the nodes of a graph in order, computes those whose inputs are known, places the tensors and encodes the
// rest.
#include "runtime_check/program_file/program_writer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/buffer_placement.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/program.h"
#include "runtime_check/program_file/program_file.h"
#include "runtime_check/resources/memory_budget.h"
#include "runtime_check/session_options.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {
namespace {

constexpr int kNone = -1;

// A tensor of the program during planning.
struct TensorPlan {
  Shape shape;
  std::shared_ptr<const Tensor> constant;  // Aligned. Null unless the value is known.
  int region = kNone;                      // Memory that it shares with aliases; none for constants.
  int number = kNone;                      // In the file; none if nothing refers to it.
};

struct Region {
  Buffer buffer;
  int input = kNone;  // The memory of this input.
};

class Writer {
 public:
  explicit Writer(const Graph* graph) : graph_(graph), budget_(SessionOptions().memory_limit), threads_(1) {
    environment_.threads = &threads_;
    environment_.budget = &budget_;
  }

  absl::StatusOr<std::string> Write(absl::Span<const std::string> feeds, absl::Span<const std::string> fetches) {
    const KernelLookup lookup = &FindKernel;
    const ProgramContext context = {lookup, &budget_, nullptr, nullptr};
    if (!graph_->library().empty()) return Refused("the graph has functions");
    PF_ASSIGN_OR_RETURN(program_, BuildProgram(*graph_, {feeds, fetches, {}}, context));
    if (program_.has_control_flow()) return Refused("the graph has V1 control flow");
    tensors_.resize(program_.tensors.size());
    PF_RETURN_IF_ERROR(ReadFeeds());
    is_step_.assign(program_.nodes.size(), false);
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      PF_RETURN_IF_ERROR(Plan(i));
    }
    DropUnread();
    PF_ASSIGN_OR_RETURN(const int64_t arena_bytes, Place());
    return Encode(arena_bytes);
  }

 private:
  static absl::Status Refused(absl::string_view reason) {
    return absl::UnimplementedError(absl::StrCat(reason, ", which a program file cannot express"));
  }
  static absl::Status Refused(const ProgramNode& node, absl::string_view reason) {
    return Annotate(Refused(reason), node.node->Describe());
  }

  const TensorPlan& InputOf(const ProgramNode& node, size_t i) const { return tensors_[program_.InputsOf(node)[i]]; }
  int64_t BytesOf(int tensor) const {
    return ValueBytes(program_.tensors[tensor].dtype, tensors_[tensor].shape).value_or(0);
  }

  absl::Status ReadFeeds() {
    for (const ProgramFeed& feed : program_.feeds) {
      Shape shape = feed.declared;
      if (shape.has_rank() && shape.rank() > 0 && shape.dim(0) == kUnknownDim) shape.set_dim(0, 1);
      const DType dtype = program_.tensors[feed.tensor].dtype;
      if (!shape.IsFullyKnown() || SizeOf(dtype) == 0) {
        return absl::InvalidArgumentError(absl::StrCat("input '", feed.name, "': found ", DTypeName(dtype), " ",
                                                       feed.declared.ToString(),
                                                       ", expected numbers and a known shape; only the first "
                                                       "dimension may be unknown, and becomes 1"));
      }
      PF_RETURN_IF_ERROR(Annotate(ValueBytes(dtype, shape).status(), absl::StrCat("input '", feed.name, "'")));
      tensors_[feed.tensor].shape = std::move(shape);
    }
    return absl::OkStatus();
  }

  absl::Status SetConstant(const ProgramNode& node, int tensor, const Tensor& value) {
    if (SizeOf(value.dtype()) == 0) return Refused(node, absl::StrCat("a value of type ", DTypeName(value.dtype())));
    PF_ASSIGN_OR_RETURN(Tensor aligned, value.Aligned());
    tensors_[tensor].shape = aligned.shape();
    tensors_[tensor].constant = std::make_shared<const Tensor>(std::move(aligned));
    return absl::OkStatus();
  }

  // Prepares a node: computes it, makes its result an alias, or makes it a step.
  absl::Status Plan(size_t position) {
    const ProgramNode& node = program_.nodes[position];
    if (node.kernel == nullptr) return SetConstant(node, node.first_output, program_.constants[node.constant]);
    if (node.call >= 0) return Refused(node, "a call of a function");
    if (node.kernel->uses_state() || node.kernel->is_done_by_session()) return Refused(node, "an op with state");
    std::vector<PrepareInput> inputs;
    bool all_constant = true;
    for (const int tensor : program_.InputsOf(node)) {
      inputs.push_back({program_.tensors[tensor].dtype, tensors_[tensor].shape});
      all_constant &= tensors_[tensor].constant != nullptr;
    }
    std::vector<DType> types;
    for (int i = 0; i < node.num_outputs; ++i) {
      types.push_back(program_.tensors[node.first_output + i].dtype);
      if (SizeOf(types.back()) == 0) return Refused(node, absl::StrCat("a value of type ", DTypeName(types.back())));
    }
    PreparedNode prepared;
    const auto value = [&](int i) -> absl::StatusOr<const Tensor*> {
      return InputOf(node, static_cast<size_t>(i)).constant.get();
    };
    PF_RETURN_IF_ERROR(PrepareNode(*node.node, *node.kernel, inputs, types, 1, value, &prepared));
    bool is_static = prepared.needs_value_of < 0;
    for (const OutputSpec& output : prepared.outputs) is_static = is_static && !output.depends_on_values;
    if (node.kernel->is_alias() && is_static && InputOf(node, 0).constant != nullptr) {
      const Tensor& input = *InputOf(node, 0).constant;
      PF_ASSIGN_OR_RETURN(const Tensor shaped,
                          Tensor::FromBytes(types[0], prepared.outputs[0].shape, input.bytes(), input.owner()));
      return SetConstant(node, node.first_output, shaped);
    }
    if (node.is_pure && prepared.needs_value_of < 0 && (all_constant || node.kernel->reads_shapes_only())) {
      return Fold(node, prepared);
    }
    if (!is_static) return Refused(node, "a shape that is known only during the run");
    for (int i = 0; i < node.num_outputs; ++i) tensors_[node.first_output + i].shape = prepared.outputs[i].shape;
    is_step_[position] = true;
    return absl::OkStatus();
  }

  absl::Status Fold(const ProgramNode& node, const PreparedNode& prepared) {
    std::vector<Value> values;
    for (const int tensor : program_.InputsOf(node)) {
      if (tensors_[tensor].constant != nullptr) {
        values.push_back(ViewOf(*tensors_[tensor].constant));
      } else {
        values.push_back({program_.tensors[tensor].dtype, tensors_[tensor].shape});
      }
    }
    std::vector<const Value*> inputs;
    for (const Value& value : values) inputs.push_back(&value);
    std::vector<Value> outputs(static_cast<size_t>(node.num_outputs));
    PF_ASSIGN_OR_RETURN(const std::vector<HeapOutput> made,
                        ComputeNode(*node.node, prepared, inputs, outputs.data(), environment_));
    for (int i = 0; i < node.num_outputs; ++i)
      PF_RETURN_IF_ERROR(SetConstant(node, node.first_output + i, made[i].tensor));
    return absl::OkStatus();
  }

  // Clears is_step_ for nodes without effect.
  void DropUnread() {
    std::vector<bool> is_read(program_.tensors.size(), false);
    for (const int tensor : program_.fetches) is_read[tensor] = true;
    for (size_t i = program_.nodes.size(); i-- > 0;) {
      const ProgramNode& node = program_.nodes[i];
      bool is_needed = !node.is_pure;
      for (int j = 0; j < node.num_outputs; ++j) is_needed = is_needed || is_read[node.first_output + j];
      if (!is_needed) is_step_[i] = false;
      if (!is_step_[i]) continue;
      for (const int tensor : program_.InputsOf(node)) is_read[tensor] = true;
    }
  }

  // Sets the position of the last node that reads each tensor, or its own; fetches are read at the end.
  void FindLastUses() {
    last_use_.assign(program_.tensors.size(), kNone);
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!is_step_[i]) continue;
      const ProgramNode& node = program_.nodes[i];
      for (int j = 0; j < node.num_outputs; ++j) last_use_[node.first_output + j] = static_cast<int>(i);
      for (const int tensor : program_.InputsOf(node)) last_use_[tensor] = static_cast<int>(i);
    }
    for (const int tensor : program_.fetches) last_use_[tensor] = static_cast<int>(program_.nodes.size());
  }

  // Returns the region of an input that output 0 may overwrite, or kNone.
  int RegionInPlace(const ProgramNode& node, int position) const {
    const absl::Span<const int> inputs = program_.InputsOf(node);
    for (const int i : node.kernel->in_place()) {
      if (i >= node.num_inputs) continue;
      const int region = tensors_[inputs[i]].region;
      if (region == kNone || regions_[region].input != kNone || regions_[region].buffer.last != position ||
          regions_[region].buffer.bytes != BytesOf(node.first_output)) {
        continue;
      }
      const auto readers =
          std::count_if(inputs.begin(), inputs.end(), [&](int tensor) { return tensors_[tensor].region == region; });
      if (readers == 1) return region;
    }
    return kNone;
  }

  void Join(int tensor, int region) {
    tensors_[tensor].region = region;
    regions_[region].buffer.last = std::max(regions_[region].buffer.last, last_use_[tensor]);
  }

  int AddRegion(int tensor, int position, int input) {
    Region region;
    region.buffer = {BytesOf(tensor), position, position, 0};
    region.input = input;
    regions_.push_back(region);
    return static_cast<int>(regions_.size()) - 1;
  }

  // Assigns a region to each tensor that is not constant, and places the regions in the arena. Returns its size.
  absl::StatusOr<int64_t> Place() {
    FindLastUses();
    for (size_t i = 0; i < program_.feeds.size(); ++i) {
      const int tensor = program_.feeds[i].tensor;
      Join(tensor, AddRegion(tensor, 0, static_cast<int>(i)));
    }
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!is_step_[i]) continue;
      const ProgramNode& node = program_.nodes[i];
      const auto position = static_cast<int>(i);
      for (int j = 0; j < node.num_outputs; ++j) {
        int region = kNone;
        if (j == 0 && node.kernel->is_alias()) {
          region = InputOf(node, 0).region;
        } else if (j == 0) {
          region = RegionInPlace(node, position);
        }
        Join(node.first_output + j, region != kNone ? region : AddRegion(node.first_output + j, position, kNone));
      }
    }
    std::vector<Buffer> buffers;
    for (const Region& region : regions_) {
      if (region.input == kNone) buffers.push_back(region.buffer);
    }
    PF_ASSIGN_OR_RETURN(const int64_t bytes, PlaceBuffers(&buffers));
    size_t next = 0;
    for (Region& region : regions_) {
      if (region.input == kNone) region.buffer.offset = buffers[next++].offset;
    }
    return bytes;
  }

  // Appends an entry for the tensor to the directory, unless it has one, and returns its number.
  int NumberOf(int tensor, std::string* directory) {
    TensorPlan& plan = tensors_[tensor];
    if (plan.number != kNone) return plan.number;
    ProgramPlace place = ProgramPlace::kConstant;
    uint64_t offset = 0;
    if (plan.constant != nullptr) {
      offset = num_constant_bytes_;
      constants_.push_back(plan.constant);
      const auto bytes = static_cast<uint64_t>(plan.constant->bytes().size());
      num_constant_bytes_ += (bytes + kProgramAlignment - 1) / kProgramAlignment * kProgramAlignment;
    } else {
      const Region& region = regions_[plan.region];
      place = region.input == kNone ? ProgramPlace::kArena : ProgramPlace::kInput;
      offset =
          region.input == kNone ? static_cast<uint64_t>(region.buffer.offset) : static_cast<uint64_t>(region.input);
    }
    std::string entry;
    Append(ProgramTensorField::kDType, static_cast<uint64_t>(program_.tensors[tensor].dtype), &entry);
    for (const int64_t dim : plan.shape.dims()) Append(ProgramTensorField::kDim, static_cast<uint64_t>(dim), &entry);
    Append(ProgramTensorField::kPlace, static_cast<uint64_t>(place), &entry);
    if (offset != 0) Append(ProgramTensorField::kOffset, offset, &entry);
    AppendBytesField(static_cast<uint32_t>(ProgramField::kTensor), entry, directory);
    return plan.number = num_tensors_++;
  }

  template <typename Field>
  static void Append(Field field, uint64_t value, std::string* message) {
    AppendVarintField(static_cast<uint32_t>(field), value, message);
  }
  template <typename Field>
  static void Append(Field field, absl::string_view bytes, std::string* message) {
    AppendBytesField(static_cast<uint32_t>(field), bytes, message);
  }

  void AppendEndpoint(ProgramField field, int tensor, absl::string_view name, std::string* directory) {
    std::string endpoint;
    Append(ProgramEndpointField::kTensor, static_cast<uint64_t>(NumberOf(tensor, directory)), &endpoint);
    Append(ProgramEndpointField::kName, name, &endpoint);
    Append(field, endpoint, directory);
  }

  static void AppendAttr(absl::string_view key, const AttrValue& value, std::string* step) {
    std::string attr;
    Append(ProgramAttrField::kKey, key, &attr);
    Append(ProgramAttrField::kValue, value.Encoded(), &attr);
    Append(ProgramStepField::kAttr, attr, step);
  }

  void AppendStep(const ProgramNode& node, std::string* directory) {
    std::string step;
    Append(ProgramStepField::kOp, node.node->op().name(), &step);
    Append(ProgramStepField::kName, node.node->name(), &step);
    for (const int tensor : program_.InputsOf(node)) {
      Append(ProgramStepField::kInput, static_cast<uint64_t>(NumberOf(tensor, directory)), &step);
    }
    for (int i = 0; i < node.num_outputs; ++i) {
      Append(ProgramStepField::kOutput, static_cast<uint64_t>(NumberOf(node.first_output + i, directory)), &step);
    }
    for (const Attr& attr : node.node->attrs()) AppendAttr(attr.key, attr.value, &step);
    // A runtime that executes programs has no schemas, and thus no defaults.
    if (const OpSchema* schema = FindSchema(node.node->op()); schema != nullptr) {
      for (const AttrSpec& attr : schema->attrs) {
        if (attr.has_default && !node.node->HasAttr(attr.name)) AppendAttr(attr.name, attr.default_value, &step);
      }
    }
    Append(ProgramField::kStep, step, directory);
  }

  std::string Encode(int64_t arena_bytes) {
    std::string directory;
    Append(ProgramField::kArenaBytes, static_cast<uint64_t>(arena_bytes), &directory);
    for (const ProgramFeed& feed : program_.feeds) {
      AppendEndpoint(ProgramField::kInput, feed.tensor, feed.name, &directory);
    }
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const ProgramNode& node = program_.nodes[i];
      if (is_step_[i] && !node.kernel->is_alias()) AppendStep(node, &directory);
    }
    for (size_t i = 0; i < program_.fetches.size(); ++i) {
      AppendEndpoint(ProgramField::kOutput, program_.fetches[i], program_.fetch_names[i], &directory);
    }
    std::string file(kProgramMagic);
    const uint64_t size = directory.size();
    file.append(reinterpret_cast<const char*>(&size), sizeof(size));
    file.append(directory);
    const auto align = [&file] {
      file.resize((file.size() + kProgramAlignment - 1) / kProgramAlignment * kProgramAlignment);
    };
    align();
    file.reserve(file.size() + num_constant_bytes_);
    for (const std::shared_ptr<const Tensor>& constant : constants_) {
      file.append(constant->bytes().data(), constant->bytes().size());
      align();
    }
    return file;
  }

  const Graph* graph_;
  MemoryBudget budget_;
  ThreadPool threads_;
  Environment environment_;
  Program program_;
  std::vector<TensorPlan> tensors_;  // By tensor of the program.
  std::vector<bool> is_step_;        // By node.
  std::vector<Region> regions_;
  std::vector<int> last_use_;  // By tensor of the program.
  int num_tensors_ = 0;        // Entries of the file.
  std::vector<std::shared_ptr<const Tensor>> constants_;
  uint64_t num_constant_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::string> MakeProgramFile(const Graph& graph, absl::Span<const std::string> feeds,
                                            absl::Span<const std::string> fetches) {
  return Writer(&graph).Write(feeds, fetches);
}

}  // namespace permafrost
