// What `ssh -G` says of each host, asked no more often than it takes.
//
// Hosts that the configuration files do not tell apart (host_blocks.hpp) are a group. Two of a
// group are asked about. When the first answer with the second host's name in it is what ssh says
// of the second, and ssh has read the very files that we have read, the others' answers are made
// from the first; otherwise each host of the group is asked about, as when nothing is understood.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "launcher/executors/file_thread.hpp"
#include "launcher/ssh/config.hpp"
#include "launcher/ssh/host_blocks.hpp"

namespace elasticrun::launcher::ssh {

class SshAnswers {
 public:
  // The file of `ssh -F`; empty: those of the user and of the system. `files` reads them.
  SshAnswers(std::string config_file, Caller caller, executors::FileThread& files);
  ~SshAnswers();

  // Can be cancelled. `overrides` for this host; the same file in all of them.
  boost::asio::awaitable<Result<SshConfig>> ask(boost::asio::io_context& io, std::string host,
                                                SshOverrides overrides);

 private:
  struct Group;
  struct Question;
  class Asking;
  class Reading;
  boost::asio::awaitable<void> refresh(boost::asio::io_context& io);
  boost::asio::awaitable<Result<SshConfig>> ask_ssh(boost::asio::io_context& io,
                                                    const Question& question, Group* group);

  const std::string config_file_;
  const Caller caller_;
  executors::FileThread& files_;
  const std::string folder_;                            // ~/.ssh
  std::shared_ptr<boost::asio::steady_timer> reading_;  // by one of those who ask, for all
  HostBlocks blocks_;
  Time read_at_{};
  std::map<std::string, std::shared_ptr<Group>> groups_;
};

}  // namespace elasticrun::launcher::ssh
