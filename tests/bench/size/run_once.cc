// The smallest program around a runtime, used to measure its size: reads a model, runs it once and writes the outputs.
//   run_once MODEL INPUT_NAME DIMS OUTPUT_NAME < elements > elements
// DIMS are the dimensions of the only input, separated by commas. MODEL is a frozen graph, or for a runtime of program
// files such a file.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "embedding/session_choice.h"
#include "graph/base/status.h"
#ifndef PERMAFROST_PROGRAM_FILES
#include "io/formats/graphdef.h"
#endif

namespace permafrost {
namespace {

// Returns the mapped content of a file; empty on failure.
absl::string_view Map(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
  if (size <= 0) return {};
  void* const memory = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (memory == MAP_FAILED) return {};
  return {static_cast<const char*>(memory), static_cast<size_t>(size)};
}

absl::StatusOr<std::unique_ptr<EmbeddedModel>> ReadModel(absl::string_view bytes) {
#ifdef PERMAFROST_PROGRAM_FILES
  return ProgramFile::Read(bytes, nullptr);
#else
  return ReadGraphDef(bytes, nullptr);
#endif
}

bool ReadAll(char* to, size_t size) {
  while (size > 0) {
    const ssize_t got = read(STDIN_FILENO, to, size);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool WriteAll(int file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

absl::Status Run(char** arguments) {
  const absl::string_view bytes = Map(arguments[1]);
  if (bytes.empty()) return absl::NotFoundError(absl::StrCat("'", arguments[1], "': no file, or an empty one"));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<EmbeddedModel> model, ReadModel(bytes));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<EmbeddedSession> session,
                      EmbeddedSession::Create(*model, {std::string(arguments[2])}, {std::string(arguments[4])}));
  std::vector<int64_t> dims;
  for (const absl::string_view dim : absl::StrSplit(arguments[3], ',')) {
    if (!absl::SimpleAtoi(dim, &dims.emplace_back())) {
      return absl::InvalidArgumentError(absl::StrCat("found dimension '", dim, "', expected a number"));
    }
  }
  char* values = nullptr;
  PF_ASSIGN_OR_RETURN(const Tensor input, Tensor::Allocate(session->Inputs()[0].dtype, Shape(dims), &values));
  if (!ReadAll(values, input.bytes().size())) {
    return absl::DataLossError("the input has fewer elements than its shape says");
  }
  PF_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({input}));
  for (const Tensor& output : outputs) {
    if (!WriteAll(STDOUT_FILENO, output.bytes())) return absl::DataLossError("standard output takes no more");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace permafrost

int main(int count, char** arguments) {
  const absl::Status status =
      count == 5 ? permafrost::Run(arguments) : absl::InvalidArgumentError("usage: run_once MODEL INPUT DIMS OUTPUT");
  if (status.ok()) return 0;
  permafrost::WriteAll(STDERR_FILENO, absl::StrCat("run_once: ", status.message(), "\n"));
  return 255;
}
