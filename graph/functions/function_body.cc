// Implements the conversion of function bodies to graphs and back.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/functions/function_ports.h"
#include "graph/wire_format/graphdef_fields.h"
#include "graph/wire_format/node_def.h"

namespace permafrost {
namespace {

namespace fields = graphdef_fields;

// Limits on the expansion of a body beyond the size of the file: tensors of the signature, inputs that reference whole
// lists, and bytes of attributes that callers pass.
constexpr int64_t kMostArgs = 1 << 16;
constexpr int64_t kMostListedInputs = 1 << 20;
constexpr int64_t kMostSubstitutedBytes = int64_t{64} << 20;
// Signatures of TensorFlow have a handful of attributes. They are searched linearly.
constexpr size_t kMostSignatureAttrs = 256;

// The caller's attributes, both as a node whose attributes are those of the signature and by name.
class CallAttrs {
 public:
  absl::Status Set(const Function& function, const FunctionRef& call) {
    const FunctionSignature& signature = function.signature();
    if (signature.attrs.size() > kMostSignatureAttrs) {
      return absl::InvalidArgumentError(absl::StrCat("the signature has ", signature.attrs.size(),
                                                     " attributes, expected at most ", kMostSignatureAttrs));
    }
    for (const auto& [key, value] : call.attrs) by_name_[key] = &value;
    for (const AttrSpec& spec : signature.attrs) {
      if (spec.has_default) by_name_.emplace(spec.name, &spec.default_value);
    }
    PF_ASSIGN_OR_RETURN(node_, graph_.AddNode(function.name(), Op::Named("function")));
    for (const AttrSpec& spec : signature.attrs) {
      if (const AttrValue* value = Find(spec.name); value != nullptr) node_->SetAttr(spec.name, *value);
    }
    return absl::OkStatus();
  }

  const AttrValue* Find(absl::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  absl::StatusOr<std::vector<DType>> Types(const std::vector<ArgSpec>& args) const {
    int64_t total = 0;
    for (const ArgSpec& arg : args) {
      PF_ASSIGN_OR_RETURN(const int64_t count, ResolveCount(*node_, arg));
      total += count;
      if (total > kMostArgs) {
        return absl::InvalidArgumentError(absl::StrCat("the signature has more than ", kMostArgs, " tensors"));
      }
    }
    return ResolveTypes(*node_, args);
  }

  absl::StatusOr<int64_t> Count(const ArgSpec& arg) const { return ResolveCount(*node_, arg); }

 private:
  Graph graph_;
  Node* node_ = nullptr;
  absl::flat_hash_map<absl::string_view, const AttrValue*> by_name_;
};

// The attribute of InstantiateToEdit.
constexpr char kOutputNames[] = "_output_names";

bool IsList(const ArgSpec& arg) { return arg.is_type_list || !arg.number_attr.empty(); }

absl::Status CheckArgName(absl::string_view name) {
  if (!name.empty() && name[0] != '^' && name.find(':') == absl::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an argument has the name ", Quoted(name), ", expected one without '^' and ':'"));
}

}  // namespace

class BodyReader {
 public:
  BodyReader(const FunctionLibrary& library, const Function& function, bool accepts_unknown)
      : function_(function), accepts_unknown_(accepts_unknown), names_(library), graph_(std::make_unique<Graph>()) {}

  absl::StatusOr<std::unique_ptr<Graph>> Read(const FunctionRef& call) {
    graph_->Retain(function_.owner_);
    PF_RETURN_IF_ERROR(attrs_.Set(function_, call));
    PF_RETURN_IF_ERROR(ReadNodes());
    PF_RETURN_IF_ERROR(AddArgs());
    PF_RETURN_IF_ERROR(Connect());
    PF_RETURN_IF_ERROR(AddRetvals());
    PF_RETURN_IF_ERROR(AddControlOutputs());
    for (auto& [node, outputs] : unknown_outputs_) node->SetAttr(kOutputNames, AttrValue::StringList(outputs));
    PF_RETURN_IF_ERROR(graph_->DeclareInterface(arg_names_, output_names_));
    return std::move(graph_);
  }

 private:
  struct ArgRange {
    size_t first = 0;  // In args_.
    size_t size = 0;
  };

  absl::Status ReadNodes() {
    NodeDefReader node_reader(function_.owner_);
    const std::function<const AttrValue*(absl::string_view)> find = [&](absl::string_view name) {
      return attrs_.Find(name);
    };
    int64_t budget = kMostSubstitutedBytes;
    graph_->Reserve(function_.num_nodes());
    WireReader reader(function_.encoded());
    WireField field;
    while (reader.Next(&field)) {
      if (field.number != fields::kBodyNode || field.type != WireType::kLengthDelimited) continue;
      PF_RETURN_IF_ERROR(node_reader.Read(field.bytes, graph_.get(), &inputs_));
      const auto invalid = [&](absl::string_view what) {
        return absl::InvalidArgumentError(absl::StrCat(node_reader.Place(nodes_.size()), ": ", what));
      };
      if (const absl::string_view problem = node_reader.Problem(); !problem.empty()) return invalid(problem);
      const Op op = Op::Named(node_reader.op());
      if (op == ops::k_Arg || op == ops::k_Retval) {
        return invalid("the op is reserved for the nodes that represent the signature");
      }
      absl::StatusOr<Node*> node = graph_->AddNodeView(node_reader.name(), op, node_reader.device());
      if (absl::IsAlreadyExists(node.status())) return invalid("another node has the same name, expected unique names");
      PF_RETURN_IF_ERROR(node.status());
      for (const Attr& attr : *node_reader.attrs()) {
        absl::StatusOr<AttrValue> value = attr.value.Substitute(find, &budget);
        if (!value.ok()) {
          return Annotate(value.status(), absl::StrCat(node_reader.Place(nodes_.size()), ": attr ", Quoted(attr.key)));
        }
        graph_->AppendAttrView(*node, attr.key, *std::move(value));
      }
      graph_->SetExtraFieldsView(*node, node_reader.extra_fields());
      nodes_.push_back(*node);
      input_ends_.push_back(inputs_.size());
    }
    return reader.status();
  }

  // Adds an _Arg for each tensor. Single arguments keep their names; elements of lists get unique names.
  absl::Status AddArgs() {
    const std::vector<ArgSpec>& specs = function_.signature().inputs;
    PF_ASSIGN_OR_RETURN(const std::vector<DType> types, attrs_.Types(specs));
    size_t next = 0;
    for (const ArgSpec& spec : specs) {
      PF_RETURN_IF_ERROR(CheckArgName(spec.name));
      PF_ASSIGN_OR_RETURN(const int64_t count, attrs_.Count(spec));
      const bool is_taken = graph_->Find(spec.name) != nullptr;
      if (is_taken || !ranges_.emplace(spec.name, ArgRange{next, static_cast<size_t>(count)}).second) {
        return absl::InvalidArgumentError(absl::StrCat("argument ", Quoted(spec.name), " has the same name as another ",
                                                       is_taken ? "node" : "argument"));
      }
      next += static_cast<size_t>(count);
    }
    args_.resize(types.size());
    for (const bool lists : {false, true}) {
      next = 0;
      for (const ArgSpec& spec : specs) {
        const ArgRange range = ranges_[spec.name];
        if (IsList(spec) == lists) {
          for (size_t i = range.first; i < range.first + range.size; ++i) {
            const std::string name =
                lists ? graph_->UniqueName(absl::StrCat(spec.name, "_", i - range.first)) : spec.name;
            PF_ASSIGN_OR_RETURN(args_[i], graph_->AddNode(name, ops::k_Arg, nullptr));
            args_[i]->SetAttr("T", AttrValue::Type(types[i]));
            args_[i]->SetAttr("index", AttrValue::Int(static_cast<int64_t>(i)));
          }
        }
      }
    }
    std::vector<Node*> order = args_;
    order.insert(order.end(), nodes_.begin(), nodes_.end());
    graph_->SetOrder(order);
    for (const Node* arg : args_) arg_names_.emplace_back(arg->name());
    return AddArgAttrs();
  }

  // Sets the attributes that the definition has for single arguments.
  absl::Status AddArgAttrs() {
    const std::vector<ArgSpec>& specs = function_.signature().inputs;
    const auto node_of = [&](uint64_t index) -> Node* {
      if (index >= specs.size() || IsList(specs[index])) return nullptr;
      return args_[ranges_[specs[index].name].first];
    };
    for (const auto& [index, encoded] : function_.arg_attrs_) {
      Node* node = node_of(index);
      if (node == nullptr) continue;
      AttrCollector attrs;
      WireReader reader(encoded);
      WireField field;
      while (reader.Next(&field)) {
        if (field.number != fields::kArgAttrEntry || field.type != WireType::kLengthDelimited) continue;
        PF_RETURN_IF_ERROR(attrs.Add(field.bytes, function_.owner_));
      }
      PF_RETURN_IF_ERROR(reader.status());
      const bool is_first = node->attrs().size() == 2;
      for (const Attr& attr : attrs.attrs()) {
        if (is_first && attr.key != "T" && attr.key != "index") graph_->AppendAttrView(node, attr.key, attr.value);
      }
    }
    for (const auto& [index, id] : function_.resource_arg_unique_ids_) {
      if (Node* node = node_of(index); node != nullptr) {
        node->SetAttr("_resource_arg_unique_id", AttrValue::Int(static_cast<int64_t>(id)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Connect() {
    size_t next = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Node* node = nodes_[i];
      bool after_control = false;
      for (const size_t begin = next; next < input_ends_[i]; ++next) {
        absl::string_view text = inputs_[next];
        const auto place = [&] {
          return absl::StrCat(node->Describe(), ": input ", next - begin, " is ", Quoted(inputs_[next]));
        };
        if (!text.empty() && text[0] == '^') {
          text.remove_prefix(1);
          PF_ASSIGN_OR_RETURN(Node * producer, FindControl(text, place()));
          graph_->AddInput(node, {producer, kControlPort});
          after_control = true;
          continue;
        }
        if (after_control) {
          return absl::InvalidArgumentError(
              absl::StrCat(place(), ", which follows a control input, expected data inputs before control inputs"));
        }
        PF_RETURN_IF_ERROR(Annotate(Resolve(text), place()));
        for (const TensorRef& ref : resolved_) graph_->AddInput(node, ref);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Node*> FindControl(absl::string_view name, absl::string_view place) {
    if (Node* node = graph_->Find(name); node != nullptr) return node;
    return absl::InvalidArgumentError(absl::StrCat(place, ", but the body has no such node"));
  }

  // Resolves a reference in the body: "arg", "arg:k", "node:out", "node:out:k", and also "node", "node:k" as in a
  // graph. Stores the result in resolved_.
  absl::Status Resolve(absl::string_view text) {
    resolved_.clear();
    const size_t colon = text.find(':');
    const absl::string_view name = text.substr(0, colon);
    absl::string_view rest = colon == absl::string_view::npos ? absl::string_view() : text.substr(colon + 1);
    if (const auto range = ranges_.find(name); range != ranges_.end()) {
      int k = 0;
      if (colon != absl::string_view::npos) {
        if (!ParsePort(rest, &k) || static_cast<size_t>(k) >= range->second.size) {
          return absl::InvalidArgumentError(
              absl::StrCat("argument ", Quoted(name), " has ", range->second.size, " tensors"));
        }
        resolved_.push_back({args_[range->second.first + k], 0});
        return absl::OkStatus();
      }
      PF_RETURN_IF_ERROR(CountListed(range->second.size));
      for (size_t i = 0; i < range->second.size; ++i) resolved_.push_back({args_[range->second.first + i], 0});
      return absl::OkStatus();
    }
    Node* node = graph_->Find(name);
    if (node == nullptr || node->op() == ops::k_Arg) {
      return absl::InvalidArgumentError(
          "found neither a node of the body nor an argument of the signature with this name");
    }
    int port = 0;
    if (colon == absl::string_view::npos || ParsePort(rest, &port)) {
      resolved_.push_back({node, port});
      return absl::OkStatus();
    }
    const size_t second = rest.find(':');
    const absl::StatusOr<PortRange> found = names_.Find(*node, rest.substr(0, second));
    if (accepts_unknown_ && absl::IsFailedPrecondition(found.status())) {
      std::vector<std::string>& outputs = unknown_outputs_[node];
      const auto known = std::find(outputs.begin(), outputs.end(), rest);
      resolved_.push_back({node, static_cast<int>(known - outputs.begin())});
      if (known == outputs.end()) outputs.emplace_back(rest);
      return absl::OkStatus();
    }
    PF_RETURN_IF_ERROR(found.status());
    const PortRange range = *found;
    if (second == absl::string_view::npos) {
      PF_RETURN_IF_ERROR(CountListed(static_cast<size_t>(range.size)));
      for (int i = 0; i < range.size; ++i) resolved_.push_back({node, range.first + i});
      return absl::OkStatus();
    }
    if (!ParsePort(rest.substr(second + 1), &port) || port >= range.size) {
      return absl::InvalidArgumentError(absl::StrCat("the output of ", node->Describe(), " has ", range.size,
                                                     range.size == 1 ? " tensor" : " tensors"));
    }
    resolved_.push_back({node, range.first + port});
    return absl::OkStatus();
  }

  absl::Status CountListed(size_t size) {
    num_listed_ += static_cast<int64_t>(size > 1 ? size : 0);
    if (num_listed_ <= kMostListedInputs) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("references to whole lists make more than ", kMostListedInputs, " inputs"));
  }

  absl::Status AddRetvals() {
    const std::vector<ArgSpec>& specs = function_.signature().outputs;
    PF_ASSIGN_OR_RETURN(const std::vector<DType> types, attrs_.Types(specs));
    absl::flat_hash_map<absl::string_view, absl::string_view> returns(function_.returns().begin(),
                                                                      function_.returns().end());
    size_t next = 0;
    for (const ArgSpec& spec : specs) {
      PF_ASSIGN_OR_RETURN(const int64_t count, attrs_.Count(spec));
      const auto found = returns.find(spec.name);
      if (found == returns.end()) {
        return absl::InvalidArgumentError(absl::StrCat("no value is defined for output ", Quoted(spec.name)));
      }
      const std::string place = absl::StrCat("output ", Quoted(spec.name), " is ", Quoted(found->second));
      PF_RETURN_IF_ERROR(Annotate(Resolve(found->second), place));
      if (static_cast<int64_t>(resolved_.size()) != count) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, ", which refers to ", resolved_.size(), " tensors, expected ", count));
      }
      for (const TensorRef& ref : resolved_) {
        const std::string name = graph_->UniqueName(absl::StrCat(spec.name, "_RetVal"));
        PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(name, ops::k_Retval));
        node->SetAttr("T", AttrValue::Type(types[next]));
        node->SetAttr("index", AttrValue::Int(static_cast<int64_t>(next)));
        graph_->AddInput(node, ref);
        output_names_.push_back(name);
        ++next;
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddControlOutputs() {
    for (const auto& [output, name] : function_.control_returns()) {
      PF_ASSIGN_OR_RETURN(const Node* node,
                          FindControl(name, absl::StrCat("control output ", Quoted(output), " is ", Quoted(name))));
      output_names_.emplace_back(node->name());
    }
    return absl::OkStatus();
  }

  const Function& function_;
  const bool accepts_unknown_;
  OutputNames names_;
  CallAttrs attrs_;
  std::unique_ptr<Graph> graph_;
  std::vector<Node*> nodes_;
  std::vector<absl::string_view> inputs_;  // Inputs of all nodes, in order.
  std::vector<size_t> input_ends_;         // By node.
  std::vector<Node*> args_;
  absl::flat_hash_map<absl::string_view, ArgRange> ranges_;  // By argument.
  std::vector<TensorRef> resolved_;
  std::vector<std::string> arg_names_, output_names_;
  absl::flat_hash_map<Node*, std::vector<std::string>> unknown_outputs_;  // Names of outputs of unknown ops, by port.
  int64_t num_listed_ = 0;
};

absl::StatusOr<std::unique_ptr<Graph>> FunctionLibrary::Instantiate(const FunctionRef& call) const {
  PF_ASSIGN_OR_RETURN(const Function* function, Require(call.name));
  absl::StatusOr<std::unique_ptr<Graph>> body = BodyReader(*this, *function, /*accepts_unknown=*/false).Read(call);
  if (!body.ok()) return Annotate(body.status(), absl::StrCat("function ", Quoted(call.name)));
  return body;
}

absl::StatusOr<std::unique_ptr<Graph>> FunctionLibrary::InstantiateToEdit(const FunctionRef& call) const {
  PF_ASSIGN_OR_RETURN(const Function* function, Require(call.name));
  absl::StatusOr<std::unique_ptr<Graph>> body = BodyReader(*this, *function, /*accepts_unknown=*/true).Read(call);
  if (!body.ok()) return Annotate(body.status(), absl::StrCat("function ", Quoted(call.name)));
  return body;
}

absl::StatusOr<std::vector<DType>> FunctionLibrary::InputTypes(const FunctionRef& call) const {
  PF_ASSIGN_OR_RETURN(const Function* function, Require(call.name));
  CallAttrs attrs;
  PF_RETURN_IF_ERROR(Annotate(attrs.Set(*function, call), absl::StrCat("function ", Quoted(call.name))));
  return attrs.Types(function->signature().inputs);
}

absl::StatusOr<std::vector<DType>> FunctionLibrary::OutputTypes(const FunctionRef& call) const {
  PF_ASSIGN_OR_RETURN(const Function* function, Require(call.name));
  CallAttrs attrs;
  PF_RETURN_IF_ERROR(Annotate(attrs.Set(*function, call), absl::StrCat("function ", Quoted(call.name))));
  return attrs.Types(function->signature().outputs);
}

// --- Writing a body back ---------------------------------------------------------------------------------------------

namespace {

class BodyWriter {
 public:
  BodyWriter(const FunctionLibrary& library, const Function& function, const Graph& body)
      : function_(function), body_(body), names_(library) {}

  absl::StatusOr<std::string> Write() {
    PF_RETURN_IF_ERROR(CheckInterface());
    StringSink nodes;
    Gatherer out(&nodes);
    std::vector<std::string> inputs;
    for (const Node* node = body_.first(); node != nullptr; node = node->next()) {
      if (arg_texts_.contains(node) || retvals_.contains(node)) continue;
      if (node->op() == ops::k_Arg || node->op() == ops::k_Retval) {
        return absl::InvalidArgumentError(
            absl::StrCat(node->Describe(), " is not one of the body's inputs or outputs"));
      }
      inputs.clear();
      for (int i = 0; i < node->num_inputs(); ++i) {
        PF_ASSIGN_OR_RETURN(inputs.emplace_back(), TextOf(node->input(i)));
      }
      PF_RETURN_IF_ERROR(WriteNodeDef(*node, fields::kBodyNode, &out, &inputs));
    }
    PF_RETURN_IF_ERROR(out.Flush());
    return Merge(nodes.text());
  }

 private:
  absl::Status CheckInterface() {
    const FunctionSignature& signature = function_.signature();
    if (!signature.attrs.empty()) {
      return absl::FailedPreconditionError("the signature has attributes, so a body is only one of its instances");
    }
    for (const ArgSpec& output : signature.outputs) {
      if (IsList(output))
        return absl::FailedPreconditionError(absl::StrCat("output ", Quoted(output.name), " is a list"));
    }
    const std::vector<Node*> args = ArgsOf(body_), retvals = RetvalsOf(body_), controls = ControlOutputsOf(body_);
    if (args.size() != signature.inputs.size() || retvals.size() != signature.outputs.size() ||
        controls.size() != function_.control_returns().size()) {
      return absl::InvalidArgumentError(absl::StrCat("the body has ", args.size(), " inputs, ", retvals.size(),
                                                     " outputs and ", controls.size(), " control outputs, expected ",
                                                     signature.inputs.size(), ", ", signature.outputs.size(), " and ",
                                                     function_.control_returns().size()));
    }
    for (size_t i = 0; i < args.size(); ++i) {
      const std::string& name = signature.inputs[i].name;
      const Node* other = body_.Find(name);
      if (args[i]->op() != ops::k_Arg || (other != nullptr && other != args[i])) {
        return absl::InvalidArgumentError(absl::StrCat("argument ", Quoted(name), " is ", args[i]->Describe(),
                                                       ", expected an _Arg and no other node of its name"));
      }
      arg_texts_.emplace(args[i], name);
    }
    absl::flat_hash_map<absl::string_view, std::string> values;
    for (size_t i = 0; i < retvals.size(); ++i) {
      if (retvals[i]->num_data_inputs() != 1) {
        return absl::InvalidArgumentError(absl::StrCat(retvals[i]->Describe(), ": expected one input"));
      }
      PF_ASSIGN_OR_RETURN(values[signature.outputs[i].name], TextOf(retvals[i]->input(0)));
      retvals_.insert(retvals[i]);
    }
    // Keeps the order of the entries, so that an unchanged body is written as the bytes that it was read from.
    for (const auto& [output, value] : function_.returns()) {
      if (const auto found = values.find(output); found != values.end()) {
        AppendEntry(fields::kRet, output, found->second, &returns_);
      }
    }
    for (size_t i = 0; i < controls.size(); ++i) {
      AppendEntry(fields::kControlRet, function_.control_returns()[i].first, controls[i]->name(), &control_returns_);
    }
    return absl::OkStatus();
  }

  static void AppendEntry(uint32_t number, absl::string_view key, absl::string_view value, std::string* out) {
    std::string entry;
    AppendBytesField(fields::kKey, key, &entry);
    AppendBytesField(fields::kValue, value, &entry);
    AppendBytesField(number, entry, out);
  }

  absl::StatusOr<std::string> TextOf(TensorRef ref) {
    const auto arg = arg_texts_.find(ref.node);
    if (arg != arg_texts_.end()) return absl::StrCat(ref.is_control() ? "^" : "", arg->second);
    if (ref.is_control()) return absl::StrCat("^", ref.node->name());
    absl::StatusOr<std::string> output = names_.NameOf(*ref.node, ref.port);
    if (absl::IsFailedPrecondition(output.status())) {
      const absl::StatusOr<std::vector<std::string>> names = StringListAttr(*ref.node, kOutputNames);
      if (names.ok() && static_cast<size_t>(ref.port) < names->size()) output = (*names)[ref.port];
    }
    PF_RETURN_IF_ERROR(output.status());
    return absl::StrCat(ref.node->name(), ":", *output);
  }

  // Encodes the definition with new nodes and returns. Fields keep the order of their numbers.
  absl::StatusOr<std::string> Merge(absl::string_view nodes) {
    std::string before, between, after;
    WireReader reader(function_.encoded());
    WireField field;
    while (reader.Next(&field)) {
      if (field.number == fields::kBodyNode || field.number == fields::kRet || field.number == fields::kControlRet) {
        continue;
      }
      std::string* part = field.number < fields::kBodyNode     ? &before
                          : field.number < fields::kControlRet ? &between
                                                               : &after;
      absl::StrAppend(part, field.whole);
    }
    PF_RETURN_IF_ERROR(reader.status());
    return absl::StrCat(before, nodes, returns_, between, absl::StrCat(control_returns_, after));
  }

  const Function& function_;
  const Graph& body_;
  OutputNames names_;
  absl::flat_hash_map<const Node*, std::string> arg_texts_;
  absl::flat_hash_set<const Node*> retvals_;
  std::string returns_, control_returns_;
};

}  // namespace

absl::Status FunctionLibrary::SetBody(absl::string_view name, const Graph& body) {
  PF_ASSIGN_OR_RETURN(const Function* function, Require(name));
  absl::StatusOr<std::string> encoded = BodyWriter(*this, *function, body).Write();
  if (!encoded.ok()) return Annotate(encoded.status(), absl::StrCat("function ", Quoted(name)));
  if (*encoded == function->encoded()) return absl::OkStatus();
  auto kept = std::make_shared<const std::string>(*std::move(encoded));
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Function> changed, Function::Parse(*kept, kept));
  DropDuplicates();
  const size_t index = by_name_.find(name)->second;
  by_name_.erase(name);
  parts_[index].whole = {};
  parts_[index].function = std::move(changed);
  by_name_.emplace(parts_[index].function->name(), index);
  is_changed_ = true;
  return absl::OkStatus();
}

}  // namespace permafrost
