// Shared libraries that are loaded when they are first needed, so that a program starts without them, runs on machines
// that lack them, and can say why one does not load.
//
// deferred_library of deferred_library.bzl defines the listed functions of a library. Each is a jump through a table,
// which the first call of any of them, or Load, fills with the addresses in the library.
#ifndef PERMAFROST_THIRD_PARTY_DEFERRED_DEFERRED_LIBRARY_H_
#define PERMAFROST_THIRD_PARTY_DEFERRED_DEFERRED_LIBRARY_H_

#include <cstddef>
#include <mutex>
#include <string>

namespace permafrost::deferred {

// Whether this program can load shared libraries. A statically linked one cannot: the dynamic linker that it would
// start brings a second C library, with threads and memory that the first does not know.
bool CanLoadLibraries();
inline constexpr const char* kNoLibraries = "this program is linked statically and loads no shared libraries";

// The name of the shared library that brings the libraries of all delegates along (//runtime_check/delegates/bundle).
// It is tried first; without it each library is loaded by its own name.
inline constexpr const char* kBundle = "libpermafrost_delegates.so.1";

// One library. Thread-safe. Lives as long as the process; what is loaded stays loaded.
class Library {
 public:
  // `names` are the names of functions, each ended by a zero byte, `slots` their addresses, in the same order. `name`
  // is the file name of the library. A library that exports `foreign`, unless null, is another version of the same
  // name, and refused. All pointers must outlive the library.
  Library(const char* name, bool is_bundled, const char* foreign, const char* names, void** slots, size_t num_slots)
      : name_(name), is_bundled_(is_bundled), foreign_(foreign), names_(names), slots_(slots), num_slots_(num_slots) {}

  // Loads the library if it is not loaded. Returns why it cannot be loaded, which does not change between calls, or
  // an empty string.
  const std::string& Load();
  // Loads the library, and ends the process with a message if that fails.
  void LoadOrDie();
  // Replaces a function that the library calls, such as "GOMP_parallel", by another of the same type. Has no effect
  // unless the library was loaded through the bundle. REQUIRES: Load has succeeded.
  void Replace(const char* function, void* replacement);
  // Fills the table entry of a function. REQUIRES: the library defines it; otherwise returns false.
  bool SetSlot(const char* function, void* address);
  // Returns true if Load has failed since there is no file of that name, or no library can be loaded.
  bool is_missing() const { return is_missing_; }
  // Returns the path of the loaded library, empty if it is not loaded.
  std::string Path();

  const char* name() const { return name_; }

 private:
  std::string TryToLoad();
  std::string Bind(void* handle);

  const char* const name_;
  const bool is_bundled_;
  const char* const foreign_;
  const char* const names_;
  void** const slots_;
  const size_t num_slots_;
  std::once_flag is_tried_;
  std::string problem_ = "it is not loaded";
  bool is_missing_ = false;
  void* handle_ = nullptr;
  void (*replace_)(const char* function, void* replacement) = nullptr;
};

// The libraries, defined by the BUILD files of third_party/.
Library& OneDnn();
Library& Xnnpack();
Library& OpenMp();

}  // namespace permafrost::deferred

#endif  // PERMAFROST_THIRD_PARTY_DEFERRED_DEFERRED_LIBRARY_H_
