// Definitions of the opaque types of permafrost_runtime.h.
#ifndef PERMAFROST_EMBEDDING_HANDLES_H_
#define PERMAFROST_EMBEDDING_HANDLES_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "embedding/packed_package.h"
#include "embedding/permafrost_runtime.h"
#include "embedding/session_choice.h"
#include "graph/tensor.h"
#include "runtime_check/profiling/profile_summary.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/session.h"

struct pf_model {
  std::shared_ptr<const permafrost::EmbeddedModel> graph;
  // The package that the graph was read from, for its packed weights. Null for models of other formats, and in builds
  // that do not read packed weights.
  permafrost::ModelPackage package;
};

struct pf_session {
  // Immutable after creation; read without the lock.
  std::shared_ptr<const permafrost::EmbeddedModel> graph;  // Declared before `session`, so that it is destroyed later.
  std::vector<permafrost::TensorSpec> inputs, outputs;

  std::mutex mutex;  // Guards the following members.
  permafrost::Profiler profiler;
  permafrost::ProfileSummary summary;
  permafrost::SessionPackedUse packed;
  std::unique_ptr<permafrost::EmbeddedSession> session;
  std::vector<permafrost::Shape> planned_inputs;  // Input shapes of `planned`.
  std::vector<permafrost::TensorSpec> planned;    // The outputs of the current plan; empty if there is none.
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
