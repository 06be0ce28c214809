// Runs a graph. Start here.
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

// Computes some outputs of a graph from some inputs. Runs only the nodes that the outputs need, control inputs
// included. Results are the same bit for bit at each run with the same number of threads.
//
// Loops and branches of V1 control flow run as in TensorFlow, except that the iterations of a loop never overlap.
// Functions are compiled when the session is created, and planned when they are called. Tables that the fetches read
// are filled when the session is created, by the initialiser nodes of the graph.
//
// A plan holds all decisions that depend on shapes alone. It is made once for each set of input shapes, and the last
// few plans are kept.
//
// When a delegate fails in the middle of a run, everything is computed again without it, nodes that print included, and
// the report says so.
//
// Not thread-safe: one call at a time. Any number of sessions may share a delegate, and a graph that is not edited.
class Session {
 public:
  // `feeds` and `fetches` name outputs of nodes, "x" or "x:1"; any output of any node may be fed. `graph` must outlive
  // the session and stay unchanged. Errors of BuildProgram: everything that can be found without knowing the input
  // shapes, all nodes without a kernel at once. InvalidArgument, here and in each call from another thread, for a
  // processor that the calling thread may not use.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const Graph& graph, absl::Span<const std::string> feeds,
                                                         absl::Span<const std::string> fetches,
                                                         SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The inputs that Run takes. A dimension, or the rank, that is unknown is free; the type is kInvalid where the graph
  // does not give it.
  std::vector<TensorSpec> Inputs() const;

  // The outputs for these input shapes; a shape that is known only after the run is unknown. Makes the plan, so that
  // the next Run with these shapes finds it. Errors as of Run.
  absl::StatusOr<std::vector<TensorSpec>> Plan(absl::Span<const Shape> input_shapes);

  // Returns the fetches, in the order of Create's. `feeds` are in the order of Create's, too, and are not copied if
  // their buffers start at a multiple of 64 bytes. InvalidArgument for a feed of the wrong type or shape (found,
  // expected), for shapes that do not fit a node, which is named, and for a fetch on a branch that was not taken;
  // ResourceExhausted beyond the memory limit; Cancelled.
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds);

  // Like Run, into memory of the caller, without a copy where it starts at a multiple of 64 bytes. Each output's size
  // must be exact (see Plan), and the memory of inputs and outputs must not overlap. Strings cannot be fetched this
  // way.
  absl::Status RunInto(absl::Span<const Tensor> feeds, absl::Span<const absl::Span<char>> outputs);

  // The report of the plan that was made or run last, valid until the next one is; empty where there is none.
  const PlanReport& report() const;
  // The same, with the nodes of the functions as their bodies were planned last.
  PlanReport FullReport() const;
  int num_threads() const;

 private:
  class Impl;

  explicit Session(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_SESSION_H_
