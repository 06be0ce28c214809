// Replacement for Abseil's Span: a view of contiguous elements.
#ifndef PERMAFROST_SELECTIVE_ABSL_TYPES_SPAN_H_
#define PERMAFROST_SELECTIVE_ABSL_TYPES_SPAN_H_

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>

namespace absl {
inline namespace selective {

template <typename T>
class Span {
 public:
  using value_type = std::remove_cv_t<T>;
  using element_type = T;
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using pointer = T*;
  using iterator = T*;
  using const_iterator = T*;
  using reverse_iterator = std::reverse_iterator<iterator>;
  static constexpr size_t npos = ~size_t{0};

  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) : data_(array), size_(N) {}  // NOLINT: implicit, as all that follow.
  template <typename C,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<C>, Span> &&
                                        (std::is_const_v<T> || std::is_lvalue_reference_v<C>)>,
            typename = std::enable_if_t<
                std::is_convertible_v<std::remove_pointer_t<decltype(std::declval<C&>().data())> (*)[], T (*)[]>>,
            typename = decltype(std::declval<C&>().size())>
  constexpr Span(C&& container) : data_(container.data()), size_(container.size()) {}
  template <typename U = T, typename = std::enable_if_t<std::is_const_v<U>>>
  constexpr Span(std::initializer_list<value_type> list) : data_(list.begin()), size_(list.size()) {}

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr size_t length() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr T& front() const { return data_[0]; }
  constexpr T& back() const { return data_[size_ - 1]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr reverse_iterator rbegin() const { return reverse_iterator(end()); }
  constexpr reverse_iterator rend() const { return reverse_iterator(begin()); }
  constexpr void remove_prefix(size_t n) {
    data_ += n;
    size_ -= n;
  }
  constexpr void remove_suffix(size_t n) { size_ -= n; }
  // REQUIRES: position <= size().
  constexpr Span subspan(size_t position = 0, size_t count = npos) const {
    return Span(data_ + position, std::min(count, size_ - position));
  }
  constexpr Span first(size_t count) const { return Span(data_, count); }
  constexpr Span last(size_t count) const { return Span(data_ + size_ - count, count); }

  friend bool operator==(Span a, Span b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  friend bool operator!=(Span a, Span b) { return !(a == b); }
  friend bool operator<(Span a, Span b) { return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

template <typename T>
constexpr Span<T> MakeSpan(T* data, size_t size) {
  return Span<T>(data, size);
}
template <typename T, size_t N>
constexpr Span<T> MakeSpan(T (&array)[N]) {
  return Span<T>(array, N);
}
template <typename C>
constexpr auto MakeSpan(C& container) {
  return Span<std::remove_pointer_t<decltype(container.data())>>(container.data(), container.size());
}
template <typename T>
constexpr Span<const T> MakeConstSpan(T* data, size_t size) {
  return Span<const T>(data, size);
}
template <typename T, size_t N>
constexpr Span<const T> MakeConstSpan(const T (&array)[N]) {
  return Span<const T>(array, N);
}
template <typename C>
constexpr auto MakeConstSpan(const C& container) {
  return Span<const std::remove_pointer_t<decltype(container.data())>>(container.data(), container.size());
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_TYPES_SPAN_H_
