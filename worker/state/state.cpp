// See state.hpp.
#include "worker/state/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/check.hpp"

namespace elasticrun::worker::state {

namespace {

Error wrong(char kind, const std::string& name, const std::string& what) {
  return Error{fmt::format("{} '{}': {}", kind_name(kind), name, what)};
}

std::string no_source(const std::string& what) {
  return fmt::format(
      "the state has {} of a state source, and this program has none; give all workers the same "
      "one, before they train",
      what);
}

}  // namespace

Result<void> StateTable::add(char kind, const std::string& name, void* data, std::size_t bytes,
                             collective::DataType type) {
  if (sealed_)
    return wrong(kind, name, "registered after the start; register before train or start");
  if (name.empty()) return wrong(kind, name, "has no name; each needs its own");
  if (data == nullptr && bytes > 0) return wrong(kind, name, "has no memory (null)");
  for (const Registration& other : layout_)
    if (other.name == name)
      return wrong(kind, name, fmt::format("the name is taken by {}", kind_name(other.kind)));
  layout_.push_back({.kind = kind, .name = name, .type = type, .bytes = bytes});
  return {};
}

Result<void> StateTable::add_state(const std::string& name, void* data, std::size_t bytes) {
  const auto on_gpu = is_on_gpu('s', name, data);
  if (!on_gpu) return on_gpu.error();
  if (auto added = add('s', name, data, bytes, {}); !added) return added;
  if (bytes > 0) registered_.push_back({static_cast<std::byte*>(data), bytes, *on_gpu, name});
  return {};
}

Result<bool> StateTable::is_on_gpu(char kind, const std::string& name, const void* data) const {
  const int ordinal = gpu_ && data ? gpu_->ordinal_of(data) : -1;
  if (ordinal >= 0 && ordinal != gpu_->ordinal())
    return wrong(kind, name,
                 fmt::format("lies on GPU {}, but this worker uses GPU {}; choose the GPU by "
                             "LOCAL_RANK before it is allocated",
                             ordinal, gpu_->ordinal()));
  return ordinal >= 0;
}

Result<void> StateTable::add_typed(char kind, std::vector<Tensor>& list, const std::string& name,
                                   void* data, collective::DataType type, std::size_t count) {
  if (count > std::numeric_limits<std::size_t>::max() / collective::size_of(type))
    return wrong(kind, name, fmt::format("{} elements are more than memory can hold", count));
  if (kind == 'g' && is_integer(type))
    return wrong(kind, name, "integers have no mean; register them as buffers, or as state");
  const auto on_gpu = is_on_gpu(kind, name, data);
  if (!on_gpu) return on_gpu.error();
  if (count > 0 && numbers_on_gpu_.value_or(*on_gpu) != *on_gpu)
    return wrong(kind, name,
                 "the GPU and the host are mixed; all gradients and buffers lie on one of them");
  if (auto added = add(kind, name, data, count * size_of(type), type); !added) return added;
  if (count > 0) numbers_on_gpu_ = *on_gpu;
  list.push_back({name, data, type, count});
  return {};
}

Result<void> StateTable::add_gradients(const std::string& name, void* data,
                                       collective::DataType type, std::size_t count) {
  return add_typed('g', gradients_, name, data, type, count);
}

Result<void> StateTable::add_buffers(const std::string& name, void* data, collective::DataType type,
                                     std::size_t count) {
  return add_typed('b', buffers_, name, data, type, count);
}

bool StateTable::has(char kind) const {
  return std::ranges::count(layout_, kind, &Registration::kind) > 0;
}

Result<void> StateTable::check_overlaps() const {
  struct Range {
    char kind;
    const std::string* name;
    std::uintptr_t begin, end;
  };
  std::vector<Range> ranges;
  const auto add = [&](char kind, const std::string& name, const void* data, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    if (bytes > 0) ranges.push_back({kind, &name, begin, begin + bytes});
  };
  for (const Segment& one : registered_) add('s', one.name, one.data, one.bytes);
  for (const Tensor& one : gradients_) add('g', one.name, one.data, one.bytes());
  for (const Tensor& one : buffers_) add('b', one.name, one.data, one.bytes());
  std::ranges::sort(ranges, {}, &Range::begin);
  // Of those before, the one that reaches furthest; also of those that are not state.
  const Range *any = nullptr, *written = nullptr;
  for (const Range& one : ranges) {
    const Range* const other = one.kind == 's' ? written : any;
    if (other && one.begin < other->end)
      return wrong(one.kind, *one.name,
                   fmt::format("shares memory with {} '{}'; only state may be registered twice",
                               kind_name(other->kind), *other->name));
    if (!any || one.end > any->end) any = &one;
    if (one.kind != 's' && (!written || one.end > written->end)) written = &one;
  }
  return {};
}

void StateTable::seal() {
  if (sealed_) return;
  sealed_ = true;
  layout_hash_ = hash_of(layout_);

  const bool on_gpu = numbers_on_gpu_.value_or(false);
  arithmetic_ = on_gpu ? gpu::make_gpu_arithmetic(gpu_) : gpu::make_host_arithmetic();
  std::size_t committed = 0;
  for (const Tensor& buffer : buffers_) committed += buffer.bytes();
  committed_ = arithmetic_->allocate(committed);
  state_segments_ = registered_.size();
  if (committed > 0) registered_.push_back({committed_.get(), committed, on_gpu});
  for (const Segment& segment : registered_) registered_bytes_ += segment.bytes;
  no_longer_listed();
  commit_buffers();
}

// ---------------------------------------------------------------- the source

void StateTable::use_source(std::optional<Source> source) {
  source_ = std::move(source);
  no_longer_listed();
}

void StateTable::no_longer_listed() {
  segments_ = registered_;
  bytes_ = registered_bytes_;
  late_.clear();
  objects_.clear();
}

void StateTable::look() {
  if (!source_) return;
  no_longer_listed();
  Result<Listing> listing = source_->list();
  if (!listing) throw SourceFailed(listing.error().text);
  for (const Array& array : listing->arrays) {
    const auto on_gpu = is_on_gpu('l', array.name, array.data);
    if (!on_gpu) throw SourceFailed(on_gpu.error().text);
    late_.push_back({.kind = 'l', .name = array.name, .bytes = array.bytes});
    if (array.bytes > 0)
      segments_.push_back({static_cast<std::byte*>(array.data), array.bytes, *on_gpu, array.name});
    bytes_ += array.bytes;
  }
  objects_ = std::move(listing->objects);
}

void StateTable::make_room(const Layout& wanted) {
  look();
  if (late_ == wanted) return;
  if (!source_) throw SourceFailed(no_source(fmt::format("{} arrays", wanted.size())));
  if (const auto made = source_->make_room(wanted); !made) throw SourceFailed(made.error().text);
  look();
  if (late_ == wanted) return;
  const auto first = std::ranges::mismatch(late_, wanted).in1 - late_.begin();
  const auto at = static_cast<std::size_t>(first);
  throw SourceFailed(fmt::format(
      "the state source has not made room as asked: its array {} is {}, and should be {}", at,
      words_for(late_, at), words_for(wanted, at)));
}

void StateTable::take_objects(std::string_view objects) {
  if (objects.empty() && objects_.empty()) return;
  if (!source_) throw SourceFailed(no_source("objects"));
  if (const auto taken = source_->take_objects(objects); !taken)
    throw SourceFailed(taken.error().text);
}

// ---------------------------------------------------------------- buffers

void StateTable::commit_buffers() {
  std::byte* copy = committed_.get();
  for (const Tensor& buffer : buffers_) {
    arithmetic_->copy(copy, buffer.data, buffer.bytes());
    copy += buffer.bytes();
  }
}

void StateTable::restore_buffers() {
  const std::byte* copy = committed_.get();
  for (const Tensor& buffer : buffers_) {
    arithmetic_->copy(buffer.data, copy, buffer.bytes());
    copy += buffer.bytes();
  }
}

}  // namespace elasticrun::worker::state
