// A session, which runs a graph. Start here.
//
//   PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(graph, {"image"}, {"probabilities"}));
//   PF_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, session->Run({image}));
#ifndef PERMAFROST_RUNTIME_CHECK_SESSION_H_
#define PERMAFROST_RUNTIME_CHECK_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/planning/plan_report.h"
#include "runtime_check/session_options.h"

namespace permafrost {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
};

// Computes some outputs of a graph from some inputs. Runs only the nodes that the outputs need, including control
// inputs. Results are bitwise identical in each run with the same number of threads.
//
// Not thread-safe: one call at a time. Any number of sessions may share a delegate, and a graph that is not edited.
//
// Loops and branches of V1 control flow run as in TensorFlow, except that the iterations of a loop never overlap.
// Functions are compiled when the session is created, and planned when they are called. Tables and variables
// that the fetches read are filled when the session is created, by the initialiser nodes of the graph. Variables keep
// their values from one run to the next; a new session starts from the initial values.
//
// A plan holds all decisions that depend only on shapes. It is made once for each set of input shapes, and the most
// recent plans are kept.
//
// If a delegate fails during a run, the session computes everything again without it, including nodes that print and
// assignments to variables, and the report records the failure.
class Session {
 public:
  // Creates a session. `feeds` and `fetches` name outputs of nodes, "x" or "x:1"; any output of any node may be fed.
  // `graph` must outlive the session and stay unchanged. Errors are those of BuildProgram: everything that can be found
  // without the input shapes, with all nodes that have no kernel in one error. InvalidArgument, here and in each call
  // from another thread, for a processor that the calling thread may not use.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const Graph& graph, absl::Span<const std::string> feeds,
                                                         absl::Span<const std::string> fetches,
                                                         SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns the inputs of Run. An unknown dimension or rank accepts any size; the type is kInvalid if the graph does
  // not specify it.
  std::vector<TensorSpec> Inputs() const;

  // Returns the outputs for these input shapes; a shape that is known only after the run is unknown. Makes the plan,
  // which the next Run with these shapes uses. Errors are those of Run.
  absl::StatusOr<std::vector<TensorSpec>> Plan(absl::Span<const Shape> input_shapes);

  // Returns the fetches, in the order passed to Create. `feeds` are in the order passed to Create, and are not copied
  // if their buffers start at a multiple of 64 bytes. InvalidArgument for a feed of the wrong type or shape (found,
  // expected), for shapes that do not match a node, which is named, and for a fetch on a branch that was not taken;
  // ResourceExhausted beyond the memory limit; Cancelled.
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds);

  // Runs like Run, but writes the outputs into the caller's memory, without a copy if it starts at a multiple of 64
  // bytes. Each output's size must be exact (see Plan), and the memory of inputs and outputs must not overlap. Strings
  // cannot be fetched this way.
  absl::Status RunInto(absl::Span<const Tensor> feeds, absl::Span<const absl::Span<char>> outputs);

  // Returns the report of the plan that was made or run last, valid until the next plan is made; empty if there is
  // none.
  const PlanReport& report() const;
  // Returns the report together with the nodes of the functions, as their bodies were planned last.
  PlanReport FullReport() const;
  int num_threads() const;

 private:
  class Impl;

  explicit Session(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_SESSION_H_
