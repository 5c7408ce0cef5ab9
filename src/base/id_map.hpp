// An ordered map whose keys are numbers that are given out one after the other (base/ids.hpp).
//
// Every message from a worker causes half a dozen table lookups. With ten thousand workers in
// std::map, each lookup waits for memory at a dozen nodes. Here the values lie in pages by their
// number, and a lookup reads one page: found at the first guess if the numbers have no gaps,
// otherwise by bisection. Values keep their addresses while others are added and erased. A hash
// table would be as fast, but would keep neither these addresses nor the order, which makes a run
// the same on every machine.
#pragma once

#include <algorithm>
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

// Functions with names of std::map do the same as there.
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
    const std::size_t number = at / page_size;
    auto entry = pages_.begin() + static_cast<std::ptrdiff_t>(place_of(number));
    if (entry == pages_.end() || entry->number != number)
      entry = pages_.insert(entry, {number, std::make_unique<Page>()});
    Page& page = *entry->page;
    ::new (page.place(at % page_size))
        value_type(std::piecewise_construct, std::forward_as_tuple(key),
                   std::forward_as_tuple(std::forward<Args>(args)...));
    page.used |= bit(at);
    ++size_;
    return {iterator(this, at), true};
  }
  std::size_t erase(Key key) {
    if (!holds(key.value)) return 0;
    erase(find(key));
    return 1;
  }
  iterator erase(iterator where) {
    const std::size_t place = place_of(where.at_ / page_size);
    Page& page = *pages_[place].page;
    std::destroy_at(item(where.at_));
    page.used &= ~bit(where.at_);
    --size_;
    if (page.used == 0) pages_.erase(pages_.begin() + static_cast<std::ptrdiff_t>(place));
    return {this, next(where.at_ + 1)};
  }
  void clear() {
    for (value_type& one : *this) std::destroy_at(&one);
    pages_.clear();
    size_ = 0;
  }

 private:
  static constexpr std::size_t page_size = 64;
  static constexpr std::size_t end_ = ~std::size_t{0};

  struct Page {
    std::uint64_t used = 0;  // one bit per place
    alignas(value_type) std::array<std::byte, page_size * sizeof(value_type)> bytes;
    void* place(std::size_t i) { return bytes.data() + i * sizeof(value_type); }
  };

  struct Entry {
    std::size_t number = 0;      // key / page_size, the same for all keys in the page
    std::unique_ptr<Page> page;  // never empty
  };

  static std::uint64_t bit(std::size_t at) { return std::uint64_t{1} << at % page_size; }
  // The index in pages_ of the page with this number, or of the first page after it.
  std::size_t place_of(std::size_t number) const {
    if (pages_.empty()) return 0;
    const std::size_t guess = number - pages_.front().number;
    if (guess < pages_.size() && pages_[guess].number == number) return guess;
    const auto found = std::ranges::lower_bound(pages_, number, {}, &Entry::number);
    return static_cast<std::size_t>(found - pages_.begin());
  }
  Page* page_of(std::size_t at) const {
    const std::size_t place = place_of(at / page_size);
    const bool there = place < pages_.size() && pages_[place].number == at / page_size;
    return there ? pages_[place].page.get() : nullptr;
  }
  bool holds(std::size_t at) const {
    const Page* const page = page_of(at);
    return page && (page->used & bit(at)) != 0;
  }
  value_type* item(std::size_t at) const {
    return std::launder(static_cast<value_type*>(page_of(at)->place(at % page_size)));
  }
  // The first used key that is not less than `at`; end_: there is none.
  std::size_t next(std::size_t at) const {
    for (std::size_t place = place_of(at / page_size); place < pages_.size(); ++place) {
      const std::size_t begin = pages_[place].number * page_size;
      const std::uint64_t left = pages_[place].page->used >> (std::max(at, begin) - begin);
      if (left != 0) return std::max(at, begin) + static_cast<std::size_t>(std::countr_zero(left));
    }
    return end_;
  }
  template <class At>
  At checked(At at) const {
    ER_CHECK(at.at_ != end_, "there is no such number");
    return at;
  }

  std::vector<Entry> pages_;  // ordered by number
  std::size_t size_ = 0;
};

}  // namespace elasticrun
