// Implements the function library: parsing, storing and following calls.
#include "graph/functions/function.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/wire_format/graphdef_fields.h"
#include "graph/wire_format/node_def.h"

namespace permafrost {
namespace {

namespace fields = graphdef_fields;

bool IsText(const WireField& field) { return field.type == WireType::kLengthDelimited; }

// Parses an entry of a map from strings to strings.
absl::Status ParseEntry(absl::string_view entry, absl::string_view* key, absl::string_view* value) {
  return ForEachField(entry, [&](const WireField& field) {
    if (IsMessage(field, fields::kKey)) *key = field.bytes;
    if (IsMessage(field, fields::kValue)) *value = field.bytes;
    return absl::OkStatus();
  });
}

absl::StatusOr<ArgSpec> ParseArg(absl::string_view bytes) {
  ArgSpec arg;
  PF_RETURN_IF_ERROR(ForEachField(bytes, [&](const WireField& field) {
    if (field.number == fields::kArgType && field.type == WireType::kVarint) {
      arg.type = static_cast<DType>(static_cast<int32_t>(field.value));
    }
    if (!IsText(field)) return absl::OkStatus();
    if (field.number == fields::kArgName) arg.name = std::string(field.bytes);
    if (field.number == fields::kTypeAttr) arg.type_attr = std::string(field.bytes);
    if (field.number == fields::kNumberAttr) arg.number_attr = std::string(field.bytes);
    if (field.number == fields::kTypeListAttr && !field.bytes.empty()) {
      arg.type_attr = std::string(field.bytes);
      arg.is_type_list = true;
    }
    return absl::OkStatus();
  }));
  return arg;
}

// Parses the kind of an attribute as OpDef spells it: "int", "list(type)", "func".
void ParseKind(absl::string_view text, AttrSpec* attr) {
  constexpr absl::string_view kList = "list(";
  if (text.substr(0, kList.size()) == kList) {
    attr->is_list = true;
    text = text.substr(kList.size(), text.size() - kList.size() - 1);
  }
  for (const AttrValue::Kind kind :
       {AttrValue::Kind::kInt, AttrValue::Kind::kFloat, AttrValue::Kind::kBool, AttrValue::Kind::kString,
        AttrValue::Kind::kType, AttrValue::Kind::kShape, AttrValue::Kind::kTensor}) {
    if (text == KindName(kind)) attr->kind = kind;
  }
  if (text == "func") attr->kind = AttrValue::Kind::kFunction;
}

absl::StatusOr<AttrSpec> ParseAttr(absl::string_view bytes, const Owner& owner) {
  AttrSpec attr;
  PF_RETURN_IF_ERROR(ForEachField(bytes, [&](const WireField& field) {
    if (!IsText(field)) return absl::OkStatus();
    if (field.number == fields::kAttrName) attr.name = std::string(field.bytes);
    if (field.number == fields::kAttrType) ParseKind(field.bytes, &attr);
    if (field.number == fields::kDefaultValue) {
      attr.has_default = true;
      attr.default_value = AttrValue::FromWire(field.bytes, owner);
    }
    return absl::OkStatus();
  }));
  return attr;
}

// Sets an entry of a list with unique keys, in which the last value of a key counts.
void SetEntry(absl::string_view key, absl::string_view value, Function::Entries* entries,
              absl::flat_hash_map<absl::string_view, size_t>* index) {
  const auto [at, is_new] = index->emplace(key, entries->size());
  if (is_new) {
    entries->emplace_back(key, value);
  } else {
    (*entries)[at->second].second = value;
  }
}

}  // namespace

const AttrSpec* FunctionSignature::FindAttr(absl::string_view attr) const {
  for (const AttrSpec& spec : attrs) {
    if (spec.name == attr) return &spec;
  }
  return nullptr;
}

const AttrValue* Function::FindAttr(absl::string_view key) const {
  for (const Attr& attr : attrs_) {
    if (attr.key == key) return &attr.value;
  }
  return nullptr;
}

absl::Status Function::ParseSignature(absl::string_view encoded) {
  return ForEachField(encoded, [&](const WireField& field) -> absl::Status {
    if (field.number == fields::kIsStateful && field.type == WireType::kVarint) {
      signature_.is_stateful = field.value != 0;
    }
    if (!IsText(field)) return absl::OkStatus();
    switch (field.number) {
      case fields::kSignatureName:
        signature_.name = std::string(field.bytes);
        break;
      case fields::kInputArg: {
        PF_ASSIGN_OR_RETURN(signature_.inputs.emplace_back(), ParseArg(field.bytes));
        break;
      }
      case fields::kOutputArg: {
        PF_ASSIGN_OR_RETURN(signature_.outputs.emplace_back(), ParseArg(field.bytes));
        break;
      }
      case fields::kSignatureAttr: {
        PF_ASSIGN_OR_RETURN(signature_.attrs.emplace_back(), ParseAttr(field.bytes, owner_));
        break;
      }
      case fields::kControlOutput:
        signature_.control_outputs.emplace_back(field.bytes);
        break;
      default:
        break;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Function>> Function::Parse(absl::string_view encoded, Owner owner) {
  auto function = std::make_unique<Function>();
  function->owner_ = std::move(owner);
  function->encoded_ = encoded;
  AttrCollector attrs;
  absl::flat_hash_map<absl::string_view, size_t> returns, control_returns;
  PF_RETURN_IF_ERROR(ForEachField(encoded, [&](const WireField& field) -> absl::Status {
    if (!IsText(field)) return absl::OkStatus();
    absl::string_view key, value;
    uint64_t number = 0, id = 0;
    switch (field.number) {
      case fields::kSignature:
        return function->ParseSignature(field.bytes);
      case fields::kBodyNode:
        ++function->num_nodes_;
        return absl::OkStatus();
      case fields::kDefinitionAttr:
        return attrs.Add(field.bytes, function->owner_);
      case fields::kRet:
        PF_RETURN_IF_ERROR(ParseEntry(field.bytes, &key, &value));
        SetEntry(key, value, &function->returns_, &returns);
        return absl::OkStatus();
      case fields::kControlRet:
        PF_RETURN_IF_ERROR(ParseEntry(field.bytes, &key, &value));
        SetEntry(key, value, &function->control_returns_, &control_returns);
        return absl::OkStatus();
      case fields::kArgAttr:
      case fields::kResourceArg: {
        PF_RETURN_IF_ERROR(ForEachField(field.bytes, [&](const WireField& part) {
          if (part.number == fields::kKey && part.type == WireType::kVarint) number = part.value;
          if (part.number == fields::kValue && part.type == WireType::kVarint) id = part.value;
          if (IsMessage(part, fields::kValue)) value = part.bytes;
          return absl::OkStatus();
        }));
        if (field.number == fields::kArgAttr) {
          function->arg_attrs_.emplace_back(number, value);
        } else {
          function->resource_arg_unique_ids_.emplace_back(number, id);
        }
        return absl::OkStatus();
      }
      default:
        return absl::OkStatus();
    }
  }));
  function->attrs_ = std::move(*attrs.mutable_attrs());
  return function;
}

absl::Status FunctionLibrary::Index(size_t part) {
  const Function& function = *parts_[part].function;
  if (function.name().empty()) return absl::InvalidArgumentError("the library has a function without a name");
  const auto [earlier, is_new] = by_name_.emplace(function.name(), part);
  if (is_new || parts_[earlier->second].function->encoded() == function.encoded()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("two functions of the library have the name ", Quoted(function.name()), " and differ"));
}

absl::Status FunctionLibrary::Add(const WireField& field) {
  Part& part = parts_.emplace_back();
  part.whole = field.whole;
  part.number = field.number;
  if (!IsText(field)) return absl::OkStatus();
  if (field.number == fields::kFunction) {
    PF_ASSIGN_OR_RETURN(part.function, Function::Parse(field.bytes, owner_));
    ++num_functions_;
    return Index(parts_.size() - 1);
  }
  if (field.number == fields::kGradient) {
    absl::string_view of, gradient;
    PF_RETURN_IF_ERROR(ParseEntry(field.bytes, &of, &gradient));
    gradients_[of] = gradient;
  }
  return absl::OkStatus();
}

absl::StatusOr<FunctionLibrary> FunctionLibrary::Of(const Graph& graph) {
  FunctionLibrary library;
  library.original_ = graph.library();
  library.owner_ = graph.Memory();
  const absl::Status status = ForEachField(graph.library(), [&](const WireField& outer) -> absl::Status {
    if (!IsMessage(outer, fields::kLibrary)) return absl::OkStatus();
    return ForEachField(outer.bytes, [&](const WireField& field) { return library.Add(field); });
  });
  PF_RETURN_IF_ERROR(Annotate(status, "function library"));
  return library;
}

const Function* FunctionLibrary::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : parts_[found->second].function.get();
}

absl::StatusOr<const Function*> FunctionLibrary::Require(absl::string_view name) const {
  if (const Function* function = Find(name); function != nullptr) return function;
  std::vector<absl::string_view> names;
  for (const Function* function : functions()) names.push_back(function->name());
  return absl::InvalidArgumentError(
      absl::StrCat("there is no function ", Quoted(name), " in the library", DidYouMean(name, names)));
}

std::vector<const Function*> FunctionLibrary::functions() const {
  std::vector<const Function*> functions;
  for (const Part& part : parts_) {
    if (part.function != nullptr && Find(part.function->name()) == part.function.get()) {
      functions.push_back(part.function.get());
    }
  }
  return functions;
}

absl::string_view FunctionLibrary::GradientOf(absl::string_view name) const {
  const auto found = gradients_.find(name);
  return found == gradients_.end() ? absl::string_view() : found->second;
}

size_t FunctionLibrary::Retain(const absl::flat_hash_set<absl::string_view>& keep) {
  const size_t before = size();
  std::vector<Part> kept;
  for (Part& part : parts_) {
    bool stays = true;
    if (part.function != nullptr) {
      stays = keep.contains(part.function->name());
    } else if (part.number == fields::kGradient || part.number == fields::kRegisteredGradient) {
      // Both fields name functions: the function that has a gradient, and the gradient.
      absl::string_view first, second;
      WireReader outer(part.whole);
      WireField field;
      if (outer.Next(&field) && ParseEntry(field.bytes, &first, &second).ok()) {
        stays = keep.contains(first) && (part.number != fields::kGradient || keep.contains(second));
        if (!stays && part.number == fields::kGradient) gradients_.erase(first);
      }
    }
    if (stays) kept.push_back(std::move(part));
  }
  if (kept.size() == parts_.size()) return 0;
  is_changed_ = true;
  parts_ = std::move(kept);
  IndexAll();
  return before - size();
}

void FunctionLibrary::IndexAll() {
  by_name_.clear();
  num_functions_ = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].function == nullptr) continue;
    ++num_functions_;
    by_name_.emplace(parts_[i].function->name(), i);
  }
}

// Equal definitions of one name would no longer be equal once one of them is edited.
void FunctionLibrary::DropDuplicates() {
  if (num_functions_ == by_name_.size()) return;
  const auto is_duplicate = [&](const Part& part) {
    return part.function != nullptr && Find(part.function->name()) != part.function.get();
  };
  parts_.erase(std::remove_if(parts_.begin(), parts_.end(), is_duplicate), parts_.end());
  IndexAll();
}

std::string FunctionLibrary::Encode() const {
  if (!is_changed_) return std::string(original_);
  std::string content, encoded;
  for (const Part& part : parts_) {
    if (part.whole.empty()) {
      AppendBytesField(fields::kFunction, part.function->encoded(), &content);
    } else {
      absl::StrAppend(&content, part.whole);
    }
  }
  if (!content.empty()) AppendBytesField(fields::kLibrary, content, &encoded);
  return encoded;
}

void FunctionLibrary::Store(Graph* graph) const {
  if (is_changed_) graph->set_library(Encode());
}

// --- Calls -----------------------------------------------------------------------------------------------------------

std::vector<std::string> FunctionLibrary::CalledBy(const Graph& graph) const {
  absl::flat_hash_set<std::string> called;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->op().is_known() && Find(node->op().name()) != nullptr) called.emplace(node->op().name());
    for (const Attr& attr : node->attrs()) {
      // A malformed value names no function.
      (void)attr.value.VisitFunctions([&](absl::string_view name) { called.emplace(name); });
    }
  }
  std::vector<std::string> sorted(called.begin(), called.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

absl::StatusOr<std::vector<const Function*>> FunctionLibrary::Callees(const Function& function) const {
  absl::flat_hash_set<const Function*> called;
  const auto call = [&](absl::string_view name) {
    if (const Function* callee = Find(name); callee != nullptr) called.insert(callee);
  };
  Graph memory;
  NodeDefReader node(nullptr);
  std::vector<absl::string_view> inputs;
  const absl::Status status = ForEachField(function.encoded(), [&](const WireField& field) -> absl::Status {
    if (!IsMessage(field, fields::kBodyNode)) return absl::OkStatus();
    inputs.clear();
    PF_RETURN_IF_ERROR(node.Read(field.bytes, &memory, &inputs));
    call(node.op());
    for (const Attr& attr : *node.attrs()) PF_RETURN_IF_ERROR(attr.value.VisitFunctions(call));
    return absl::OkStatus();
  });
  PF_RETURN_IF_ERROR(Annotate(status, absl::StrCat("function ", Quoted(function.name()))));
  std::vector<const Function*> sorted(called.begin(), called.end());
  std::sort(sorted.begin(), sorted.end(), [](const Function* a, const Function* b) { return a->name() < b->name(); });
  return sorted;
}

absl::StatusOr<std::vector<const Function*>> FunctionLibrary::CallOrder(const std::vector<std::string>& roots) const {
  struct Open {
    const Function* function;
    std::vector<const Function*> callees;
    size_t next = 0;
  };
  enum class State { kOpen, kDone };
  absl::flat_hash_map<const Function*, State> state;
  std::vector<const Function*> order;
  std::vector<Open> stack;
  const auto open = [&](const Function* function) -> absl::Status {
    PF_ASSIGN_OR_RETURN(std::vector<const Function*> callees, Callees(*function));
    state.emplace(function, State::kOpen);
    stack.push_back({function, std::move(callees)});
    return absl::OkStatus();
  };
  for (const std::string& root : roots) {
    const Function* function = Find(root);
    if (function == nullptr || state.contains(function)) continue;
    PF_RETURN_IF_ERROR(open(function));
    while (!stack.empty()) {
      Open& top = stack.back();
      if (top.next == top.callees.size()) {
        state[top.function] = State::kDone;
        order.push_back(top.function);
        stack.pop_back();
        continue;
      }
      const Function* callee = top.callees[top.next++];
      const auto known = state.find(callee);
      if (known == state.end()) {
        PF_RETURN_IF_ERROR(open(callee));
      } else if (known->second == State::kOpen) {
        constexpr size_t kMostShown = 8;
        size_t first = 0;
        while (stack[first].function != callee) ++first;
        std::string circle;
        for (size_t i = first; i < stack.size() && i < first + kMostShown; ++i) {
          absl::StrAppend(&circle, Quoted(stack[i].function->name()), " -> ");
        }
        return absl::InvalidArgumentError(absl::StrCat("function ", Quoted(callee->name()), " calls itself: ", circle,
                                                       stack.size() - first > kMostShown ? "... -> " : "",
                                                       Quoted(callee->name())));
      }
    }
  }
  return order;
}

absl::StatusOr<absl::flat_hash_set<absl::string_view>> FunctionLibrary::Reachable(
    const std::vector<std::string>& roots) const {
  absl::flat_hash_set<absl::string_view> reached;
  std::vector<const Function*> waiting;
  const auto reach = [&](absl::string_view name) {
    const Function* function = Find(name);
    if (function != nullptr && reached.insert(function->name()).second) waiting.push_back(function);
  };
  for (const std::string& root : roots) reach(root);
  while (!waiting.empty()) {
    const Function* function = waiting.back();
    waiting.pop_back();
    PF_ASSIGN_OR_RETURN(const std::vector<const Function*> callees, Callees(*function));
    for (const Function* callee : callees) reach(callee->name());
    reach(GradientOf(function->name()));
  }
  return reached;
}

std::vector<Node*> ArgsOf(const Graph& body) {
  std::vector<Node*> nodes;
  for (const Endpoint& input : body.inputs()) nodes.push_back(input.node);
  return nodes;
}

std::vector<Node*> RetvalsOf(const Graph& body) {
  std::vector<Node*> nodes;
  for (const Endpoint& output : body.outputs()) {
    if (output.node->op() == ops::k_Retval) nodes.push_back(output.node);
  }
  return nodes;
}

std::vector<Node*> ControlOutputsOf(const Graph& body) {
  std::vector<Node*> nodes;
  for (const Endpoint& output : body.outputs()) {
    if (output.node->op() != ops::k_Retval) nodes.push_back(output.node);
  }
  return nodes;
}

}  // namespace permafrost
