// Definition of a pass. Each file in passes/ defines one pass; the file's name is the pass's name, its flag name and
// the name of its folder of golden tests. The definition is the source of the text that tools print, of the checks of
// arguments and of the properties that tests verify. No pass is registered by hand.
//
//   // Rounds ...
//   //
//   //   before   =>   after
//   //
//   // Declines when ...
//   DEFINE_PASS(round_weights) {
//     return Pass<Params>("Rounds float constants to few values.")
//         .Why("The file compresses better.")
//         .Param("num_steps", &Params::num_steps, "How many values a tensor keeps.", AtLeast(1))
//         .Numerics(Changes("weights are rounded"))
//         .Run(Round);
//   }
//
// Here Round is `absl::StatusOr<int64_t> Round(Graph*, const Params&, PassContext*)`, a pure function of its arguments.
// It returns the number of rewrites: 0 if and only if the graph is unchanged, which the runner verifies. Each rewrite
// is announced by a RewriteScope (below), so that --bisect can stop before it and --lineage can name the nodes
// involved.
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

// A near miss: a place that almost matched and was left unchanged.
struct MissedRewrite {
  std::string node;
  std::string op;
  std::string reason;    // The condition that failed: "input 1, node 'w' (Add), is not constant".
  std::string way_out;   // Remedy, such as "run fold_constants first"; empty if none is known.
  int num_failures = 1;  // Number of conditions that failed, among those checked.

  // "node 'm' (Mul): input 1, node 'w' (Add), is not constant; run fold_constants first".
  std::string ToString() const;
};

// A piece of MissIfWanted() that names a remedy for the miss.
struct WayOut {
  absl::string_view text;
};

// State that a pass may use besides the graph and the parameters. Only the evaluator affects the result of the pass.
struct PassContext {
  // Runs constant nodes. If null, a pass that needs it returns FailedPrecondition.
  const Evaluator* evaluator = nullptr;
  // Reads a whole side file. If null, a pass that needs it returns FailedPrecondition.
  std::function<absl::StatusOr<std::string>(absl::string_view path)> read_file;
  // Opens the checkpoint at `path`. If null, a pass that needs it returns FailedPrecondition.
  std::function<absl::StatusOr<std::unique_ptr<VariableSource>>(absl::string_view path)> open_checkpoint;
  // Runs `graph`, which was derived from the graph being transformed, on several inputs. Returns for each declared
  // output the signal-to-noise ratio (SQNR) in dB relative to the graph before all passes; infinity if there is no
  // difference. If null, a pass that would measure notes that it did not.
  std::function<absl::StatusOr<std::vector<double>>(const Graph& graph)> measure_outputs;
  // Number of threads that a pass may use for heavy arithmetic. The result does not depend on it.
  int num_threads = 1;

  // Records one line for the user about the work done ("folded 12 nodes into 3 constants"). The pass does not print.
  void Note(std::string text) { notes.push_back(std::move(text)); }
  // Records that an argument or an op of the pass does not occur in the graph ("no node has the op 'Foo'"). The
  // pipeline drops such notes for passes of a preset, whose arguments are not the user's.
  void NoteAbsent(std::string text) {
    if (wants_absent) Note(std::move(text));
  }
  // Records why a place that almost matched was left unchanged. Misses are collected only if `wants_misses` is set, so
  // build an expensive text inside `if (context->wants_misses)`.
  void Miss(const Node& node, absl::string_view reason, absl::string_view way_out = "");
  // Records a miss reported by the matcher or by a function that ends with NotMatched(). The way out is derived from
  // it.
  void Miss(const Node& node, const NearMiss& near_miss);
  void Miss(const Node& node, const absl::Status& status);
  // Records a miss from pieces of text, which are joined only if misses are wanted. A WayOut may come first.
  //   context->MissIfWanted(*node, WayOut{"raise max_inputs"}, "has ", count, " inputs");
  template <typename... Pieces>
  void MissIfWanted(const Node& node, const Pieces&... pieces);
  template <typename... Pieces>
  void MissIfWanted(const Node& node, const WayOut& way_out, const Pieces&... pieces);

  bool wants_misses = false;
  bool wants_absent = true;
  std::vector<std::string> notes;
  std::vector<MissedRewrite> misses;
  // Includes misses that are not collected, but not those found by searches that run only if misses are wanted.
  int64_t num_misses = 0;

  // Requests permission for one more rewrite. Call it when the decision is final and the graph is still unchanged.
  // Returns false once the limit is reached; the match must then be left unchanged. `matched` names the nodes of the
  // rewrite, the most important first. Passes whose edits follow the decision use RewriteScope instead.
  bool AllowRewrite(absl::Span<const Node* const> matched) {
    return ++num_rewrites_asked < rewrite_limit || AllowLastRewrite(matched);
  }
  bool AllowRewrite(const Node& node) {
    const Node* matched = &node;
    return AllowRewrite(absl::MakeConstSpan(&matched, 1));
  }

  // Maximum number of rewrites of each pass. The pipeline resets num_rewrites_asked to 0 before each pass.
  int64_t rewrite_limit = std::numeric_limits<int64_t>::max();
  int64_t num_rewrites_asked = 0;
  std::vector<std::string> last_rewrite;  // Names of the nodes of the last rewrite that was permitted.

 private:
  bool AllowLastRewrite(absl::Span<const Node* const> matched);
};

// One rewrite, from the decision to the last edit:
//
//   const RewriteScope rewrite(context, graph, {mul, convolution, factor});
//   if (!rewrite) continue;  // Not permitted: leave the match unchanged.
//   ... edit ...
//
// Edits until the end of the scope are recorded as edits of these nodes: see graph/lineage.h. List first the node that
// keeps its place, then the other matched nodes; absent ones may be null. The cost is negligible if neither a limit is
// set nor the lineage recorded.
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

// Guarantee of a pass about the outputs of the graph.
struct Numerics {
  enum class Kind { kExact, kWithin, kChanges };
  Kind kind = Kind::kExact;
  double tolerance = 0;  // kWithin: largest difference, relative to the output's scale (OutputDifference).
  std::string why;       // kChanges: the reason why outputs change.

  // Returns "exact", "within 1e-05" or "changes outputs: ...".
  std::string ToString() const;
};
inline Numerics Exact() { return {}; }
inline Numerics Within(double tolerance) { return {Numerics::Kind::kWithin, tolerance, ""}; }
inline Numerics Changes(std::string why) { return {Numerics::Kind::kChanges, 0, std::move(why)}; }

// One argument of a pass, as written in the transform string.
struct PassArgument {
  std::string name;
  std::string value;
};

// Description of a parameter, for tools.
struct ParamSpec {
  std::string name;
  std::string type;           // "int32", "float", "bool", "string", "list".
  std::string default_value;  // As written in a transform string; "" for an empty string or list.
  std::string help;
  std::string bounds;  // "at least 1", or empty.
  bool is_list = false;
  bool is_required = false;
};

// A bound on a numeric parameter. `text` completes "expected ...".
struct Bound {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool is_required = false;
  std::string text;
};
Bound AtLeast(double low);
Bound Between(double low, double high);
// Returns the bound of a parameter that must be given.
Bound Required();

// A complete definition of a pass, independent of the type of its parameters.
struct PassDefinition {
  std::string name;                  // Set by the macro.
  std::vector<std::string> aliases;  // Other names that FindPass accepts.
  std::string summary;
  std::string why;          // Purpose of the pass, in one sentence.
  std::string description;  // The comment above DEFINE_PASS: before => after, and the cases left unchanged.
  std::vector<ParamSpec> params;
  Numerics numerics;
  // The ops that the pass rewrites, if that set is fixed. If they occur and nothing is rewritten, a note reports it.
  std::vector<Op> ops;
  // True if a second run directly afterwards makes no rewrite.
  bool is_idempotent = false;
  // Describes how names, types or shapes of declared inputs and outputs may change; empty if they do not.
  std::string interface_change;
  // True if the pass follows its arguments even where the result is invalid. An invalid graph is then the caller's
  // error.
  bool may_invalidate = false;
  bool needs_evaluator = false;
  // Checks and parses `arguments`, then runs. Returns InvalidArgument for an unknown, repeated or malformed argument.
  std::function<absl::StatusOr<int64_t>(Graph*, const std::vector<PassArgument>& arguments, PassContext*)> run;
  // Checks the arguments without running, so that a pipeline can fail before any work is done.
  std::function<absl::Status(const std::vector<PassArgument>& arguments)> check_arguments;
};

namespace pass_internal {

// Parses one argument by type. `spec` is used in the error message.
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

// Builds a definition. The members of the struct Params hold the defaults.
template <typename Params>
class Pass {
 public:
  explicit Pass(std::string summary) { definition_.summary = std::move(summary); }

  // Sets the purpose of the pass: one sentence, printed after the summary.
  Pass&& Why(std::string why) && {
    definition_.why = std::move(why);
    return std::move(*this);
  }
  // Adds a parameter that is given at most once: std::string, bool, int32_t, int64_t, float or an optional of these.
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
  // Adds a parameter that may be given any number of times.
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

  // Adds an alias, such as a former name, that FindPass accepts.
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
  // Sets the root ops of the patterns that the pass rewrites: see PassDefinition::ops.
  Pass&& LooksFor(std::vector<Op> ops) && {
    definition_.ops = std::move(ops);
    return std::move(*this);
  }
  Pass&& ChangesInterface(std::string how) && {
    definition_.interface_change = std::move(how);
    return std::move(*this);
  }
  // Sets PassDefinition::may_invalidate.
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

// Returns all passes, sorted by name. The list is built once; thread-safe.
const std::vector<PassDefinition>& AllPasses();
// Finds a pass by name or alias. Returns InvalidArgument with the nearest names if there is no such pass.
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
