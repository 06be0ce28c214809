// What the handles of permafrost_runtime.h stand for.
#ifndef PERMAFROST_EMBEDDING_HANDLES_H_
#define PERMAFROST_EMBEDDING_HANDLES_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "embedding/packed_package.h"
#include "embedding/permafrost_runtime.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/profiling/profile_summary.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/session.h"

struct pf_model {
  std::shared_ptr<const permafrost::Graph> graph;
  // Which the graph was read from, for the weights that lie packed in it; null for models of other formats, and in
  // builds that look for none.
  permafrost::ModelPackage package;
};

struct pf_session {
  // What is known from the start, and read without the lock.
  std::shared_ptr<const permafrost::Graph> graph;  // Outlives `session`, since it comes first.
  std::vector<permafrost::TensorSpec> inputs, outputs;

  std::mutex mutex;  // Guards what follows.
  permafrost::Profiler profiler;
  permafrost::ProfileSummary summary;
  permafrost::SessionPackedUse packed;
  std::unique_ptr<permafrost::Session> session;
  std::vector<permafrost::Shape> planned_inputs;  // What `planned` is for.
  std::vector<permafrost::TensorSpec> planned;    // The outputs of the current plan; empty where there is none.
};

struct pf_result {
  std::vector<permafrost::Tensor> outputs;
  std::vector<std::vector<pf_string>> strings;  // By output; views of its elements.
};

struct pf_profile {
  std::vector<permafrost::ProfileRow> rows;
  int64_t num_runs = 0;
  double total_us = 0;
};

#endif  // PERMAFROST_EMBEDDING_HANDLES_H_
