// The one header that Debian's libgloo-dev forgets and its own pair.h and unbound_buffer.h include.
// Used only where the installed Gloo lacks it (CMakeLists.txt); the layout is Gloo's, which cannot
// change without a change of the headers beside it.
//
// A buffer hands out weak pointers to itself; whoever uses one holds a NonOwningPtr for that
// moment, and the buffer's destructor, compiled in the library, waits until nobody does.
#pragma once

#include <memory>
#include <thread>

namespace gloo {

template <typename T>
class NonOwningPtr;
template <typename T>
class ShareableNonOwningPtr;

template <typename T>
class WeakNonOwningPtr final {
 public:
  WeakNonOwningPtr() = default;
  explicit WeakNonOwningPtr(const ShareableNonOwningPtr<T>& shareable) : ptr_(shareable.ptr_) {}

 protected:
  std::weak_ptr<T> ptr_;

  friend class NonOwningPtr<T>;
};

template <typename T>
class NonOwningPtr final {
 public:
  NonOwningPtr() = default;
  explicit NonOwningPtr(const WeakNonOwningPtr<T>& weak) : ptr_(weak.ptr_.lock()) {}
  T* operator->() const noexcept { return ptr_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(ptr_); }

 private:
  std::shared_ptr<T> ptr_;
};

template <typename T>
class ShareableNonOwningPtr final {
 public:
  explicit ShareableNonOwningPtr(T* self) : ptr_(self, [](void*) {}) {}
  ShareableNonOwningPtr(const ShareableNonOwningPtr&) = delete;
  ShareableNonOwningPtr& operator=(const ShareableNonOwningPtr&) = delete;
  ~ShareableNonOwningPtr() {
    const std::weak_ptr<T> weak = ptr_;
    ptr_.reset();
    while (!weak.expired()) std::this_thread::yield();
  }

 private:
  std::shared_ptr<T> ptr_;

  friend class WeakNonOwningPtr<T>;
};

}  // namespace gloo
