#include "tests/bench/control_plane/memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace elasticrun::bench {
namespace {

// Stands before each block; its size is the strictest alignment that plain operator new promises.
struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) Head {
  std::size_t bytes;
  bool counted;
};

bool counts = false;
std::size_t now_counted = 0, most_counted = 0;

}  // namespace

void count_memory(bool on) { counts = on; }
std::size_t counted_bytes() { return now_counted; }
std::size_t most_counted_bytes() { return most_counted; }
void reset_most_counted_bytes() { most_counted = now_counted; }

namespace {

void* allocate(std::size_t bytes) {
  auto* const head = static_cast<Head*>(std::malloc(sizeof(Head) + bytes));
  if (!head) throw std::bad_alloc();
  *head = {bytes, counts};
  if (counts) most_counted = std::max(most_counted, now_counted += bytes);
  return head + 1;
}

void release(void* block) {
  if (!block) return;
  Head* const head = static_cast<Head*>(block) - 1;
  if (head->counted) now_counted -= head->bytes;
  std::free(head);
}

}  // namespace
}  // namespace elasticrun::bench

// The array forms call these by default. The bench has only one thread.
void* operator new(std::size_t bytes) { return elasticrun::bench::allocate(bytes); }
void operator delete(void* block) noexcept { elasticrun::bench::release(block); }
void operator delete(void* block, std::size_t) noexcept { elasticrun::bench::release(block); }
