// See controller.hpp.
#include "job/driver/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <functional>

#include "base/boot_clock.hpp"
#include "base/check.hpp"
#include "base/exit_code.hpp"
#include "job/core/hosts/roster.hpp"
#include "job/core/job.hpp"
#include "job/driver/agents.hpp"
#include "job/driver/bundle_sender.hpp"
#include "job/driver/hooks.hpp"
#include "job/driver/host_source.hpp"
#include "job/driver/joiners.hpp"
#include "job/driver/output_hold.hpp"
#include "job/driver/pulse.hpp"
#include "job/driver/save_keeper.hpp"
#include "job/driver/signals.hpp"
#include "job/driver/slurm_nodes.hpp"
#include "job/driver/start_orders.hpp"
#include "job/driver/wall_clock.hpp"
#include "job/report/worker_labels.hpp"
#include "launcher/executors/hook_process.hpp"
#include "rendezvous/server/server.hpp"
#include "wire/codec.hpp"

namespace elasticrun::job::driver {
namespace asio = boost::asio;
namespace {

using report::LogLevel;
constexpr Duration last_exit_limit = std::chrono::seconds(3);

class Run {
 public:
  Run(const JobSpec& spec, const launcher::machine::Machine& machine, report::Sink& sink)
      : spec_(spec),
        sink_(sink),
        agents_(
            io_, spec_, roster_, machine, keys_,
            {.gone = [this](HostId host, const std::string& why) { agent_gone(host, why); },
             .line = [this](HostId host, const auto& line) { log(LogLevel::error, host, line); },
             .note = [this](HostId host, const auto& line) { log(LogLevel::detail, host, line); }}),
        source_(io_, spec_,
                {.hosts =
                     [this](const auto& hosts) {
                       roster_.give(hosts);
                       hosts_changed("the hosts were changed", source_name(spec_));
                     },
                 .line = [this](const std::string& line) { sink_.log(LogLevel::error, line); },
                 .note = [this](const HostsNoted& note) { feed(note); }}) {}

  Finish run();

 private:
  Result<void> prepare();
  Result<void> listen();
  void hosts_changed(std::string why = "the hosts were changed", std::string source = {});

  void feed(const JobEvent& event);
  void step(const JobEvent& event, Time now);
  void arm();
  void act(StartAgent& action) { agents_.start(action.host); }
  void act(KillAgent& action) {
    server_->drop(action.host);
    bundles_.gone(action.host);
    agents_.kill(action.host);
    if (roster_.down(action.host) != hosts::Roster::News::none)
      asio::post(io_, [this] { hosts_changed(); });
  }
  void act(StartWorker& action);
  void act(Order& action) {
    if (const auto* heartbeat = std::get_if<wire::agent::Heartbeat>(&action.order))
      return server_->send_heartbeat(action.host, *heartbeat);
    server_->send(action.host, WorkerId{}, wire::encode(wire::agent::ToAgent(action.order)));
  }
  void act(Deliver& action) {
    if (auto* prepare = std::get_if<wire::Prepare>(&action.message))
      prepare->secret = keys_.of_world(prepare->world.generation);
    const std::string message = wire::encode(action.message);
    for (const auto& [host, workers] : action.to) server_->send_message(host, workers, message);
  }
  void act(Record& action) { sink_.event(report::to_json(action.event, utc_now(), job_id_)); }
  void act(Log& action) { sink_.log(action.level, action.text); }
  void log(LogLevel level, HostId host, std::string_view text) {
    sink_.log(level, fmt::format("{}: {}", roster_.name(host), text));
  }
  void act(Ranked& action) { labels_.ranked(action.worker, action.rank); }
  void act(Ask& action) {
    advisor_->run(std::move(action.question), [this](launcher::executors::HookAnswer heard) {
      feed(Advised{std::move(heard.output)});
    });
  }
  void act(GiveBack& action) {
    nodes_.give_back(action);
    asio::post(io_, [this] { hosts_changed(); });
  }
  void act(SealSave& action) { saves_.seal(action); }
  void act(DropSave& action) { saves_.drop(action); }
  void act(Finish& action);

  void frame(HostId host, WorkerId worker, std::string_view payload);
  Result<rendezvous::server::KeyOwner> admit(const wire::Hello& hello,
                                             const rendezvous::server::KeyOwner& owner);
  void agent_up(HostId host, const wire::Hello& hello);
  void agent_gone(HostId host, const std::string& reason);
  void signal(int number);
  void maybe_end();

  JobSpec spec_;
  report::Sink& sink_;
  asio::io_context io_{1};
  const std::string job_id_ = net::to_hex(net::random_secret()).substr(0, 12);
  const rendezvous::server::HostKeys keys_{job_id_, net::random_secret()};
  hosts::Roster roster_{spec_.default_slots, spec_.slots_are_gpus};
  Agents agents_;
  HostSource source_;
  std::optional<launcher::executors::HookProcess> advisor_{std::in_place, io_, advice_hook(spec_)};
  std::unique_ptr<rendezvous::server::Server> server_;
  Joiners joiners_{spec_, sink_};
  SlurmNodes nodes_{io_,
                    spec_,
                    roster_,
                    agents_,
                    {.event = [this](const JobEvent& event) { feed(event); },
                     .changed = [this](const std::string& why) { hosts_changed(why); }}};
  BundleSender bundles_{io_, spec_, [this](HostId host, const wire::agent::BundlePart& part) {
                          server_->send_bulk(host, wire::encode(wire::agent::ToAgent(part)));
                        }};
  SaveKeeper saves_{io_, job_id_, sink_, [this](const SealSave::Answer& sealed) { feed(sealed); }};
  std::unique_ptr<Job> job_;
  asio::steady_timer wake_{io_};
  workers::StaffTime joined_;  // when to tell the core of joined hosts: it looks at all slots then
  Pulse pulse_{io_, [this] { feed(Tick{}); }};
  asio::steady_timer last_exit_{io_};
  OutputHold output_hold_{
      io_,
      {.wanted = [this] { return sink_.congested() && job_->phase() < course::Phase::closing; },
       .order =
           [this](bool hold) {
             server_->send_to_all(
                 wire::encode(wire::agent::ToAgent(wire::agent::HoldOutput{hold})));
           }}};
  Signals signals_{io_, [this](int number) { signal(number); }};
  std::optional<StartOrders> start_orders_;
  report::WorkerLabels labels_;
  std::optional<Finish> finish_;
};

Result<void> Run::prepare() {
  auto start_orders = StartOrders::make(spec_, job_id_);
  if (!start_orders) return start_orders.error();
  start_orders_ = std::move(*start_orders);
  auto job = Job::make(spec_);
  if (!job) return job.error();
  job_ = std::move(*job);
  return listen();
}

Result<void> Run::listen() {
  if (auto ready = agents_.prepare(job_id_); !ready) return ready.error();
  rendezvous::server::ServerOptions options;
  options.address = agents_.listen_address();
  launcher::executors::AgentStart told = agents_.start_of(job_id_);
  options.welcome = welcome_of(told);
  options.port = spec_.port_first;
  options.port_last = spec_.port_last;
  options.keys = keys_;
  options.hosts_may_join = !spec_.join_key.empty() || spec_.slurm.has_value();
  options.tcp.user_timeout = spec_.deadlines.lease;  // a silent host counts as lost earlier
  rendezvous::server::ServerHandlers handlers;
  handlers.knows = [this](const rendezvous::server::KeyOwner& owner) {
    return roster_.had_run(owner.host, owner.run);
  };
  handlers.admit = std::bind_front(&Run::admit, this);
  handlers.agent_up = [this](HostId host, const wire::Hello& hello, const std::string&) {
    agent_up(host, hello);
  };
  handlers.agent_away = [this](HostId host, const std::string& reason) {
    bundles_.gone(host);  // the agent asks again when it is back
    feed(HostAway{host, reason});
  };
  handlers.agent_back = [this](HostId host) {
    bundles_.gone(host);
    feed(HostBack{host});
  };
  handlers.agent_dead = std::bind_front(&Run::agent_gone, this);
  handlers.agent_frame = std::bind_front(&Run::frame, this);
  handlers.rejected = [this](std::uint64_t count, const std::string& why) {
    sink_.log(LogLevel::detail,
              fmt::format("a connection was rejected ({} so far): {}", count, why));
  };
  auto server = rendezvous::server::Server::listen(io_, options, handlers);
  if (!server) return server.error();
  server_ = std::move(*server);
  told.port = server_->port();
  agents_.told(told);
  return joiners_.invite(keys_.to_join(), told, agents_.addresses_for_others());
}

void Run::hosts_changed(std::string why, std::string source) {
  if (finish_) return;
  const launcher::hosts::Plan plan = roster_.plan();
  SlotsChanged changed{
      {}, plan.slots_by_host, {}, roster_.guesses(), std::move(why), std::move(source)};
  changed.dropped = roster_.dropped();
  // Slots of spare hosts come last and add no size: they only take the places of other slots.
  for (const auto* slots : {&plan.slots, &plan.spares})
    for (const auto& slot : *slots) {
      changed.slots.push_back({slot.host, slot.slot});
      changed.prices.push_back(slot.price);
    }
  joined_.looked(changed.slots.size(), boot_now());
  feed(changed);
}

// ---------------------------------------------------------------- the core

void Run::feed(const JobEvent& event) {
  const Time now = boot_now();
  if (const Duration pause = pulse_.pause(now); pause > Duration::zero())
    step(StoodStill{pause}, now);
  if (auto met = agents_.marked(roster_.take_met()); !met.hosts.empty()) step(met, now);
  step(event, now);
  arm();
}

void Run::step(const JobEvent& event, Time now) {
  for (auto& action : job_->step(event, now)) std::visit([this](auto& a) { act(a); }, action);
}

void Run::arm() {
  const Time now = boot_now();
  const Time at = std::min(job_->wake_at(now), joined_.wake_at());
  if (finish_ || at == never) return;
  wake_.expires_after(std::max(at, now) - now);
  wake_.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    if (joined_.due(boot_now()))
      hosts_changed();
    else
      feed(Tick{});
  });
}

void Run::act(StartWorker& action) {
  const HostId host = action.slot.host;
  labels_.started({action.worker, host, roster_.name(host), action.slot.index});
  wire::agent::StartWorker start = start_orders_->order(action, roster_, agents_.is_here(host));
  bundles_.announce(start);
  server_->send(host, WorkerId{}, wire::encode(wire::agent::ToAgent(std::move(start))));
}

void Run::act(Finish& action) {
  finish_ = action;
  const int signal = action.exit_code - exit_code::signal_base;
  if (signal == SIGINT || signal == SIGTERM) Signals::hold();
  source_.stop();
  advisor_.reset();
  agents_.no_more();
  nodes_.stop();
  server_->close();
  pulse_.stop();
  last_exit_.expires_after(last_exit_limit);
  last_exit_.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    agents_.kill_all();
    maybe_end();
  });
  maybe_end();
}

void Run::maybe_end() {
  if (finish_ && agents_.none()) io_.stop();
}

void Run::frame(HostId host, WorkerId worker, std::string_view payload) {
  if (worker != WorkerId{}) {
    const workers::Worker* known = job_->workers().find(worker);
    if (!known || known->slot.host != host) return;  // gone, or of another host
    auto message = wire::decode<wire::FromWorker>(payload);
    if (message)
      feed(FromWorker{worker, std::move(*message)});
    else
      log(LogLevel::detail, host, fmt::format("worker {}: {}", worker.value, message.error().text));
    return;
  }
  auto report = wire::decode<wire::agent::FromAgent>(payload);
  if (!report) return log(LogLevel::error, host, report.error().text);
  if (const auto* output = std::get_if<wire::agent::Output>(&*report)) {
    if (const report::WorkerLabel* label = labels_.find(host, output->worker))
      sink_.output(*label, output->stream, output->text.value);
    output_hold_.look();
    if (job_->phase() != course::Phase::closing) return;
  }
  if (const auto* wanted = std::get_if<wire::agent::BundleWanted>(&*report))
    return bundles_.asked(host, *wanted, boot_now());
  auto* const failed = std::get_if<wire::agent::StartFailed>(&*report);
  if (failed && !agents_.is_here(host)) bundles_.advise(*failed);
  if (const auto* heartbeat = std::get_if<wire::agent::Heartbeat>(&*report))
    server_->acknowledged(host, heartbeat->received);
  if (const auto* exited = std::get_if<wire::agent::WorkerExited>(&*report)) {
    roster_.port_is_free(host, exited->free_port);
    for (const report::WorkerLabel& label : labels_.exited(host, exited->worker)) sink_.gone(label);
  }
  if (const auto* goodbye = std::get_if<wire::agent::Goodbye>(&*report))
    return agent_gone(host, goodbye->reason);
  const auto* const lost = std::get_if<wire::agent::GpuLost>(&*report);
  if (lost && !roster_.lose(host, lost->slot)) return;  // not a slot of the job
  const bool leaves = std::holds_alternative<wire::agent::HostLeaves>(*report);
  if (leaves && !roster_.leaves(host)) return;
  feed(FromHost{host, std::move(*report)});
  if (lost) hosts_changed("a GPU was lost");
  if (leaves) hosts_changed(roster_.name(host) + " will go");
}

Result<rendezvous::server::KeyOwner> Run::admit(const wire::Hello& hello,
                                                const rendezvous::server::KeyOwner& owner) {
  if (finish_) return Error{"the job is over"};
  const bool joins = owner == rendezvous::server::KeyOwner{};
  const bool of_step = owner.host == no_host && !joins;
  const std::optional<HostId> started = of_step ? agents_.awaited(hello.name) : hello.host;
  if (!started) return Error{fmt::format("no agent is awaited on '{}'", hello.name)};
  const auto host = joins ? roster_.admit(hello) : roster_.admit(hello, started);
  if (!host) {
    sink_.log(LogLevel::error, "a host was refused: " + host.error().text);
    return host.error();
  }
  return rendezvous::server::KeyOwner{*host, of_step ? roster_.runs(*host)
                                             : joins ? roster_.next_run(*host)
                                                     : owner.run};
}

void Run::agent_up(HostId host, const wire::Hello& hello) {
  agents_.up(host);
  const hosts::Roster::News news = roster_.up(host, hello);
  output_hold_.host_joined();
  if (news == hosts::Roster::News::slots) hosts_changed();  // before the first workers start
  if (news == hosts::Roster::News::joined) joined_.concerns(boot_now());
  feed(HostUp{host});
}

void Run::agent_gone(HostId host, const std::string& reason) {
  server_->retire(host);
  bundles_.gone(host);
  for (const report::WorkerLabel& label : labels_.host_gone(host)) sink_.gone(label);
  const hosts::Roster::News news = roster_.down(host);
  if (news == hosts::Roster::News::joined) hosts_changed();
  if (!finish_) feed(HostDown{host, reason});
  if (news == hosts::Roster::News::slots) hosts_changed();  // after HostDown: none may start there
  nodes_.agent_gone(host);
  maybe_end();
}

// ---------------------------------------------------------------- the user

void Run::signal(int number) {
  const bool passes = number == SIGUSR1 || number == SIGUSR2;
  if (number == SIGTSTP) return feed(Suspend{});
  if (passes && number != spec_.saving.stop_signal) return feed(PassSignal{number});
  feed(Interrupt{number});
}

Finish Run::run() {
  if (const auto trouble = bundles_.gather()) return Finish{trouble->code, trouble->text};
  if (auto ready = saves_.open(spec_.saving); !ready)
    return Finish{exit_code::usage, ready.error().text};
  if (auto ready = prepare(); !ready) return Finish{exit_code::nothing_started, ready.error().text};
  signals_.start(spec_.saving.stop_signal);
  pulse_.start();
  roster_.give(spec_.hosts);
  hosts_changed();
  source_.start();
  nodes_.start();
  io_.run();
  ER_CHECK(finish_.has_value());
  saves_.close(finish_->trained);
  joiners_.close();
  return *finish_;
}

}  // namespace

Finish Controller::run(const JobSpec& spec, const launcher::machine::Machine& machine,
                       report::Sink& sink) {
  return Run(spec, machine, sink).run();
}

}  // namespace elasticrun::job::driver
