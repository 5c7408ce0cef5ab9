// Gloo's TCP transport with what it lacks for a group that may be killed at any time: peers that
// are identified before they are accepted (peer_connector.hpp), an abort that wakes all waiting
// threads, an end for messages cut off in the middle, a record of which peer was lost first, and a
// quick event loop.
//
// Each of these overrides functions that Gloo declares virtual, so a descriptor is touched only by
// the pair that owns it and under that pair's lock. Why not find the sockets by their addresses in
// /proc/self/fd: between the search and shutdown(2) the number may already belong to the user's
// program.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/tcp/unbound_buffer.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "net/sockets.hpp"
#include "worker/collective/group.hpp"

namespace elasticrun::worker::collective::gloo_transport {

// An error text of Gloo's without the "[source file:line] " at its beginning.
std::string cleaned(const std::string& text);

// Gloo's loop thread polls with a timeout of 10 ms, and removing a descriptor waits for the loop's
// next turn: 10 ms per peer for forming and again for closing. While this is armed, a periodic
// timer makes the loop turn often. Why not an always readable descriptor: the thread would spin.
class Ticker final : public gloo::transport::tcp::Handler {
 public:
  explicit Ticker(std::shared_ptr<gloo::transport::tcp::Device> device);
  ~Ticker() override;
  void arm();
  void disarm();
  void handleEvents(int events) override;

 private:
  void set(std::chrono::nanoseconds interval);

  std::shared_ptr<gloo::transport::tcp::Device> device_;
  int timer_ = -1;
  std::mutex mutex_;
  int armed_ = 0;
};

// Keeps a Ticker armed while it lives.
class Armed {
 public:
  explicit Armed(Ticker& ticker) : ticker_(ticker) { ticker_.arm(); }
  ~Armed() { ticker_.disarm(); }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;

 private:
  Ticker& ticker_;
};

// Gloo's device for one address, with its loop thread, and the ticker of that thread. It lives as
// long as the process.
struct Device {
  explicit Device(const std::string& address);  // throws GroupBroken
  std::shared_ptr<gloo::transport::tcp::Device> gloo;
  Ticker ticker;
};

// Gloo writes with writev(2): a peer's death would raise SIGPIPE and end the user's program. This
// blocks the signal on the calling thread while it lives, and discards one that has come meanwhile.
class NoSigpipe {
 public:
  NoSigpipe();
  ~NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  bool ours_ = false;  // the signal was neither blocked nor pending before
};

class Transport;

class Pair final : public gloo::transport::tcp::Pair {
 public:
  Pair(Transport* transport, gloo::transport::tcp::Device* device, int rank,
       std::chrono::milliseconds timeout);
  ~Pair() override;
  // Takes over a connected socket, once.
  void adopt(net::Fd socket);
  void handleEvents(int events) override;
  // Shuts down the socket that this pair has, or the one it is about to have.
  void abort() noexcept;
  // Whether what is sent to the peer does not arrive.
  bool is_lost();

 protected:
  void changeState(state next) noexcept override;

 private:
  void fail_messages_cut_in_the_middle() noexcept;
  void note_loss() noexcept;
  bool loses_packets() const noexcept;  // m_ held

  std::atomic<bool> aborted_{false};
  std::mutex busy_;  // held while the loop thread is in handleEvents
};

// Gloo's transport context. It knows all buffers on which a thread may be waiting, so that abort()
// reaches each of them.
class Transport final : public gloo::transport::tcp::Context {
 public:
  using gloo::transport::tcp::Context::Context;
  ~Transport() override;
  // Makes a pair over a connected socket.
  void adopt(int peer, net::Fd socket);
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override;
  // There is no pair for a rank that was not adopted; asking for one is a bug.
  std::unique_ptr<gloo::transport::Pair>& getPair(int rank) override;
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data,
                                                                      size_t bytes) override;
  void abort() noexcept;
  void fail_all(const std::string& why) noexcept;
  // The errors by peer, in the order in which they happened; none after an abort() on this rank.
  std::vector<PeerTrouble> troubles() const;
  // Peers to which nothing arrives now, or did not when the connection was closed.
  std::vector<PeerTrouble> lost_links() const;
  void note(PeerTrouble trouble) noexcept;

 private:
  friend class Buffer;
  mutable std::mutex mutex_;
  std::unordered_set<class Buffer*> waiting_;
  std::exception_ptr failed_;
  std::vector<PeerTrouble> troubles_;
};

// Gloo's own context, with our transport in it.
class Mesh final : public gloo::Context {
 public:
  Mesh(std::shared_ptr<gloo::transport::tcp::Device> device, std::shared_ptr<Transport> transport)
      : gloo::Context(transport->rank, transport->size) {
    device_ = std::move(device);
    transportContext_ = std::move(transport);
  }
};

}  // namespace elasticrun::worker::collective::gloo_transport
