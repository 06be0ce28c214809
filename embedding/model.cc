// Implements opening of models for the C interface.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "embedding/caller_error.h"
#include "embedding/descriptor_view.h"
#include "embedding/given_secrets.h"
#include "embedding/handles.h"
#include "embedding/model_reading.h"
#include "embedding/permafrost_runtime.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

absl::StatusOr<OpenOptions> OptionsOf(const pf_open_options* given) {
  pf_open_options options;
  PF_RETURN_IF_ERROR(ReadOptions(given, &options));
  OpenOptions open;
  if (options.max_model_bytes != 0) open.max_model_bytes = options.max_model_bytes;
  open.require_locked_memory = options.require_locked_memory != 0;
  PF_ASSIGN_OR_RETURN(open.keys, SecretsOf(options));
  if (options.note != nullptr) {
    open.tell = [note = options.note, context = options.note_context](absl::string_view text) {
      note(context, std::string(text).c_str());
    };
  }
  return open;
}

// Opens a model with `read(options)`, which returns the graph, and reports errors to the caller.
template <typename Read>
pf_status Open(const pf_open_options* given, pf_model** model, CallerError error, Read&& read) {
  return Guarded(error, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(model, "model"));
    PF_ASSIGN_OR_RETURN(OpenOptions options, OptionsOf(given));
    ModelPackage package;
    AskFor(&package, &options);
    absl::StatusOr<std::unique_ptr<EmbeddedModel>> graph = read(options);
    PF_RETURN_IF_ERROR(graph.status());
    *model = new pf_model{*std::move(graph), std::move(package)};
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace permafrost

using permafrost::CallerError;
using permafrost::CheckGiven;
using permafrost::EmbeddedModel;
using permafrost::FileView;
using permafrost::OpenOptions;

pf_status pf_open_file(const char* path, const pf_open_options* options, pf_model** model, char* error,
                       size_t error_size) {
  return permafrost::Open(options, model, {error, error_size},
                          [&](const OpenOptions& open) -> absl::StatusOr<std::unique_ptr<EmbeddedModel>> {
                            PF_RETURN_IF_ERROR(CheckGiven(path, "path"));
                            return permafrost::ReadModelFile(path, open);
                          });
}

pf_status pf_open_descriptor(int descriptor, uint64_t offset, uint64_t length, const pf_open_options* options,
                             pf_model** model, char* error, size_t error_size) {
  return permafrost::Open(options, model, {error, error_size},
                          [&](const OpenOptions& open) -> absl::StatusOr<std::unique_ptr<EmbeddedModel>> {
                            PF_ASSIGN_OR_RETURN(FileView bytes, permafrost::ViewDescriptor(descriptor, offset, length));
                            return permafrost::ReadModelBytes(std::move(bytes), open);
                          });
}

pf_status pf_open_memory(const void* bytes, size_t size, void (*release)(void* context), void* release_context,
                         const pf_open_options* options, pf_model** model, char* error, size_t error_size) {
  permafrost::Owner owner;
  const pf_status status = permafrost::Guarded({error, error_size}, [&] {
    // The deleter also runs if the construction of the owner fails.
    if (release != nullptr) {
      owner = permafrost::Owner(bytes, [=](const void*) { release(release_context); });
    }
    return absl::OkStatus();
  });
  if (status != PF_OK) return status;
  return permafrost::Open(options, model, {error, error_size},
                          [&](const OpenOptions& open) -> absl::StatusOr<std::unique_ptr<EmbeddedModel>> {
                            PF_RETURN_IF_ERROR(CheckGiven(bytes, "bytes"));
                            const absl::string_view view(static_cast<const char*>(bytes), size);
                            return permafrost::ReadModelBytes({view, owner}, open);
                          });
}

void pf_free_model(pf_model* model) { delete model; }
