// Fuzz target: the first byte selects a kind of side file, the rest is its content: precision plans, lineage,
// certificates, journals, baselines, devices and accelerators. A reader succeeds or returns an error of one line.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/fuzz/finding.h"
#include "tests/io/memory_file_system.h"
#include "tools/certificate/certificate.h"
#include "tools/difference/lineage_file.h"
#include "tools/measuring/benchmark_baseline.h"
#include "tools/measuring/device.h"
#include "tools/model/precision_plan_file.h"
#include "tools/optimizing/journal.h"
#include "tools/summary/accelerators.h"

namespace permafrost {
namespace {

void ReadPrecisionPlan(absl::string_view text) { CheckError(ParsePrecisionPlan(text).status(), text); }

void ReadLineage(absl::string_view text) {
  MemoryFileSystem files({{"lineage.json", std::string(text)}});
  CheckError(ReadLineageFile(files, "lineage.json").status(), text);
}

void ReadCertificate(absl::string_view text) {
  const absl::StatusOr<Certificate> certificate = ParseCertificate(text);
  CheckError(certificate.status(), text);
  if (!certificate.ok()) return;
  // A file that was written can be read.
  const std::string again = CertificateText(*certificate);
  if (!ParseCertificate(again).ok()) Fail("a certificate that was read cannot be read again: " + again, text);
}

void ReadJournal(absl::string_view text) {
  MemoryFileSystem files({{"journal.jsonl", std::string(text)}});
  CheckError(Journal::Open(files, "journal.jsonl", {"model", "inputs", "machine"}).status(), text);
}

void ReadBaselineFile(absl::string_view text) {
  MemoryFileSystem files({{"baseline.json", std::string(text)}});
  CheckError(ReadBaseline(files, "baseline.json").status(), text);
}

void ReadDevice(absl::string_view text) { CheckError(ParseDevice(text).status(), text); }

void ReadAccelerators(absl::string_view text) { CheckError(ParseAccelerators(text).status(), text); }

constexpr void (*kReaders[])(absl::string_view) = {&ReadPrecisionPlan, &ReadLineage, &ReadCertificate, &ReadJournal,
                                                   &ReadBaselineFile,  &ReadDevice,  &ReadAccelerators};

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  permafrost::kReaders[data[0] % (sizeof(permafrost::kReaders) / sizeof(permafrost::kReaders[0]))](text);
  return 0;
}
