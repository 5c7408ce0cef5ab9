// A map from numbers that are given out one after the other (base/ids.hpp), in their order.
//
// Every message of a worker asks half a dozen tables about it; with ten thousand workers in
// std::map, each question waits for memory at a dozen nodes. Here the values lie in pages by their
// number, and a question costs one look at a page. Values stay where they are while others come and
// go. A page that is empty is given back; what is left of a number that has gone is an eighth of a
// byte. A hash table would ask as fast, but neither keep the order, which makes a run the same
// everywhere, nor the places.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace elasticrun {

// As std::map where the names are the same.
template <class Key, class T>
class IdMap {
 public:
  using value_type = std::pair<const Key, T>;

  template <bool is_const>
  class Iterator {
   public:
    using Map = std::conditional_t<is_const, const IdMap, IdMap>;
    using value_type = IdMap::value_type;
    using difference_type = std::ptrdiff_t;
    using reference = std::conditional_t<is_const, const value_type&, value_type&>;
    using pointer = std::remove_reference_t<reference>*;

    Iterator() = default;
    Iterator(Map* map, std::size_t at) : map_(map), at_(at) {}
    operator Iterator<true>() const { return {map_, at_}; }
    reference operator*() const { return *map_->item(at_); }
    pointer operator->() const { return map_->item(at_); }
    Iterator& operator++() {
      at_ = map_->next(at_ + 1);
      return *this;
    }
    Iterator operator++(int) { return std::exchange(*this, {map_, map_->next(at_ + 1)}); }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    friend IdMap;
    Map* map_ = nullptr;
    std::size_t at_ = 0;
  };
  using iterator = Iterator<false>;
  using const_iterator = Iterator<true>;

  IdMap() = default;
  IdMap(IdMap&& other) noexcept { swap(other); }
  IdMap& operator=(IdMap&& other) noexcept {
    IdMap(std::move(other)).swap(*this);
    return *this;
  }
  IdMap(const IdMap& other) {
    for (const auto& [key, value] : other) try_emplace(key, value);
  }
  IdMap& operator=(const IdMap& other) {
    IdMap(other).swap(*this);
    return *this;
  }
  ~IdMap() { clear(); }
  void swap(IdMap& other) noexcept {
    std::swap(pages_, other.pages_);
    std::swap(size_, other.size_);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  iterator begin() { return {this, next(0)}; }
  iterator end() { return {this, end_}; }
  const_iterator begin() const { return {this, next(0)}; }
  const_iterator end() const { return {this, end_}; }

  bool contains(Key key) const { return holds(key.value); }
  iterator find(Key key) { return {this, holds(key.value) ? key.value : end_}; }
  const_iterator find(Key key) const { return {this, holds(key.value) ? key.value : end_}; }
  T& at(Key key) { return checked(find(key))->second; }
  const T& at(Key key) const { return checked(find(key))->second; }
  T& operator[](Key key) { return try_emplace(key).first->second; }

  template <class... Args>
  std::pair<iterator, bool> try_emplace(Key key, Args&&... args) {
    const std::size_t at = key.value;
    if (holds(at)) return {iterator(this, at), false};
    if (at / page_size >= pages_.size()) pages_.resize(at / page_size + 1);
    auto& page = pages_[at / page_size];
    if (!page) page = std::make_unique<Page>();
    ::new (page->place(at % page_size))
        value_type(std::piecewise_construct, std::forward_as_tuple(key),
                   std::forward_as_tuple(std::forward<Args>(args)...));
    page->used |= bit(at);
    ++size_;
    return {iterator(this, at), true};
  }
  std::size_t erase(Key key) {
    if (!holds(key.value)) return 0;
    erase(find(key));
    return 1;
  }
  iterator erase(iterator where) {
    auto& page = pages_[where.at_ / page_size];
    std::destroy_at(item(where.at_));
    page->used &= ~bit(where.at_);
    --size_;
    if (page->used == 0) page.reset();
    return {this, next(where.at_ + 1)};
  }
  void clear() {
    for (iterator at = begin(); at != end();) at = erase(at);
    pages_.clear();
  }

 private:
  static constexpr std::size_t page_size = 64;
  static constexpr std::size_t end_ = ~std::size_t{0};

  struct Page {
    std::uint64_t used = 0;  // a bit for each place
    alignas(value_type) std::array<std::byte, page_size * sizeof(value_type)> bytes;
    void* place(std::size_t i) { return bytes.data() + i * sizeof(value_type); }
  };

  static std::uint64_t bit(std::size_t at) { return std::uint64_t{1} << at % page_size; }
  bool holds(std::size_t at) const {
    return at / page_size < pages_.size() && pages_[at / page_size] &&
           (pages_[at / page_size]->used & bit(at)) != 0;
  }
  value_type* item(std::size_t at) const {
    return std::launder(static_cast<value_type*>(pages_[at / page_size]->place(at % page_size)));
  }
  // The first that is used, from this one on.
  std::size_t next(std::size_t at) const {
    for (std::size_t page = at / page_size; page < pages_.size(); ++page, at = page * page_size) {
      const std::uint64_t left = pages_[page] ? pages_[page]->used >> at % page_size : 0;
      if (left != 0) return at + static_cast<std::size_t>(std::countr_zero(left));
    }
    return end_;
  }
  template <class At>
  At checked(At at) const {
    ER_CHECK(at.at_ != end_, "there is no such number");
    return at;
  }

  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t size_ = 0;
};

}  // namespace elasticrun
