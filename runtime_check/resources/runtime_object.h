// Objects that kernels share. An element of type resource or variant is a reference to one.
#ifndef PERMAFROST_RUNTIME_CHECK_RESOURCES_RUNTIME_OBJECT_H_
#define PERMAFROST_RUNTIME_CHECK_RESOURCES_RUNTIME_OBJECT_H_

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// An array of tensors, a list or a table. Used only by the thread that runs the session.
class RuntimeObject {
 public:
  virtual ~RuntimeObject() = default;
  // Returns the name of the kind in messages, such as "tensor list".
  virtual absl::string_view kind() const = 0;
};
using ObjectRef = std::shared_ptr<RuntimeObject>;

// Returns the object as a T. InvalidArgument if it is not a T; T::kKind is the expected kind. Each class has a kind of
// its own, which decides, since selective builds have no run-time type information.
template <typename T>
absl::StatusOr<std::shared_ptr<T>> ObjectAs(const ObjectRef& object) {
  if (object != nullptr && object->kind() == T::kKind) return std::static_pointer_cast<T>(object);
  return absl::InvalidArgumentError(absl::StrCat(
      "found ", object == nullptr ? absl::string_view("no object") : object->kind(), ", expected a ", T::kKind));
}

// Objects that outlive a run, by name. Each session has one store. Not thread-safe.
class ResourceStore {
 public:
  // Returns the object; null if there is none.
  ObjectRef Find(absl::string_view name) const {
    const auto found = objects_.find(name);
    return found == objects_.end() ? nullptr : found->second;
  }
  void Add(absl::string_view name, ObjectRef object) { objects_[std::string(name)] = std::move(object); }

 private:
  absl::flat_hash_map<std::string, ObjectRef> objects_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_RESOURCES_RUNTIME_OBJECT_H_
