// Loads shared libraries on demand and fills the tables of their functions.
#include "third_party/deferred/deferred_library.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace permafrost::deferred {
namespace {

void* Open(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

std::string LastError() {
  const char* text = dlerror();
  return text == nullptr ? "the loader gives no reason" : text;
}

}  // namespace

// The kernel passes the base address of the dynamic linker, if there is one.
bool CanLoadLibraries() { return getauxval(AT_BASE) != 0; }

const std::string& Library::Load() {
  std::call_once(is_tried_, [this] { problem_ = TryToLoad(); });
  return problem_;
}

void Library::LoadOrDie() {
  if (Load().empty()) return;
  fprintf(stderr, "permafrost: a function of %s was called, but %s\n", name_, problem_.c_str());
  abort();
}

std::string Library::TryToLoad() {
  if (!CanLoadLibraries()) {
    is_missing_ = true;
    return std::string(name_) + " cannot be loaded: " + kNoLibraries;
  }
  std::string bundle_problem;
  if (is_bundled_) {
    if (void* const bundle = Open(kBundle)) {
      bundle_problem = Bind(bundle);
      if (bundle_problem.empty()) {
        replace_ = reinterpret_cast<decltype(replace_)>(dlsym(bundle, "permafrost_delegates_replace"));
        return "";
      }
    }
  }
  void* const handle = Open(name_);
  if (handle == nullptr) {
    const std::string error = LastError();
    // The error names the library, or another one that it needs.
    is_missing_ = error.rfind(std::string(name_) + ": cannot open shared object file: No such file", 0) == 0;
    return std::string(name_) + " cannot be loaded: " + error;
  }
  const std::string problem = Bind(handle);
  return problem.empty() || bundle_problem.empty() ? problem : bundle_problem;
}

// All addresses are found before the first is stored, so a table is either complete or unchanged.
std::string Library::Bind(void* handle) {
  if (foreign_ != nullptr && dlsym(handle, foreign_) != nullptr) {
    return std::string(name_) + " is of another version: it has the function '" + foreign_ + "'";
  }
  for (const bool is_storing : {false, true}) {
    const char* name = names_;
    for (size_t i = 0; i < num_slots_; ++i, name += strlen(name) + 1) {
      void* const found = dlsym(handle, name);
      if (found == nullptr) return std::string(name_) + " is of another version: it lacks the function '" + name + "'";
      if (is_storing) slots_[i] = found;
    }
  }
  handle_ = handle;
  return "";
}

void Library::Replace(const char* function, void* replacement) {
  if (replace_ != nullptr) replace_(function, replacement);
}

bool Library::SetSlot(const char* function, void* address) {
  const char* name = names_;
  for (size_t i = 0; i < num_slots_; ++i, name += strlen(name) + 1) {
    if (strcmp(name, function) != 0) continue;
    slots_[i] = address;
    return true;
  }
  return false;
}

std::string Library::Path() {
  Dl_info info;
  if (handle_ == nullptr || dladdr(dlsym(handle_, names_), &info) == 0) return "";
  return info.dli_fname;
}

}  // namespace permafrost::deferred
