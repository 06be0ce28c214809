// Runs a pass over the bodies of functions.
#include "transforms/rewrites/function_bodies.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"

namespace permafrost {
namespace {

// Maximum number of notes, so that they stay readable.
constexpr size_t kMaxNotes = 20;

}  // namespace

absl::StatusOr<int64_t> EditFunctionBodies(Graph* graph, PassContext* context, EditBody edit) {
  if (graph->library().empty()) return 0;
  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(*graph));
  const auto needed = library.Reachable(library.CalledBy(*graph));
  if (!needed.ok()) {
    context->Note(absl::StrCat("without the bodies of functions: ", needed.status().message()));
    return 0;
  }
  std::vector<std::string> names;
  for (const Function* function : library.functions()) {
    if (needed->contains(function->name())) names.emplace_back(function->name());
  }
  std::vector<std::string> notes;
  int64_t rewrites = 0;
  for (const std::string& name : names) {
    const auto note = [&](absl::string_view text) { notes.push_back(absl::StrCat("function '", name, "': ", text)); };
    if (!library.Find(name)->signature().attrs.empty()) {
      note("left unchanged, since its body depends on attributes of its callers");
      continue;
    }
    absl::StatusOr<std::unique_ptr<Graph>> body = library.Instantiate({name, {}});
    if (!body.ok()) {
      note(absl::StrCat("left unchanged: ", body.status().message()));
      continue;
    }
    const size_t num_notes = context->notes.size();
    absl::StatusOr<int64_t> made = edit(body->get());
    std::vector<std::string> own(context->notes.begin() + num_notes, context->notes.end());
    context->notes.resize(num_notes);
    if (made.ok() && *made > 0) {
      if (const absl::Status written = library.SetBody(name, **body); !written.ok()) made = written;
    }
    if (!made.ok()) {
      note(absl::StrCat("left unchanged: ", made.status().message()));
      continue;
    }
    for (const std::string& text : own) note(text);
    rewrites += *made;
  }
  const size_t told = std::min(notes.size(), kMaxNotes);
  for (size_t i = 0; i < told; ++i) context->Note(std::move(notes[i]));
  if (told < notes.size()) context->Note(absl::StrCat(notes.size() - told, " more notes about functions"));
  if (rewrites > 0) library.Store(graph);
  return rewrites;
}

}  // namespace permafrost
