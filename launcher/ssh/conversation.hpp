// The whole conversation with one host, in order: from asking `ssh -G` for its configuration to the
// last line of its agent.
//
// It is one coroutine, so that the order can be read from top to bottom. A deadline or its owner
// cancels it as a whole, and everything it has opened closes with it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "launcher/executors/agent_start.hpp"
#include "launcher/executors/line_splitter.hpp"
#include "launcher/hosts/hosts.hpp"
#include "launcher/ssh/agent_image.hpp"
#include "launcher/ssh/answers.hpp"
#include "launcher/ssh/bootstrap.hpp"
#include "launcher/ssh/child_process.hpp"
#include "launcher/ssh/config.hpp"
#include "launcher/ssh/control_stream.hpp"
#include "launcher/ssh/session.hpp"
#include "launcher/ssh/trouble.hpp"

namespace elasticrun::launcher::ssh {

// What is the same for all hosts of a job.
struct ConversationFacts {
  explicit ConversationFacts(boost::asio::io_context& io) : files(io) {}

  SshOverrides overrides;
  executors::FileThread files;
  std::unique_ptr<SshAnswers> answers;
  AgentImage image;
  Duration connect_time{};
  std::string wrap;  // command that the agent is started inside of
  KeyRing keys;
};

struct ConversationHandlers {
  std::function<void(Stage)> stage;  // a stage begins; called again while a copy makes progress
  std::function<void()> started;     // the agent has been sent its start line
  std::function<void(std::string line)> line;
  std::function<void(std::string line)> note;  // a message of our own that is not an error
};

// How it ended.
struct AgentEnded {
  std::string reason;
};
struct ConnectionLost {  // the agent may still live
  std::string why;
  bool with_stream = false;  // the control stream went over it: the agent is out of reach
};
using ConversationEnd = std::variant<Symptom, AgentEnded, ConnectionLost>;

class Conversation {
 public:
  // `mark`: random word, unique to this conversation; see bootstrap.hpp.
  Conversation(boost::asio::io_context& io, std::shared_ptr<ConversationFacts> facts,
               hosts::Host host, std::string mark, const executors::AgentStart& start,
               ConversationHandlers handlers);

  // To be called once. This object must live until the coroutine has ended.
  boost::asio::awaitable<ConversationEnd> run();
  // Asks the running agent to end at once, with everything it has started.
  void end_agent();
  const SshConfig& config() const { return config_; }

 private:
  using Failure = SshSession::Failure;
  template <class T>
  using Task = boost::asio::awaitable<T>;

  Task<Failure> ask_ssh();
  Task<Failure> dial(net::Fd& socket);
  Task<Failure> dial_address(const std::string& address, Duration patience, net::Fd& socket);
  Task<Failure> log_in();
  Task<Failure> start_agent();
  Task<Failure> bring_agent();
  Task<Failure> copy(int place);
  Symptom cannot_run(int exit_code);
  Task<Failure> start(const std::string& command, Stage stage);
  Task<Failure> read_answer(Stage stage, Answer& answer);
  Task<ConversationEnd> serve();
  void pass_on();
  void look_for_stream();
  ConversationEnd end_of(SshSession::More more) const;

  boost::asio::io_context& io_;
  const std::shared_ptr<ConversationFacts> facts_;
  const hosts::Host host_;
  const std::string start_line_;
  const std::string our_address_;  // of the rendezvous, as dialled from this machine
  const std::uint16_t our_port_;
  const ConversationHandlers handlers_;
  const Bootstrap bootstrap_;
  SshConfig config_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<SshSession> session_;
  std::unique_ptr<ControlStream> stream_;  // set when the agent cannot dial the controller
  executors::LineSplitter out_lines_;
  executors::LineSplitter err_lines_;
  std::string printed_;    // standard output of the present command, not yet used
  std::string complaint_;  // its standard error, not yet used
  int pid_ = 0;            // of the agent's watchdog; see Answer::pid
  bool end_wanted_ = false;
};

}  // namespace elasticrun::launcher::ssh
