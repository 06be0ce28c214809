// How far the tensors inside of a model are from those of another that it was made from.
#ifndef PERMAFROST_TOOLS_REPORT_LAYER_ERRORS_H_
#define PERMAFROST_TOOLS_REPORT_LAYER_ERRORS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime_check/session.h"
#include "tools/benchmark/benchmark_subject.h"

namespace permafrost {

// The SQNR in decibels of the first output of each node that both graphs have under one name, with floats of one shape:
// 10 log10(sum e^2 / sum (a - e)^2) with the expected e of `reference`; infinite where nothing differs, minus infinite
// where one is finite and the other is not. Both run on what `reference` is fed. Errors as of Session, with the model
// named. What is fetched at a time is limited, so a large model is run in parts.
absl::StatusOr<absl::flat_hash_map<std::string, double>> LayerErrors(const BenchmarkSubject& reference,
                                                                     const BenchmarkSubject& candidate,
                                                                     const SessionOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_LAYER_ERRORS_H_
