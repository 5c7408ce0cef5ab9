// The interface to the collective libraries (Gloo, NCCL): one group per generation.
//
// A group is formed in two halves, because the addresses travel over the control channel: publish()
// returns where this rank listens, connect() takes what the others published. Every call can be cut
// short: abort() from any thread makes blocked calls end with GroupBroken. A group never recovers;
// the next generation gets a new one.
//
// Why not use Gloo's own types: its headers would reach every file, and NCCL has neither an address
// per peer nor a timeout; this is what the two have in common and what training needs.
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
#include "worker/collective/data_type.hpp"

namespace elasticrun::worker::collective {

// An error that a rank has with another rank of its group, or with itself (no memory, no
// descriptors).
struct PeerTrouble {
  int rank = 0;
  // The peer closed the connection: it is dead, or it had an error of its own.
  bool hung_up = false;
  std::string reason;  // text for the user, with the peer's address and the system's error
};

// A peer died, the group was aborted, or a time limit passed. The group is useless from now on.
struct GroupBroken : std::runtime_error {
  explicit GroupBroken(const std::string& text, std::vector<PeerTrouble> with = {})
      : std::runtime_error(text), troubles(std::move(with)) {}
  std::vector<PeerTrouble> troubles;  // the ranks to blame, as far as known, the first one first
};

// What holds up a group at present, as far as that is known.
struct HeldUp {
  Generation generation;
  std::vector<int> waits_for;           // ranks, as Group::waits_for returns
  std::vector<PeerTrouble> lost_links;  // as Group::lost_links returns
};

// A message under way. If it is destroyed without wait(), the memory is not touched any more
// afterwards, but the group cannot be used again if the message was not complete.
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

  // Listens, and returns this rank's addresses as one word of printable text. Called once.
  virtual std::string publish() = 0;
  // The ranks whose addresses this rank needs to connect; empty: all.
  virtual std::vector<int> needs() const { return {}; }
  // Takes what each rank published, by rank (empty where it is not needed), and blocks until all
  // peers that this rank talks to are connected. Called once.
  virtual void connect(const std::vector<std::string>& published) = 0;
  // The library of this group and, for NCCL, how the group was formed and why, as text for the
  // user: "gloo", "nccl shrink: 1 of 4 ranks went and none came". Valid once connected.
  virtual std::string formation() const = 0;
  // The ranks for which a call under way waits at present, as far as that is known. Any thread.
  virtual std::vector<int> waits_for() const { return {}; }
  // Peers to which the link loses what is sent: nothing is acknowledged, in spite of repeated
  // retransmission. Any thread.
  virtual std::vector<PeerTrouble> lost_links() const { return {}; }
  // Number of connections to this rank by others than its peers, which were turned away. Any
  // thread.
  virtual int rejected() const { return 0; }
  // Ends blocked calls within milliseconds and makes all later ones fail. Any thread, any time, any
  // number of times. Peers also fail if the transport notifies them, as sockets do; a peer that
  // still waits for this rank to dial, or shares memory with it, needs an abort of its own.
  virtual void abort() noexcept = 0;
  // Frees sockets and memory; blocks for some milliseconds, so it is not called on the training
  // thread. No other call but abort may be under way. The destructor also does this.
  virtual void close() noexcept = 0;

  // Sums `count` elements over the world, in place; the result has the same bits on every rank.
  // Numbers of 16 bits are summed as float on the host and as NCCL does it on the GPU; integers
  // are not summed.
  virtual void all_reduce(void* data, DataType type, std::size_t count) = 0;
  // Several all-reduces, in this order or all at once. Types, counts and `beside` are equal on all
  // ranks.
  struct Row {
    void* data = nullptr;
    DataType type = DataType::float64;
    std::size_t count = 0;
    bool beside = false;  // only the last: it may go another way while the others are reduced
  };
  virtual void all_reduce_each(std::span<const Row> rows) {
    for (const Row& row : rows) all_reduce(row.data, row.type, row.count);
  }
  // Rows that are not all there at first.
  class RowSource {
   public:
    virtual ~RowSource() = default;
    // The next rows, which hold until the following call, and their memory until summed(). None:
    // there are no more.
    virtual std::span<const Row> next() = 0;
    // The rows of the oldest next() for which this was not called yet are summed.
    virtual void summed() = 0;
  };
  // The same for all rows of the source; where divides_freely(), it is asked for the next rows
  // while earlier ones are under way. Its calls come on this thread.
  virtual void all_reduce_from(RowSource& source) {
    for (auto rows = source.next(); !rows.empty(); rows = source.next()) {
      all_reduce_each(rows);
      source.summed();
    }
  }
  // Whether each rank may divide a sequence of rows into calls of all_reduce_each as it likes.
  virtual bool divides_freely() const { return false; }
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  virtual void barrier() = 0;

  // Point-to-point messages, between neighbours (GroupSpec). Messages between two ranks with one
  // tag arrive in the order in which they were posted; both sides give the same number of bytes.
  // The caller does not touch the memory until wait() is done. If in_rounds() is true, all posted
  // messages go together when one of them is waited for, and the matching message of each must be
  // among those posted at its peer then; tags are ignored.
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
  // The ranks to which this rank talks, ascending (neighbours.hpp). Empty: all others; it is empty
  // on all ranks of a world or on none.
  std::vector<int> neighbours = {};
  Generation generation{};
  std::string secret = {};  // the world's secret: 64 hexadecimal digits that only its members know
  // Time limit for connecting to all peers.
  std::chrono::milliseconds connect_limit{30'000};
};

// Makes groups, and keeps what is expensive to make from one group to the next. Outlives its
// groups. Any thread.
class DataPlane {
 public:
  virtual ~DataPlane() = default;
  // Throws GroupBroken when this machine lacks what a group needs.
  virtual std::unique_ptr<Group> create(const GroupSpec& spec) = 0;
};

}  // namespace elasticrun::worker::collective
