// See conversation.hpp.
#include "launcher/ssh/conversation.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "base/text.hpp"
#include "launcher/ssh/name_lookup.hpp"
#include "wire/limits.hpp"

namespace elasticrun::launcher::ssh {
namespace {

namespace asio = boost::asio;

// Most bytes that are kept of what a login shell prints before it obeys; the end is what counts.
constexpr std::size_t chatter_max = 64u << 10;

SshOverrides overrides_for(const hosts::Host& host, SshOverrides overrides) {
  if (!host.user.empty()) overrides.user = host.user;
  if (!host.identity.empty()) overrides.identity = host.identity;
  if (host.port != 0) overrides.port = host.port;
  return overrides;
}

std::string how_it_ended(int code) {
  if (code == 0) return "elasticrun-agent has ended";
  if (code < 0) return "elasticrun-agent has ended, the host does not say how";
  if (code > 128) return fmt::format("elasticrun-agent was killed by signal {}", code - 128);
  return fmt::format("elasticrun-agent ended with exit code {}", code);
}

Symptom failed(Stage stage, int error) {
  Symptom symptom = symptom_at(stage, stage == Stage::connect ? net::error_text(error) : "");
  symptom.error = error;
  return symptom;
}

Symptom foreign(const std::string& theirs, const std::string& ours) {
  Symptom symptom =
      symptom_at(Stage::shell, fmt::format("runs {}, and the agent is for {}", theirs, ours), 0);
  symptom.foreign = true;
  return symptom;
}

}  // namespace

Conversation::Conversation(asio::io_context& io, std::shared_ptr<ConversationFacts> facts,
                           hosts::Host host, std::string mark, const executors::AgentStart& start,
                           ConversationHandlers handlers)
    : io_(io),
      facts_(std::move(facts)),
      host_(std::move(host)),
      start_line_(encode(start)),
      our_address_(start.addresses.empty() ? "127.0.0.1" : start.addresses.front()),
      our_port_(start.port),
      handlers_(std::move(handlers)),
      bootstrap_{std::move(mark), facts_->image.hash, facts_->image.system,
                 facts_->image.bytes.size(), facts_->wrap},
      out_lines_(wire::line_bytes_max),
      err_lines_(wire::line_bytes_max) {}

asio::awaitable<ConversationEnd> Conversation::run() {
  handlers_.stage(Stage::config);
  if (Failure failure = co_await ask_ssh()) co_return *failure;
  net::Fd socket;
  if (Failure failure = co_await dial(socket)) co_return *failure;
  session_ = std::make_unique<SshSession>(io_, config_, facts_->keys, facts_->files);
  handlers_.stage(Stage::greeting);
  if (Failure failure = co_await session_->greet(std::move(socket))) {
    std::string words;
    if (proxy_) words = co_await proxy_->last_words();
    if (!words.empty()) failure->text = words;
    co_return *failure;
  }
  handlers_.stage(Stage::host_key);
  if (Failure failure = co_await session_->check_host_key()) co_return *failure;
  handlers_.stage(Stage::login);
  if (Failure failure = co_await session_->log_in()) co_return *failure;
  if (Failure failure = co_await start_agent()) co_return *failure;
  const std::function<void()> nothing = [] {};
  co_await session_->write(start_line_, printed_, complaint_, nothing);
  handlers_.started();
  co_return co_await serve();
}

// ---------------------------------------------------------------- the connection

SshSession::Task<SshSession::Failure> Conversation::ask_ssh() {
  const SshOverrides overrides = overrides_for(host_, facts_->overrides);
  auto config = co_await facts_->answers->ask(io_, host_.name, overrides);
  if (!config) co_return symptom_at(Stage::config, config.error().text);
  config_ = std::move(*config);
  co_return std::nullopt;
}

SshSession::Task<SshSession::Failure> Conversation::dial(net::Fd& socket) {
  if (!config_.proxy_command.empty()) {
    handlers_.stage(Stage::connect);
    auto proxy = Proxy::start(io_, config_.proxy_command);
    if (!proxy) co_return symptom_at(Stage::connect, proxy.error().text);
    proxy_ = std::move(*proxy);
    socket = proxy_->take_socket();
    co_return std::nullopt;
  }
  handlers_.stage(Stage::lookup);
  const Addresses addresses = co_await look_up(io_, config_.hostname, config_.address_family);
  if (addresses.error != 0) co_return failed(Stage::lookup, addresses.error);
  handlers_.stage(Stage::connect);
  const Duration whole =
      config_.connect_timeout > Duration::zero() ? config_.connect_timeout : facts_->connect_time;
  const Duration each = whole / static_cast<Duration::rep>(addresses.found.size());
  Failure failure;
  for (const std::string& address : addresses.found) {
    failure = co_await dial_address(address, each, socket);
    if (!failure) co_return std::nullopt;
  }
  co_return failure;
}

// Dials one address, for its share of the time: an address that leads nowhere must leave time for
// the next one.
SshSession::Task<SshSession::Failure> Conversation::dial_address(const std::string& address,
                                                                 Duration patience,
                                                                 net::Fd& socket) {
  using Descriptor = asio::posix::stream_descriptor;
  const Result<int> fd = net::connect_tcp(address, config_.port);
  if (!fd) co_return failed(Stage::connect, fd.error().number);
  const auto descriptor = std::make_shared<Descriptor>(io_, *fd);
  asio::steady_timer timer(io_, std::chrono::duration_cast<asio::steady_timer::duration>(patience));
  timer.async_wait([descriptor](const boost::system::error_code& cancelled) {
    boost::system::error_code ignored;
    if (!cancelled && descriptor->is_open()) descriptor->cancel(ignored);
  });
  boost::system::error_code error;
  co_await descriptor->async_wait(Descriptor::wait_write,
                                  asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return failed(Stage::connect, ETIMEDOUT);
  int state = 0;
  socklen_t size = sizeof state;
  ::getsockopt(*fd, SOL_SOCKET, SO_ERROR, &state, &size);
  if (state != 0) co_return failed(Stage::connect, state);
  socket = net::Fd(descriptor->release());
  co_return std::nullopt;
}

// ---------------------------------------------------------------- the agent

// Starts a command; the output of an earlier one is dropped.
SshSession::Task<SshSession::Failure> Conversation::start(const std::string& command, Stage stage) {
  handlers_.stage(stage);
  printed_.clear();
  complaint_.clear();
  co_return co_await session_->start(command, stage);
}

// Reads until the command's answer has arrived.
SshSession::Task<SshSession::Failure> Conversation::read_answer(Stage stage, Answer& answer) {
  for (;;) {
    std::string_view rest;
    if (const auto found = find_answer(printed_, bootstrap_.mark, rest)) {
      answer = *found;
      printed_ = std::string(rest);
      co_return std::nullopt;
    }
    if (printed_.size() > chatter_max) printed_.erase(0, printed_.size() - chatter_max);
    if (complaint_.size() > chatter_max) complaint_.erase(0, complaint_.size() - chatter_max);
    const auto more = co_await session_->read(printed_, complaint_);
    if (more == SshSession::More::lost) co_return symptom_at(stage, session_->error());
    const std::string& said = complaint_.empty() ? printed_ : complaint_;
    if (more == SshSession::More::ended)
      co_return symptom_at(stage, std::string(last_line(said)), std::max(0, session_->exit_code()));
  }
}

// A wrapped agent is searched for before it is started, so that a missing agent and a failing
// wrapper can be told apart.
SshSession::Task<SshSession::Failure> Conversation::start_agent() {
  if (!facts_->wrap.empty()) co_return co_await bring_agent();
  if (Failure failure = co_await start(start_agent_command(bootstrap_), Stage::shell))
    co_return failure;
  Answer answer;
  Failure failure = co_await read_answer(Stage::shell, answer);
  if (failure && failure->exit_code < 0) co_return failure;
  if (failure || answer.what != Answer::What::ready) co_return co_await bring_agent();
  pid_ = answer.pid;
  co_return std::nullopt;
}

// Finds a place for the agent and copies it there if needed. A place that lacks room or permission
// is noted, and the next one is tried; an agent that is found but does not run is replaced once.
SshSession::Task<SshSession::Failure> Conversation::bring_agent() {
  std::string why_not;
  int copied_to = 0;
  for (int place = 1;;) {
    Answer answer;
    const std::string question = find_agent_command(bootstrap_, place);
    if (Failure failure = co_await start(question, Stage::shell)) co_return failure;
    if (Failure failure = co_await read_answer(Stage::shell, answer)) co_return failure;
    if (answer.what == Answer::What::foreign) co_return foreign(answer.text, bootstrap_.system);
    const bool found = answer.what == Answer::What::found;
    if (!found && answer.what != Answer::What::copy)
      co_return symptom_at(Stage::copy, why_not + answer.text);
    place = answer.place;
    Failure failure;
    if (found) {
      pid_ = answer.pid;
      handlers_.stage(Stage::run);
      failure = co_await read_answer(Stage::run, answer);
      if (!failure && answer.what == Answer::What::ready) co_return std::nullopt;
      if (!failure && place == copied_to)
        co_return symptom_at(Stage::copy, "a copy does not keep its bytes", 1);
      if (failure && failure->exit_code < 0) co_return failure;
      if (failure && (place == copied_to || !facts_->wrap.empty()))
        co_return cannot_run(failure->exit_code);
    } else if (place == copied_to) {
      failure = symptom_at(Stage::copy, "a copy was not kept", 1);
    }
    if (found || !failure) failure = co_await copy(place);
    copied_to = place;
    if (!failure) continue;
    if (failure->exit_code < 0) co_return failure;
    why_not += failure->text + " ";
    ++place;
  }
}

// First passes on the lines of the agent, or those of a shell that did not find it: they explain
// why.
Symptom Conversation::cannot_run(int exit_code) {
  pass_on();
  return symptom_at(Stage::run, facts_->wrap, exit_code);
}

SshSession::Task<SshSession::Failure> Conversation::copy(int place) {
  const std::string command = copy_agent_command(bootstrap_, place);
  if (Failure failure = co_await start(command, Stage::copy)) co_return failure;
  const std::function<void()> progress = [this] { handlers_.stage(Stage::copy); };
  co_await session_->write(facts_->image.bytes, printed_, complaint_, progress);
  session_->end_input();
  Answer answer;
  if (Failure failure = co_await read_answer(Stage::copy, answer)) co_return failure;
  if (answer.what == Answer::What::copied) co_return std::nullopt;
  co_return symptom_at(Stage::copy, fmt::format("{} ({})", answer.text, last_line(complaint_)), 1);
}

void Conversation::end_agent() {
  end_wanted_ = true;
  session_->wake();
}

SshSession::Task<ConversationEnd> Conversation::serve() {
  SshSession::More more = SshSession::More::yes;
  while (more == SshSession::More::yes) {
    pass_on();
    const std::string end = end_agent_command(bootstrap_, pid_);
    if (std::exchange(end_wanted_, false)) co_await session_->start_aside(end);
    if (stream_)
      more = co_await stream_->run(complaint_);
    else
      more = co_await session_->read(printed_, complaint_);
  }
  co_return end_of(more);
}

ConversationEnd Conversation::end_of(SshSession::More more) const {
  if (more == SshSession::More::lost) return ConnectionLost{session_->error(), stream_ != nullptr};
  const int code = session_->exit_code();
  return AgentEnded{how_it_ended(code)};
}

// Starts the control stream if the agent has asked for it. What follows the line that asks for it
// is no longer text for the user.
void Conversation::look_for_stream() {
  std::string_view rest;
  const auto answer = find_answer(printed_, bootstrap_.mark, rest);
  if (!answer || answer->what != Answer::What::stream) return;
  net::Fd socket;
  if (const Result<int> fd = net::connect_tcp(our_address_, our_port_)) socket = net::Fd(*fd);
  stream_ = std::make_unique<ControlStream>(io_, *session_, std::move(socket), std::string(rest));
  const std::size_t line = printed_.rfind(bootstrap_.mark, printed_.size() - rest.size());
  printed_.resize(line);
  if (printed_ == "\n" || printed_.ends_with("\n\n")) printed_.pop_back();  // the agent's own
  handlers_.note(
      fmt::format("cannot dial back ({}); its control stream goes through ssh", answer->text));
}

// Hands whole lines to the handlers. An unfinished line is kept, as it may become the one that asks
// for the control stream.
void Conversation::pass_on() {
  if (!stream_) look_for_stream();
  std::size_t whole = printed_.rfind('\n') + 1;  // 0 if there is no newline
  if (stream_ || printed_.size() - whole > wire::line_bytes_max) whole = printed_.size();
  std::string lines;
  out_lines_.feed(std::string_view(printed_).substr(0, whole), lines);
  printed_.erase(0, whole);
  err_lines_.feed(std::exchange(complaint_, {}), lines);
  for (std::string_view rest = lines; !rest.empty();) {
    const std::size_t newline = rest.find('\n');
    handlers_.line(std::string(rest.substr(0, newline)));
    rest.remove_prefix(newline + 1);
  }
}

}  // namespace elasticrun::launcher::ssh
