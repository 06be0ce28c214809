// Attribute values. A value stays in its wire form until somebody asks for it, so what nobody understands survives and
// what nobody touches is written back byte for byte.
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

// A value type; copies share what is large. The As... getters give InvalidArgument (found, expected) when the value is
// of another kind, and DataLoss when its bytes are malformed; they decode anew at each call.
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

  // A view of the wire form, which `owner` keeps alive.
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
  // The name of the function; its own attributes are not decoded.
  absl::StatusOr<std::string> AsFunctionName() const;
  absl::StatusOr<FunctionRef> AsFunction() const;
  absl::StatusOr<std::vector<FunctionRef>> AsFunctionList() const;
  // The attribute of the function whose value belongs here: "T" of `$T`. Only in bodies of functions.
  absl::StatusOr<std::string> AsPlaceholder() const;
  // Every function that the value names, at any depth, is given to `visit`. DataLoss for malformed bytes,
  // InvalidArgument for values inside each other deeper than any reader takes.
  absl::Status VisitFunctions(const std::function<void(absl::string_view name)>& visit) const;
  // The value with each placeholder, at any depth, replaced by what `find` gives for its name; null is an error
  // (InvalidArgument). *budget is what the copies that arise may have in bytes, and what is left of it
  // (ResourceExhausted); a value without placeholders inside functions is not copied.
  absl::StatusOr<AttrValue> Substitute(const std::function<const AttrValue*(absl::string_view name)>& find,
                                       int64_t* budget) const;

  // Type and shape of a tensor value, without its elements.
  absl::Status TensorTypeAndShape(DType* dtype, Shape* shape) const;
  // The same after checking everything that can be checked without the elements (see CheckTensorProto).
  absl::Status CheckTensor(DType* dtype, Shape* shape) const;

  // The wire form: its size, and writing it. Large payloads reach the sink as views.
  size_t EncodedSize() const;
  absl::Status WriteTo(ByteSink* sink) const;
  // The wire form as one string (a copy), for hashing and comparing small values.
  std::string Encoded() const;

  // The tensor that this value was made from, or null when the value is in its wire form.
  const Tensor* held_tensor() const { return tensor_.get(); }
  // The wire form as a view. REQUIRES: held_tensor() is null.
  absl::string_view encoded() const { return encoded_; }

 private:
  static AttrValue Own(std::string encoded);
  // The payload of the oneof member that counts (the last in the message), merged if it is a message given twice.
  absl::Status Find(Kind kind, WireField* field, std::string* merged) const;
  absl::Status WrongKind(Kind expected) const;
  absl::Status ReadTensorHeader(DType* dtype, Shape* shape, bool check) const;
  template <typename T, typename Decode>
  absl::StatusOr<std::vector<T>> AsList(Kind kind, Decode decode) const;

  absl::string_view encoded_;
  Owner owner_;
  std::shared_ptr<const Tensor> tensor_;  // If set, the value is this tensor and encoded_ is empty.
};

// A function as an attribute names it: with values for the attributes of its signature, if it has any.
struct FunctionRef {
  std::string name;
  std::vector<std::pair<std::string, AttrValue>> attrs;
};

// "int", "list", ...: as messages name a kind.
absl::string_view KindName(AttrValue::Kind kind);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ATTR_H_
