// What a worker carries from world to world: the memory the program has registered, and its layout.
//
// There are three kinds. *State* (weights, momentum) is the program's own memory: apply changes it,
// a newcomer receives it. *Gradients* are worth nothing after the step and never travel. *Buffers*
// (running statistics) are overwritten by compute before it is known whether the step will count;
// so a copy keeps their committed values, which travel and from which a repeated step starts.
//
// All three may lie on the worker's GPU, gradients and buffers together; then they stay there.
//
// What a state source lists (source.hpp) is state as well, behind all of this; it is known from one
// look to the next.
//
// Why no copy of the state: compute must not change it, so between two steps the program's memory
// is the committed state, and copying it in every step would be expensive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "worker/collective/group.hpp"
#include "worker/gpu/arithmetic.hpp"
#include "worker/gpu/gpu.hpp"
#include "worker/state/layout.hpp"
#include "worker/state/source.hpp"

namespace elasticrun::worker::state {

// A numeric tensor in the program's memory.
struct Tensor {
  std::string name;
  void* data = nullptr;
  collective::DataType type = collective::DataType::float64;
  std::size_t count = 0;

  std::size_t bytes() const { return count * size_of(type); }
};

// One piece of the memory that travels.
struct Segment {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool on_gpu = false;
  std::string name = {};  // name given at registration; empty: the committed copy of the buffers
};

class StateTable {
 public:
  // From now on registered memory may lie on this GPU.
  void use_gpu(std::shared_ptr<const gpu::Gpu> gpu) { gpu_ = std::move(gpu); }
  const gpu::Gpu* gpu() const { return gpu_.get(); }

  // Return an error when the table is sealed, the memory is null (and not of size 0), the name is
  // taken or empty, gradients are integers, the memory lies on another GPU, or gradients and
  // buffers lie on both the GPU and the host.
  Result<void> add_state(const std::string& name, void* data, std::size_t bytes);
  Result<void> add_gradients(const std::string& name, void* data, collective::DataType type,
                             std::size_t count);
  Result<void> add_buffers(const std::string& name, void* data, collective::DataType type,
                           std::size_t count);
  // Before seal(): an error when gradients or buffers share memory with anything that is
  // registered. They are written in each step, so sums would come out wrong; only state may have
  // several names.
  Result<void> check_overlaps() const;
  // Ends the registration; the present values of the buffers become the committed ones. Idempotent.
  // Throws GroupBroken when the GPU fails.
  void seal();
  bool sealed() const { return sealed_; }
  // Whether anything of this kind (Registration::kind) has been registered.
  bool has(char kind) const;

  // Whether gradients and buffers lie on the GPU.
  bool on_gpu() const { return numbers_on_gpu_.value_or(false); }
  std::span<const Tensor> gradients() const { return gradients_; }
  std::span<const Tensor> buffers() const { return buffers_; }

  // From now on there is this source, or none. Any time between two steps.
  void use_source(std::optional<Source> source);
  bool has_source() const { return source_.has_value(); }

  // The rest is for sealed tables. The memory that travels: the state in the order of its
  // registration, then the committed copy of the buffers, then what the source listed last.
  std::span<const Segment> segments() const { return segments_; }
  // Those that are registered, which stay as they are; and of these the ones that only apply may
  // change: without the buffers.
  std::span<const Segment> registered() const { return registered_; }
  std::span<const Segment> state() const { return registered().first(state_segments_); }
  // Number of bytes in all segments, and in those that are registered.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t registered_bytes() const { return registered_bytes_; }

  // Asks the source what there is now. Throws SourceFailed.
  void look();
  // What the source listed last, and its objects then.
  const Layout& late() const { return late_; }
  const std::string& objects() const { return objects_; }
  // On a receiver: looks, and makes room for what another member's source has listed: late() is the
  // same afterwards. Throws SourceFailed.
  void make_room(const Layout& wanted);
  // On a receiver, last: its source takes the other's objects. Throws SourceFailed.
  void take_objects(std::string_view objects);

  // Everything registered, in order: equal in all workers of a job.
  const Layout& layout() const { return layout_; }
  std::uint64_t layout_hash() const { return layout_hash_; }
  // The arithmetic for the place where gradients and buffers lie: host or GPU.
  gpu::Arithmetic& arithmetic() const { return *arithmetic_; }

  // commit_buffers copies the program's buffers to the committed copy (at commit); restore_buffers
  // copies them back (before each call of compute, and when a step is repeated). On the GPU the
  // copy is only enqueued.
  void commit_buffers();
  void restore_buffers();

 private:
  Result<void> add(char kind, const std::string& name, void* data, std::size_t bytes,
                   collective::DataType type);
  void no_longer_listed();
  Result<bool> is_on_gpu(char kind, const std::string& name, const void* data) const;
  Result<void> add_typed(char kind, std::vector<Tensor>& list, const std::string& name, void* data,
                         collective::DataType type, std::size_t count);

  std::shared_ptr<const gpu::Gpu> gpu_;
  Layout layout_;
  std::vector<Segment> registered_;  // only the state until seal(), then also the buffers
  std::vector<Segment> segments_;    // the same, and what the source has listed
  std::optional<Source> source_;
  Layout late_;
  std::string objects_;
  std::size_t state_segments_ = 0;
  std::vector<Tensor> gradients_;
  std::vector<Tensor> buffers_;
  std::unique_ptr<gpu::Arithmetic> arithmetic_;
  gpu::Arithmetic::Memory committed_;  // committed copy of all buffers, one after the other
  std::uint64_t bytes_ = 0, registered_bytes_ = 0;
  std::uint64_t layout_hash_ = 0;
  std::optional<bool> numbers_on_gpu_;  // of gradients and buffers; nullopt: none is registered
  bool sealed_ = false;
};

}  // namespace elasticrun::worker::state
