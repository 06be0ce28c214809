// The certificate of a model: how it was made, what was measured, and a proof of its outputs that any machine can
// repeat without the original.
#ifndef PERMAFROST_TOOLS_CERTIFICATE_CERTIFICATE_H_
#define PERMAFROST_TOOLS_CERTIFICATE_CERTIFICATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "io/file_system.h"
#include "runtime_check/session_options.h"

namespace permafrost {

// A file, by its content.
struct CertifiedFile {
  std::string sha256;  // 64 hexadecimal digits.
  uint64_t bytes = 0;
};

// One output of the model on the random inputs of the proof, over all of them.
struct ProvenOutput {
  std::string name;
  std::string sha256;          // Of types, shapes and elements.
  double norm = 0;             // Square root of the sum of squares of the elements; 0 unless they are float.
  std::vector<double> sketch;  // Sums of the elements with random signs, from which distances are estimated.
};

// Measurements made when the model was written.
struct CertifiedMeasure {
  std::string inputs;       // "search", "held back" or "seeded".
  double relative_rms = 0;  // Of the worst output.
  int64_t labelled_rows = 0, right = 0, reference_right = 0;
  double low = 0, high = 0;  // 95 % interval of the share of right answers.
};

struct Certificate {
  std::string tool, date, machine;
  CertifiedFile original, model;
  std::string transforms;  // Passes that made the model from the original.
  std::string run;         // Flags of the way to run that was measured.
  std::vector<CertifiedMeasure> measures;
  std::vector<std::string> inputs, outputs;  // Names.
  uint64_t seed = 1;                         // Of the random inputs of the proof.
  std::vector<ProvenOutput> proof;
};

// Returns the description of a file's content.
absl::StatusOr<CertifiedFile> CertifyFile(FileSystem& files, const std::string& path);

// Runs the graph, whose interface is declared, with the built-in kernels on random inputs. Errors are those of
// SeededInputSets and Session.
absl::StatusOr<std::vector<ProvenOutput>> ProveOutputs(const Graph& graph, uint64_t seed,
                                                       const SessionOptions& options);

// The agreement of an output with its proof.
struct ProofAgreement {
  std::string name;
  bool is_identical = false;
  double relative_rms =
      0;  // Estimated rms of the differences, relative to that of the output; infinite if not comparable.
};

// Compares outputs with those of a certificate. InvalidArgument if their number or names differ.
absl::StatusOr<std::vector<ProofAgreement>> CompareProofs(const std::vector<ProvenOutput>& certified,
                                                          const std::vector<ProvenOutput>& found);

// Differences below this are those of other instruction sets and orders of summation: float has 24 bits, and sums of
// some thousand products lose ten of them.
inline constexpr double kProofTolerance = 1e-3;

// Returns the text of a certificate, which ends with its own hash.
std::string CertificateText(const Certificate& certificate);
// Reads a certificate. InvalidArgument for another format or version; DataLoss if the text was altered.
absl::StatusOr<Certificate> ParseCertificate(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_CERTIFICATE_CERTIFICATE_H_
