// The answers of `ssh -G` for all hosts, with as few runs of ssh as possible.
//
// Hosts that the configuration files do not tell apart (host_blocks.hpp) form a group. ssh is asked
// about two hosts of each group. If the first answer, with the second host's name put in, equals
// the second answer, and ssh has read exactly the files that we have read, then the answers for the
// other hosts are made from the first one. Otherwise ssh is asked about each host of the group, as
// it is when the configuration files are not understood.
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
  // `config_file`: the file of `ssh -F`; empty: the files of the user and of the system. `files`
  // reads them.
  SshAnswers(std::string config_file, Caller caller, executors::FileThread& files);
  ~SshAnswers();

  // Returns what ssh would do for `host`. Can be cancelled. `overrides` are those of this host; its
  // config_file must be the same in all calls.
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
  std::shared_ptr<boost::asio::steady_timer> reading_;  // set while one ask() reads for all
  HostBlocks blocks_;
  Time read_at_{};
  std::map<std::string, std::shared_ptr<Group>> groups_;
};

}  // namespace elasticrun::launcher::ssh
