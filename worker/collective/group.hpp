// What the library asks of the field's collective libraries, in our words: one group per
// generation.
//
// A group is formed in two halves, because the addresses travel over the control channel: publish()
// says where this rank listens, connect() takes what the others published. Everything may be cut
// short: abort() from any thread makes whatever blocks end with GroupBroken. A group never
// recovers; the next generation gets a new one.
//
// Why not use Gloo's own types: its headers would reach every file, and NCCL has no such thing as
// an address per peer or a timeout; this is what the two have in common and what training needs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace elasticrun::worker::collective {

enum class DataType : std::uint8_t { float32, float64 };

inline constexpr std::size_t size_of(DataType type) { return type == DataType::float32 ? 4 : 8; }
inline constexpr const char* name_of(DataType type) {
  return type == DataType::float32 ? "float32" : "float64";
}

// What a rank has against another rank of its group, or against itself where the trouble is its own
// (no memory, no descriptors).
struct PeerTrouble {
  int rank = 0;
  // The peer closed the connection: it is dead, or it had trouble of its own.
  bool hung_up = false;
  std::string reason;  // with the peer's address and the system's error, for a person
};

// A peer died, the group was aborted, or a limit of time passed. The group is useless from now on.
struct GroupBroken : std::runtime_error {
  explicit GroupBroken(const std::string& text, std::vector<PeerTrouble> with = {})
      : std::runtime_error(text), troubles(std::move(with)) {}
  std::vector<PeerTrouble> troubles;  // as far as it is known who is to blame; the first come first
};

// What keeps a group from going on at present, as far as that is known.
struct HeldUp {
  Generation generation;
  std::vector<int> waits_for;           // ranks, as Group::waits_for says
  std::vector<PeerTrouble> lost_links;  // as Group::lost_links says
};

// A message under way. Dropped without wait(), the memory is not touched any more after the
// destructor, but the group cannot be used again when the message was not through.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;  // throws GroupBroken
};

// Collectives are called by all ranks in the same order, by one thread at a time; connect and close
// may be called on another thread than the collectives. All but abort and close throw GroupBroken.
// A call that throws leaves its memory in any state, and the memory is not touched afterwards.
class Group {
 public:
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Listens, and returns this rank's addresses as one word of printable text. Once.
  virtual std::string publish() = 0;
  // The ranks whose addresses it must have to connect; empty: all.
  virtual std::vector<int> needs() const { return {}; }
  // Takes what each rank published, in rank order, empty where it is not needed, and blocks until
  // all that it talks to are connected. Once.
  virtual void connect(const std::vector<std::string>& published) = 0;
  // What carries this group and, where there are several, by which way it was formed and why so,
  // for a person: "gloo", "nccl shrink: 1 of 4 ranks went and none came". Once connected.
  virtual std::string way() const = 0;
  // The ranks that a call under way waits for at present, as far as that is known. Any thread.
  virtual std::vector<int> waits_for() const { return {}; }
  // Peers to whom the link loses what is sent: nothing is acknowledged, though it has been sent
  // again and again. Any thread.
  virtual std::vector<PeerTrouble> lost_links() const { return {}; }
  // Connections to this rank by others than its peers, which were turned away. Any thread.
  virtual int strangers() const { return 0; }
  // Ends blocked calls within milliseconds and makes all later ones fail. Any thread, any time,
  // any number of times. Peers fail as well where the transport tells them, as sockets do; who
  // still waits for this rank to dial, or shares memory with it, needs an abort of its own.
  virtual void abort() noexcept = 0;
  // Gives sockets and memory back; blocks for some milliseconds, so not on the training thread.
  // No other call but abort may be under way. The destructor does it too.
  virtual void close() noexcept = 0;

  // The sum over the world, in place; the same bits on every rank.
  virtual void all_reduce(void* data, DataType type, std::size_t count) = 0;
  // Several, in this order or all at once.
  struct Row {
    void* data = nullptr;
    std::size_t count = 0;
  };
  virtual void all_reduce_each(std::span<const Row> rows, DataType type) {
    for (const Row& row : rows) all_reduce(row.data, type, row.count);
  }
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  virtual void barrier() = 0;

  // Point to point, between neighbours (GroupSpec). Messages between two ranks with one tag arrive
  // in the order in which they were posted; both sides name the same number of bytes. The memory
  // stays untouched until wait() is done. In rounds: messages go when the first of those that are
  // posted is waited for, all together, and what one of them waits for at its peer must be among
  // the peer's. Tags do not count.
  virtual bool in_rounds() const { return false; }
  virtual std::unique_ptr<Pending> post_send(int to, const void* data, std::size_t bytes,
                                             std::uint32_t tag) = 0;
  virtual std::unique_ptr<Pending> post_recv(int from, void* data, std::size_t bytes,
                                             std::uint32_t tag) = 0;
  void send(int to, const void* data, std::size_t bytes, std::uint32_t tag) {
    post_send(to, data, bytes, tag)->wait();
  }
  void recv(int from, void* data, std::size_t bytes, std::uint32_t tag) {
    post_recv(from, data, bytes, tag)->wait();
  }
};

// One rank's end of the group of one world.
struct GroupSpec {
  int rank = 0;
  int size = 1;
  bool one_host = false;  // no member is on another machine
  // The ranks that this one talks to, ascending (neighbours.hpp). Empty: all others, which is so
  // for all ranks of a world or for none.
  std::vector<int> neighbours = {};
  Generation generation{};
  std::string secret = {};  // of the world: 64 hexadecimal digits that only its members know
  // Longest wait for all peers while connecting.
  std::chrono::milliseconds connect_limit{30'000};
};

// Makes groups, and keeps between them what is dear to make. Outlives its groups. Any thread.
class DataPlane {
 public:
  virtual ~DataPlane() = default;
  // Throws GroupBroken when this machine cannot offer what a group needs.
  virtual std::unique_ptr<Group> create(const GroupSpec& spec) = 0;
};

}  // namespace elasticrun::worker::collective
