// The controller's side: what job/driver/controller.cpp and the sessions of
// rendezvous/server/server.cpp do with the core, without sockets, TLS, terminal and files. It makes
// the same calls of the codec, keeps a queue and the unacknowledged frames of each host, and writes
// events as JSON; each message is a turn of its own.
//
// Of the core it uses only make, step and wake_at, its events and its actions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "job/core/hosts/roster.hpp"
#include "job/core/job.hpp"
#include "job/driver/start_orders.hpp"
#include "rendezvous/server/host_keys.hpp"
#include "simulate/queue.hpp"
#include "tests/bench/control_plane/account.hpp"
#include "wire/frame.hpp"
#include "wire/resend_queue.hpp"

namespace elasticrun::bench {

class Controller {
 public:
  struct Handlers {  // what it does to the simulated hosts
    std::function<void(HostId)> start_agent, kill_agent;
    std::function<void(HostId, std::string bytes)> send;
  };
  Controller(simulate::Queue& queue, Account& account, const job::JobSpec& spec, Handlers handlers);

  void give(const std::vector<launcher::hosts::Host>& hosts);
  void agent_up(HostId host);
  void agent_gone(HostId host, const std::string& reason);
  void receive(HostId host, std::string_view bytes);

  bool finished() const { return finished_; }
  int exit_code() const { return exit_code_; }
  const std::string& last_words() const { return last_words_; }
  // The newest error that was shown to the user.
  const std::string& last_error() const { return last_error_; }

 private:
  struct Link {
    wire::FrameReader reader;
    wire::ResendQueue unacknowledged;
    std::string control;         // to be written after this turn
    std::uint64_t received = 0;  // number of counted frames
  };

  job::SlotsChanged slots();
  void frame(HostId host, const wire::Frame& frame);
  void report(HostId host, std::string_view payload);
  void turn(const job::JobEvent& event);  // one step of the core, and the actions it returns
  void end_turn();
  void arm();
  void send(HostId host, WorkerId worker, std::string_view payload, bool passing = false);
  void act(const job::StartAgent& action);
  void act(const job::KillAgent& action);
  void act(const job::StartWorker& action);
  void act(const job::Order& action);
  void act(job::Deliver& action);
  void act(const job::Record& action);
  void act(const job::Log& action);
  void act(const job::Ranked&) {}
  void act(const job::Ask&) {}
  void act(const job::SealSave&) {}
  void act(const job::DropSave&) {}
  void act(const job::GiveBack&) {}
  void act(const job::Finish& action);

  simulate::Queue& queue_;
  Account& account_;
  Handlers handlers_;
  const job::JobSpec spec_;
  const rendezvous::server::HostKeys keys_;
  job::hosts::Roster roster_;
  job::driver::StartOrders start_orders_;
  std::unique_ptr<job::Job> core_;
  std::map<HostId, Link> links_;
  std::vector<HostId> to_write_;
  Time wake_at_ = never, armed_ = never;
  bool finished_ = false;
  int exit_code_ = 0;
  std::string last_words_, last_error_;
};

}  // namespace elasticrun::bench
