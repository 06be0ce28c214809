// How a pass is defined. One file in passes/ is one pass; the file's name is the pass's name, its flag name and the
// name of its folder of golden tests. What tools print about a pass, what they check of its arguments, and what tests
// demand of its result is read from the definition; nothing is registered by hand.
//
//   // Rounds ...
//   //
//   //   before   =>   after
//   //
//   // Left alone when ...
//   DEFINE_PASS(round_weights) {
//     return Pass<Params>("Rounds float constants to few values.")
//         .Why("The file compresses better.")
//         .Param("num_steps", &Params::num_steps, "How many values a tensor keeps.", AtLeast(1))
//         .Numerics(Changes("weights are rounded"))
//         .Run(Round);
//   }
//
// with `absl::StatusOr<int64_t> Round(Graph*, const Params&, PassContext*)`, a pure function of its arguments that
// returns how many rewrites it made: 0 if and only if the graph is unchanged, which the runner verifies. Each rewrite
// is announced by a RewriteScope (below), so that --bisect can stop before it and --lineage knows what it is about.
#ifndef PERMAFROST_TRANSFORMS_PASS_H_
#define PERMAFROST_TRANSFORMS_PASS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/evaluator.h"
#include "graph/graph.h"
#include "graph/lineage.h"
#include "graph/matching/near_miss.h"
#include "graph/variable_source.h"

namespace permafrost {

// A place that looked like a match and was left alone.
struct MissedRewrite {
  std::string node;
  std::string op;
  std::string reason;    // The condition that failed: "input 1, node 'w' (Add), is not constant".
  std::string way_out;   // What would make it match: "run fold_constants first". Empty where nothing is known.
  int num_failures = 1;  // How many conditions failed, as far as that was looked at.

  // "node 'm' (Mul): input 1, node 'w' (Add), is not constant; run fold_constants first".
  std::string ToString() const;
};

// A piece of MissIfWanted() that says what would help.
struct WayOut {
  absl::string_view text;
};

// What a pass may use besides graph and parameters. Nothing in it changes what the pass computes, save the evaluator.
struct PassContext {
  // Runs constant nodes. Null: a pass that needs it gives FailedPrecondition.
  const Evaluator* evaluator = nullptr;
  // Reads a side file whole. Null: a pass that needs it gives FailedPrecondition.
  std::function<absl::StatusOr<std::string>(absl::string_view path)> read_file;
  // Opens a checkpoint, by what names it. Null: a pass that needs it gives FailedPrecondition.
  std::function<absl::StatusOr<std::unique_ptr<VariableSource>>(absl::string_view path)> open_checkpoint;
  // Runs a graph that was made from the one at hand on several inputs, and returns for each declared output how large
  // it is relative to its difference from what the graph before all passes gives: SQNR in dB, infinity where nothing
  // differs. Null: a pass that would measure says in a note that it did not.
  std::function<absl::StatusOr<std::vector<double>>(const Graph& graph)> measure_outputs;
  // How many threads a pass may use for heavy arithmetic; the result does not depend on it.
  int num_threads = 1;

  // One line on what was done, for people ("folded 12 nodes into 3 constants"). The pass does not print.
  void Note(std::string text) { notes.push_back(std::move(text)); }
  // Why a place that looked like a match was left alone. Collected only when wanted: build a text that is not at hand
  // inside `if (context->wants_misses)`.
  void Miss(const Node& node, absl::string_view reason, absl::string_view way_out = "");
  // The same from what the matcher, or a function that ends with NotMatched(), says; the way out follows from it.
  void Miss(const Node& node, const NearMiss& near_miss);
  void Miss(const Node& node, const absl::Status& status);
  // The same in one line of code at the place of the decision: pieces of text, and the way out in front of them.
  //   context->MissIfWanted(*node, WayOut{"raise max_inputs"}, "has ", count, " inputs");
  template <typename... Pieces>
  void MissIfWanted(const Node& node, const Pieces&... pieces);
  template <typename... Pieces>
  void MissIfWanted(const Node& node, const WayOut& way_out, const Pieces&... pieces);

  bool wants_misses = false;
  std::vector<std::string> notes;
  std::vector<MissedRewrite> misses;
  int64_t num_misses = 0;  // Also those that are not collected, except what only a wanted miss is looked for.

  // Asks for leave to make one more rewrite, when all is decided and nothing is changed yet: false once the limit is
  // reached, and the match is to be left alone. `matched` is what the rewrite is about, the most telling node first.
  // Passes whose edits follow the decision use RewriteScope instead.
  bool AllowRewrite(absl::Span<const Node* const> matched) {
    return ++num_rewrites_asked < rewrite_limit || AllowLastRewrite(matched);
  }
  bool AllowRewrite(const Node& node) {
    const Node* matched = &node;
    return AllowRewrite(absl::MakeConstSpan(&matched, 1));
  }

  // How many rewrites each pass may make. The pipeline sets num_rewrites_asked to 0 before each pass.
  int64_t rewrite_limit = std::numeric_limits<int64_t>::max();
  int64_t num_rewrites_asked = 0;
  std::vector<std::string> last_rewrite;  // Names of the nodes of the last rewrite that the limit allowed.

 private:
  bool AllowLastRewrite(absl::Span<const Node* const> matched);
};

// One rewrite, from the decision to the last edit:
//
//   const RewriteScope rewrite(context, graph, {mul, convolution, factor});
//   if (!rewrite) continue;  // Not allowed: leave the match alone.
//   ... edit ...
//
// The edits until the end of the scope are recorded as being about these nodes: see graph/lineage.h. First comes the
// node that keeps its place, then the others that were matched; absent ones may be null. Costs next to nothing when
// neither a limit is set nor the lineage recorded.
class RewriteScope {
 public:
  RewriteScope(PassContext* context, Graph* graph, std::initializer_list<const Node*> matched)
      : RewriteScope(context, graph, absl::MakeConstSpan(matched.begin(), matched.size())) {}
  RewriteScope(PassContext* context, Graph* graph, absl::Span<const Node* const> matched)
      : is_allowed_(context->AllowRewrite(matched)), origins_(graph, matched) {}
  explicit operator bool() const { return is_allowed_; }

 private:
  bool is_allowed_;
  OriginScope origins_;
};

// What a pass promises about the outputs of the graph.
struct Numerics {
  enum class Kind { kExact, kWithin, kChanges };
  Kind kind = Kind::kExact;
  double tolerance = 0;  // kWithin: largest difference, relative to the output's own scale (OutputDifference).
  std::string why;       // kChanges: what changes.

  // "exact", "within 1e-05", "changes numbers: ...".
  std::string ToString() const;
};
inline Numerics Exact() { return {}; }
inline Numerics Within(double tolerance) { return {Numerics::Kind::kWithin, tolerance, ""}; }
inline Numerics Changes(std::string why) { return {Numerics::Kind::kChanges, 0, std::move(why)}; }

// One argument as the transform string gives it.
struct PassArgument {
  std::string name;
  std::string value;
};

// A parameter as tools describe it.
struct ParamSpec {
  std::string name;
  std::string type;           // "int32", "float", "bool", "string", "list".
  std::string default_value;  // As one would write it; "" for an empty string or list.
  std::string help;
  std::string bounds;  // "at least 1", or empty.
  bool is_list = false;
  bool is_required = false;
};

// A bound on a number. `text` completes "expected ...".
struct Bound {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool is_required = false;
  std::string text;
};
Bound AtLeast(double low);
Bound Between(double low, double high);
// The parameter must be given.
Bound Required();

// A finished definition, without the type of the parameters.
struct PassDefinition {
  std::string name;                  // Set from the macro.
  std::vector<std::string> aliases;  // Other names that FindPass takes.
  std::string summary;
  std::string why;          // What it is good for, in a sentence.
  std::string description;  // The comment above DEFINE_PASS: before => after, and what is left alone.
  std::vector<ParamSpec> params;
  Numerics numerics;
  // The ops that the pass rewrites, where they are fixed: when it rewrites nothing though they occur, a note says so.
  std::vector<Op> ops;
  // A second run right after makes no rewrite.
  bool is_idempotent = false;
  // Empty, or how the names, types or shapes of declared inputs and outputs may change.
  std::string interface_change;
  // It does to a graph what the caller says, wise or not: a graph that is not valid afterwards is the caller's error.
  bool may_invalidate = false;
  bool needs_evaluator = false;
  // Checks and parses `arguments`, then runs. InvalidArgument for an unknown, repeated or malformed argument.
  std::function<absl::StatusOr<int64_t>(Graph*, const std::vector<PassArgument>& arguments, PassContext*)> run;
  // Only the checking of the arguments: lets a pipeline fail before any work is done.
  std::function<absl::Status(const std::vector<PassArgument>& arguments)> check_arguments;
};

namespace pass_internal {

// Parsing of one argument by type; `spec` is for the message.
absl::Status ParseInto(const ParamSpec& spec, const std::string& text, std::string* out);
absl::Status ParseInto(const ParamSpec& spec, const std::string& text, bool* out);
absl::Status ParseInto(const ParamSpec& spec, const std::string& text, int32_t* out);
absl::Status ParseInto(const ParamSpec& spec, const std::string& text, int64_t* out);
absl::Status ParseInto(const ParamSpec& spec, const std::string& text, float* out);
template <typename T>
absl::Status ParseInto(const ParamSpec& spec, const std::string& text, std::optional<T>* out) {
  return ParseInto(spec, text, &out->emplace());
}

std::string TypeName(const std::string*);
std::string TypeName(const bool*);
std::string TypeName(const int32_t*);
std::string TypeName(const int64_t*);
std::string TypeName(const float*);
template <typename T>
std::string TypeName(const std::optional<T>*) {
  return TypeName(static_cast<const T*>(nullptr));
}

std::string DefaultText(const std::string& value);
std::string DefaultText(bool value);
std::string DefaultText(int32_t value);
std::string DefaultText(int64_t value);
std::string DefaultText(float value);
template <typename T>
std::string DefaultText(const std::optional<T>& value) {
  return value.has_value() ? DefaultText(*value) : "";
}

absl::Status CheckBound(const ParamSpec& spec, const Bound& bound, double value);
template <typename T>
absl::Status CheckBoundOf(const ParamSpec& spec, const Bound& bound, const T& value) {
  if constexpr (std::is_arithmetic_v<T>) return CheckBound(spec, bound, static_cast<double>(value));
  return absl::OkStatus();
}
template <typename T>
absl::Status CheckBoundOf(const ParamSpec& spec, const Bound& bound, const std::optional<T>& value) {
  return value.has_value() ? CheckBoundOf(spec, bound, *value) : absl::OkStatus();
}

absl::Status UnknownArgument(const PassArgument& argument, const std::vector<ParamSpec>& params);
absl::Status Repeated(const ParamSpec& spec, size_t times);
absl::Status Missing(const ParamSpec& spec);

}  // namespace pass_internal

// Builds a definition. Params is a struct whose members carry the defaults.
template <typename Params>
class Pass {
 public:
  explicit Pass(std::string summary) { definition_.summary = std::move(summary); }

  // What it is good for: a sentence that stands behind the summary.
  Pass&& Why(std::string why) && {
    definition_.why = std::move(why);
    return std::move(*this);
  }
  // A parameter that is given at most once: std::string, bool, int32_t, int64_t, float or an optional of these.
  template <typename T>
  Pass&& Param(std::string name, T Params::*member, std::string help, Bound bound = {}) && {
    ParamSpec spec;
    spec.name = std::move(name);
    spec.type = pass_internal::TypeName(static_cast<const T*>(nullptr));
    spec.default_value = bound.is_required ? "" : pass_internal::DefaultText(Params().*member);
    spec.help = std::move(help);
    spec.bounds = bound.text;
    spec.is_required = bound.is_required;
    definition_.params.push_back(spec);
    setters_.push_back([spec, member, bound](const std::vector<std::string>& values, Params* params) -> absl::Status {
      if (values.empty()) return bound.is_required ? pass_internal::Missing(spec) : absl::OkStatus();
      if (values.size() > 1) return pass_internal::Repeated(spec, values.size());
      if (absl::Status status = pass_internal::ParseInto(spec, values[0], &(params->*member)); !status.ok())
        return status;
      return pass_internal::CheckBoundOf(spec, bound, params->*member);
    });
    return std::move(*this);
  }
  // A parameter that may be given any number of times.
  Pass&& Param(std::string name, std::vector<std::string> Params::*member, std::string help, Bound bound = {}) && {
    ParamSpec spec;
    spec.name = std::move(name);
    spec.type = "string";
    spec.help = std::move(help);
    spec.is_list = true;
    spec.is_required = bound.is_required;
    definition_.params.push_back(spec);
    setters_.push_back([spec, member](const std::vector<std::string>& values, Params* params) -> absl::Status {
      if (values.empty() && spec.is_required) return pass_internal::Missing(spec);
      params->*member = values;
      return absl::OkStatus();
    });
    return std::move(*this);
  }

  // Another name under which FindPass knows the pass: one that it once had.
  Pass&& Alias(std::string name) && {
    definition_.aliases.push_back(std::move(name));
    return std::move(*this);
  }
  Pass&& Numerics(permafrost::Numerics numerics) && {
    definition_.numerics = std::move(numerics);
    return std::move(*this);
  }
  Pass&& Idempotent() && {
    definition_.is_idempotent = true;
    return std::move(*this);
  }
  // The ops at the head of what is rewritten: see PassDefinition::ops.
  Pass&& LooksFor(std::vector<Op> ops) && {
    definition_.ops = std::move(ops);
    return std::move(*this);
  }
  Pass&& ChangesInterface(std::string how) && {
    definition_.interface_change = std::move(how);
    return std::move(*this);
  }
  // See PassDefinition::may_invalidate.
  Pass&& MayInvalidate() && {
    definition_.may_invalidate = true;
    return std::move(*this);
  }
  Pass&& NeedsEvaluator() && {
    definition_.needs_evaluator = true;
    return std::move(*this);
  }

  PassDefinition Run(absl::StatusOr<int64_t> (*function)(Graph*, const Params&, PassContext*)) && {
    const auto parse = [setters = setters_, params = definition_.params](const std::vector<PassArgument>& arguments,
                                                                         Params* parsed) -> absl::Status {
      std::vector<std::vector<std::string>> values(params.size());
      for (const PassArgument& argument : arguments) {
        size_t i = 0;
        while (i < params.size() && params[i].name != argument.name) ++i;
        if (i == params.size()) return pass_internal::UnknownArgument(argument, params);
        values[i].push_back(argument.value);
      }
      for (size_t i = 0; i < setters.size(); ++i) {
        if (absl::Status status = setters[i](values[i], parsed); !status.ok()) return status;
      }
      return absl::OkStatus();
    };
    definition_.check_arguments = [parse](const std::vector<PassArgument>& arguments) {
      Params ignored;
      return parse(arguments, &ignored);
    };
    definition_.run = [parse, function](Graph* graph, const std::vector<PassArgument>& arguments,
                                        PassContext* context) -> absl::StatusOr<int64_t> {
      Params params;
      if (absl::Status status = parse(arguments, &params); !status.ok()) return status;
      return function(graph, params, context);
    };
    return std::move(definition_);
  }

 private:
  using Setter = std::function<absl::Status(const std::vector<std::string>&, Params*)>;
  PassDefinition definition_;
  std::vector<Setter> setters_;
};

struct NoParams {};

#define DEFINE_PASS(name) ::permafrost::PassDefinition DefinePass_##name()

// All passes, by name. Built once; thread-safe.
const std::vector<PassDefinition>& AllPasses();
// By name or alias. InvalidArgument with the nearest names when there is no such pass.
absl::StatusOr<const PassDefinition*> FindPass(absl::string_view name);

template <typename... Pieces>
void PassContext::MissIfWanted(const Node& node, const Pieces&... pieces) {
  ++num_misses;
  if (wants_misses) Miss(node, absl::StrCat(pieces...));
}

template <typename... Pieces>
void PassContext::MissIfWanted(const Node& node, const WayOut& way_out, const Pieces&... pieces) {
  ++num_misses;
  if (wants_misses) Miss(node, absl::StrCat(pieces...), way_out.text);
}

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_PASS_H_
