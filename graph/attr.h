// Attribute values. A value keeps its wire form until it is decoded, so unknown attributes are preserved and unmodified
// ones are written back byte for byte.
#ifndef PERMAFROST_GRAPH_ATTR_H_
#define PERMAFROST_GRAPH_ATTR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/wire.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace permafrost {

struct FunctionRef;

// A value type; copies share large payloads. The As... getters decode at each call. They return InvalidArgument (found,
// expected) if the value is of another kind, and DataLoss if its bytes are malformed.
class AttrValue {
 public:
  // The numbers are the field numbers of TensorFlow's AttrValue.
  enum class Kind : uint8_t {
    kNone = 0,
    kList = 1,
    kString = 2,
    kInt = 3,
    kFloat = 4,
    kBool = 5,
    kType = 6,
    kShape = 7,
    kTensor = 8,
    kPlaceholder = 9,
    kFunction = 10,
  };

  AttrValue() = default;

  // Makes a value that views its wire form, which `owner` keeps alive.
  static AttrValue FromWire(absl::string_view encoded, Owner owner);

  static AttrValue Int(int64_t value);
  static AttrValue Float(float value);
  static AttrValue Bool(bool value);
  static AttrValue String(absl::string_view value);
  static AttrValue Type(DType value);
  static AttrValue OfShape(const Shape& value);
  static AttrValue OfTensor(Tensor value);
  static AttrValue IntList(absl::Span<const int64_t> values);
  static AttrValue StringList(absl::Span<const std::string> values);
  static AttrValue TypeList(absl::Span<const DType> values);
  static AttrValue ShapeList(absl::Span<const Shape> values);
  static AttrValue FloatList(absl::Span<const float> values);
  static AttrValue Function(const FunctionRef& function);
  static AttrValue FunctionList(absl::Span<const FunctionRef> functions);

  Kind kind() const;

  absl::StatusOr<int64_t> AsInt() const;
  absl::StatusOr<float> AsFloat() const;
  absl::StatusOr<bool> AsBool() const;
  absl::StatusOr<absl::string_view> AsString() const;  // A view into this value.
  absl::StatusOr<DType> AsType() const;
  absl::StatusOr<Shape> AsShape() const;
  absl::StatusOr<Tensor> AsTensor() const;
  absl::StatusOr<std::vector<int64_t>> AsIntList() const;
  absl::StatusOr<std::vector<float>> AsFloatList() const;
  absl::StatusOr<std::vector<bool>> AsBoolList() const;
  absl::StatusOr<std::vector<std::string>> AsStringList() const;
  absl::StatusOr<std::vector<DType>> AsTypeList() const;
  absl::StatusOr<std::vector<Shape>> AsShapeList() const;
  // Returns the name of the function without decoding its attributes.
  absl::StatusOr<std::string> AsFunctionName() const;
  absl::StatusOr<FunctionRef> AsFunction() const;
  absl::StatusOr<std::vector<FunctionRef>> AsFunctionList() const;
  // Returns the name of the function attribute that this placeholder stands for: "T" for `$T`. Placeholders occur only
  // in function bodies.
  absl::StatusOr<std::string> AsPlaceholder() const;
  // Calls `visit` for every function that the value names, at any depth. Returns DataLoss for malformed bytes,
  // InvalidArgument for values that are nested deeper than any reader accepts.
  absl::Status VisitFunctions(const std::function<void(absl::string_view name)>& visit) const;
  // Returns the value with each placeholder, at any depth, replaced by `find(name)`. Returns InvalidArgument if `find`
  // returns null. Copies count against *budget, in bytes; *budget is reduced by their size (ResourceExhausted if it is
  // exceeded). A value without placeholders inside functions is not copied.
  absl::StatusOr<AttrValue> Substitute(const std::function<const AttrValue*(absl::string_view name)>& find,
                                       int64_t* budget) const;

  // Reads type and shape of a tensor value without decoding its elements.
  absl::Status TensorTypeAndShape(DType* dtype, Shape* shape) const;
  // Same, after all checks that do not need the elements (see CheckTensorProto).
  absl::Status CheckTensor(DType* dtype, Shape* shape) const;

  // Returns the size of the wire form in bytes, and writes it. Large payloads are passed to the sink as views.
  size_t EncodedSize() const;
  absl::Status WriteTo(ByteSink* sink) const;
  // Returns a copy of the wire form, for hashing and for comparing small values.
  std::string Encoded() const;

  // Returns the tensor that this value was made from, or null if the value is in wire form.
  const Tensor* held_tensor() const { return tensor_.get(); }
  // Returns a view of the wire form. REQUIRES: held_tensor() is null.
  absl::string_view encoded() const { return encoded_; }

 private:
  static AttrValue Own(std::string encoded);
  // Finds the member of the oneof that counts, which is the last in the message. Merges messages that occur twice.
  absl::Status Find(Kind kind, WireField* field, std::string* merged) const;
  absl::Status WrongKind(Kind expected) const;
  absl::Status ReadTensorHeader(DType* dtype, Shape* shape, bool check) const;
  template <typename T, typename Decode>
  absl::StatusOr<std::vector<T>> AsList(Kind kind, Decode decode) const;

  absl::string_view encoded_;
  Owner owner_;
  std::shared_ptr<const Tensor> tensor_;  // If set, the value is this tensor and encoded_ is empty.
};

// A reference to a function in an attribute, with values for the attributes of the function's signature, if any.
struct FunctionRef {
  std::string name;
  std::vector<std::pair<std::string, AttrValue>> attrs;
};

// Returns the name of a kind as used in messages: "int", "list", ...
absl::string_view KindName(AttrValue::Kind kind);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ATTR_H_
