// What an ssh connection consists of. Only the two files that implement SshSession include this
// header, so that libssh is seen nowhere else.
#pragma once

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "launcher/ssh/files.hpp"
#include "launcher/ssh/session.hpp"

namespace elasticrun::launcher::ssh {

struct FreeKey {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
using Key = std::unique_ptr<std::remove_pointer_t<ssh_key>, FreeKey>;
struct FreeChannel {
  void operator()(ssh_channel channel) const { ssh_channel_free(channel); }
};
using Channel = std::unique_ptr<std::remove_pointer_t<ssh_channel>, FreeChannel>;

struct KeyRing::State {
  struct Entry {
    Key key;
    bool locked = false;  // needs a passphrase
  };
  std::map<std::string, Entry> entries;

  const Entry& load(const std::string& path, const std::string& text);
};

struct SshSession::State {
  State(boost::asio::io_context& context, const SshConfig& c, KeyRing::State& k,
        executors::FileThread& f)
      : io(context), config(c), keys(k), file_thread(f), ssh(ssh_new()), descriptor(io) {
    ssh_set_counters(ssh, &from_socket, nullptr);
  }
  ~State() {
    aside.reset();
    channel.reset();
    if (descriptor.is_open()) descriptor.release();  // libssh owns it
    ssh_silent_disconnect(ssh);
    ssh_free(ssh);
  }

  void set(ssh_options_e option, const std::string& value) {
    if (!value.empty()) ssh_options_set(ssh, option, value.c_str());
  }
  void set_options();
  void choose_known_hosts();
  void forget_known_hosts();
  void hurry();
  Task<void> wait();
  Task<void> leave_a_turn();  // lets other ready handlers run
  template <class Call>
  Task<int> again(Call call, int again_code = SSH_AGAIN) {
    for (;;) {
      const int rc = call();
      if (rc != again_code) co_return rc;
      co_await wait();
    }
  }
  Task<int> open(Channel& into, const std::string& command, ssh_channel_callbacks_struct* told);
  Task<bool> remember_host_key();
  Task<int> try_agent();
  Task<int> try_files(Symptom& symptom);
  bool read_pending(std::string& out, std::size_t most, std::string& err);
  bool read_once(std::string& out, std::size_t most, std::string& err);
  More more() const;  // takes nothing in
  std::string error() const { return ssh_get_error(ssh); }

  boost::asio::io_context& io;
  const SshConfig& config;
  KeyRing::State& keys;
  executors::FileThread& file_thread;
  SshFiles files;                    // needed until the login
  ssh_counter_struct from_socket{};  // counts the bytes libssh has read from the socket
  ssh_session ssh;
  boost::asio::posix::stream_descriptor descriptor;
  Channel channel;
  Channel aside;
  ssh_channel_callbacks_struct callbacks{};
  std::optional<int> exit_code;  // see SshSession::exit_code; set by the callbacks
  bool tried_a_key = false;
};

}  // namespace elasticrun::launcher::ssh
