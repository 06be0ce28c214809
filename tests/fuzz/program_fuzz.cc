// Fuzz target: bytes as a program file, whose session is created and, if its memory is small, run.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime_check/program_file/program_file.h"
#include "runtime_check/program_file/program_session.h"
#include "tests/fuzz/finding.h"

namespace {

// Fails if a status of a session is none that the file may cause. Messages may quote texts of the file as they are,
// which callers escape.
void CheckSessionError(const absl::Status& status, absl::string_view bytes) {
  if (absl::IsInternal(status) || absl::IsUnknown(status)) permafrost::Fail(status.ToString(), bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<std::unique_ptr<ProgramFile>> program = ProgramFile::Read(bytes, nullptr);
  CheckError(program.status(), bytes);
  if (!program.ok()) return 0;
  std::vector<std::string> inputs, outputs;
  for (const ProgramFileEndpoint& input : (*program)->inputs()) inputs.emplace_back(input.name);
  for (const ProgramFileEndpoint& output : (*program)->outputs()) outputs.emplace_back(output.name);
  constexpr int64_t kMostBytes = 1 << 20;  // Larger tensors make runs slow, and nothing else.
  int64_t total = (*program)->arena_bytes();
  for (const ProgramFileTensor& tensor : (*program)->tensors()) {
    if (tensor.bytes > kMostBytes - total) return 0;
    total += tensor.bytes;
  }
  SessionOptions options;
  options.memory_limit = 16 * kMostBytes;
  const absl::StatusOr<std::unique_ptr<ProgramSession>> session =
      ProgramSession::Create(**program, inputs, outputs, options);
  CheckSessionError(session.status(), bytes);
  if (!session.ok()) return 0;
  std::vector<Tensor> feeds;
  for (const TensorSpec& spec : (*session)->Inputs()) {
    char* elements = nullptr;
    absl::StatusOr<Tensor> feed = Tensor::Allocate(spec.dtype, spec.shape, &elements);
    if (!feed.ok()) return 0;
    for (size_t i = 0; i < feed->bytes().size(); ++i) elements[i] = 0;
    feeds.push_back(*std::move(feed));
  }
  CheckSessionError((*session)->Run(feeds).status(), bytes);
  return 0;
}
