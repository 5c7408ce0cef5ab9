// See ssh_session.hpp.
#include "launcher/ssh/ssh_session.hpp"

#include <fmt/format.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

namespace elasticrun::launcher {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

constexpr std::size_t piece = 64u << 10;  // of what is written; bounds what libssh keeps in memory
// Losing ssh alone ends nothing, so there is no hurry to notice it.
constexpr Duration silence_limit = std::chrono::seconds(30);

struct FreeKey {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
using Key = std::unique_ptr<std::remove_pointer_t<ssh_key>, FreeKey>;
struct FreeChannel {
  void operator()(ssh_channel channel) const { ssh_channel_free(channel); }
};
using Channel = std::unique_ptr<std::remove_pointer_t<ssh_channel>, FreeChannel>;

// libssh would ask at the terminal; nobody is there.
int no_passphrase(const char*, char*, size_t, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

int number_of(std::string_view signal) {
  static const std::map<std::string_view, int> numbers = {
      {"ABRT", 6},  {"ALRM", 14}, {"BUS", 7},   {"FPE", 8},   {"HUP", 1},
      {"ILL", 4},   {"INT", 2},   {"KILL", 9},  {"PIPE", 13}, {"QUIT", 3},
      {"SEGV", 11}, {"TERM", 15}, {"USR1", 10}, {"USR2", 12}};
  const auto it = numbers.find(signal);
  return it == numbers.end() ? 0 : it->second;
}

void on_exit_signal(ssh_session, ssh_channel, const char* signal, int, const char*, const char*,
                    void* number) {
  *static_cast<int*>(number) = number_of(signal);
}

std::string fingerprint_of(ssh_session session) {
  ssh_key key = nullptr;
  if (ssh_get_server_publickey(session, &key) != SSH_OK) return {};
  const Key owner(key);
  unsigned char* hash = nullptr;
  std::size_t length = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &length) != SSH_OK) return {};
  char* text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, length);
  std::string result = fmt::format("{} {}", ssh_key_type_to_char(ssh_key_type(key)), text);
  ssh_string_free_char(text);
  ssh_clean_pubkey_hash(&hash);
  return result;
}

std::string methods_text(int methods) {
  std::string text;
  const auto add = [&](int bit, const char* name) {
    if (methods & bit) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(SSH_AUTH_METHOD_PUBLICKEY, "keys");
  add(SSH_AUTH_METHOD_PASSWORD, "a password");
  add(SSH_AUTH_METHOD_INTERACTIVE, "questions");
  add(SSH_AUTH_METHOD_HOSTBASED, "host-based");
  add(SSH_AUTH_METHOD_GSSAPI_MIC, "Kerberos");
  return text;
}

}  // namespace

struct KeyRing::State {
  struct Entry {
    Key key;
    bool locked = false;  // needs a passphrase
  };
  std::map<std::string, Entry> entries;

  const Entry& load(const std::string& path) {
    const auto [it, is_new] = entries.try_emplace(path);
    if (is_new && ::access(path.c_str(), R_OK) == 0) {
      ssh_key key = nullptr;
      const int rc = ssh_pki_import_privkey_file(path.c_str(), nullptr, no_passphrase,
                                                 &it->second.locked, &key);
      if (rc == SSH_OK) it->second.key.reset(key);
    }
    return it->second;
  }
};
KeyRing::KeyRing() : state_(new State) {}
KeyRing::~KeyRing() = default;

struct SshSession::State {
  State(asio::io_context& io, const SshConfig& c, KeyRing::State& k)
      : config(c), keys(k), ssh(ssh_new()), descriptor(io) {}
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
  Task<void> wait();
  template <class Call>
  Task<int> again(Call call, int again_code = SSH_AGAIN) {
    for (;;) {
      const int rc = call();
      if (rc != again_code) co_return rc;
      co_await wait();
    }
  }
  Task<int> open(Channel& into, const std::string& command);
  Task<int> try_agent();
  Task<int> try_files(Symptom& symptom);
  bool read_pending(std::string& out, std::string& err);
  std::string error() const { return ssh_get_error(ssh); }

  const SshConfig& config;
  KeyRing::State& keys;
  ssh_session ssh;
  Descriptor descriptor;
  Channel channel;
  Channel aside;
  ssh_channel_callbacks_struct callbacks{};
  int exit_signal = 0;
  bool tried_a_key = false;
};

SshSession::SshSession(asio::io_context& io, const SshConfig& config, KeyRing& keys)
    : state_(new State(io, config, *keys.state_)) {}
SshSession::~SshSession() = default;

std::string SshSession::error() const { return state_->error(); }

// ---------------------------------------------------------------- waiting

SshSession::Task<void> SshSession::State::wait() {
  // Without it the kernel holds back the acknowledgement that the server waits for: 40 ms a time.
  const int on = 1;
  ::setsockopt(descriptor.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
  const bool writes = ssh_get_poll_flags(ssh) & SSH_WRITE_PENDING;
  boost::system::error_code ignored;  // the next call of libssh sees what it is, or it is wake()
  co_await descriptor.async_wait(writes ? Descriptor::wait_write : Descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, ignored));
}

void SshSession::wake() {
  boost::system::error_code ignored;
  if (state_->descriptor.is_open()) state_->descriptor.cancel(ignored);
}

// ---------------------------------------------------------------- greeting and host key

void SshSession::State::set_options() {
  const bool off = false;
  ssh_options_set(ssh, SSH_OPTIONS_PROCESS_CONFIG, &off);  // ssh -G has read the files
  const bool alias = !config.host_key_alias.empty();
  set(SSH_OPTIONS_HOST, alias ? config.host_key_alias : config.hostname);
  // For known_hosts only: the connection exists.
  const unsigned port = alias ? 22 : config.port;
  ssh_options_set(ssh, SSH_OPTIONS_PORT, &port);
  set(SSH_OPTIONS_USER, config.user);
  // What libssh does not know of a list it leaves out; of an algorithm it has none of, its own
  // choice stays.
  set(SSH_OPTIONS_KEY_EXCHANGE, config.key_exchange);
  set(SSH_OPTIONS_CIPHERS_C_S, config.ciphers);
  set(SSH_OPTIONS_CIPHERS_S_C, config.ciphers);
  set(SSH_OPTIONS_HMAC_C_S, config.macs);
  set(SSH_OPTIONS_HMAC_S_C, config.macs);
  set(SSH_OPTIONS_HOSTKEYS, config.host_keys);
  if (config.identity_agent != "none") set(SSH_OPTIONS_IDENTITY_AGENT, config.identity_agent);
  choose_known_hosts();
}

// libssh reads one file of the user and one of the system, OpenSSH several: of each list the file
// that has the host is taken.
void SshSession::State::choose_known_hosts() {
  const auto choose = [this](const std::vector<std::string>& files, ssh_options_e option) {
    for (const std::string& file : files) {
      if (::access(file.c_str(), R_OK) != 0) continue;
      set(option, file);
      if (ssh_session_has_known_hosts_entry(ssh) == SSH_KNOWN_HOSTS_OK) return true;
    }
    set(option, files.empty() ? "/dev/null" : files.front());
    return false;
  };
  set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  if (!choose(config.user_known_hosts, SSH_OPTIONS_KNOWNHOSTS))
    choose(config.global_known_hosts, SSH_OPTIONS_GLOBAL_KNOWNHOSTS);
}

SshSession::Task<SshSession::Failure> SshSession::greet(net::Fd socket) {
  State& s = *state_;
  s.set_options();
  net::set_tcp_options(socket.get(), silence_limit);
  int fd = socket.release();
  s.descriptor.assign(fd);
  ssh_options_set(s.ssh, SSH_OPTIONS_FD, &fd);
  ssh_set_blocking(s.ssh, 0);
  if (co_await s.again([&] { return ssh_connect(s.ssh); }) == SSH_OK) co_return std::nullopt;
  co_return symptom_at(Stage::greeting, s.error());
}

SshSession::Failure SshSession::check_host_key() {
  State& s = *state_;
  HostKey key = HostKey::unreadable;
  switch (ssh_session_is_known_server(s.ssh)) {
    case SSH_KNOWN_HOSTS_OK:
      return std::nullopt;
    case SSH_KNOWN_HOSTS_CHANGED:
      key = HostKey::changed;
      break;
    case SSH_KNOWN_HOSTS_OTHER:
      key = HostKey::other_type;
      break;
    case SSH_KNOWN_HOSTS_NOT_FOUND:
    case SSH_KNOWN_HOSTS_UNKNOWN:
      key = HostKey::unknown;
      break;
    case SSH_KNOWN_HOSTS_ERROR:
      break;
  }
  if (key == HostKey::unknown && s.config.accept_new_keys &&
      ssh_session_update_known_hosts(s.ssh) == SSH_OK)
    return std::nullopt;
  Symptom symptom = symptom_at(Stage::host_key, s.error());
  symptom.key = key;
  symptom.fingerprint = fingerprint_of(s.ssh);
  return symptom;
}

// ---------------------------------------------------------------- login

SshSession::Task<int> SshSession::State::try_agent() {
  if (config.identity_agent == "none") co_return SSH_AUTH_DENIED;
  if (config.identity_agent.empty() && !std::getenv("SSH_AUTH_SOCK")) co_return SSH_AUTH_DENIED;
  tried_a_key = true;
  co_return co_await again([&] { return ssh_userauth_agent(ssh, nullptr); }, SSH_AUTH_AGAIN);
}

SshSession::Task<int> SshSession::State::try_files(Symptom& symptom) {
  int rc = SSH_AUTH_DENIED;
  for (const std::string& path : config.identities) {
    const auto& entry = keys.load(path);
    if (entry.locked) symptom.locked_key = path;
    if (!entry.key) continue;
    tried_a_key = true;
    rc = co_await again([&] { return ssh_userauth_publickey(ssh, nullptr, entry.key.get()); },
                        SSH_AUTH_AGAIN);
    if (rc != SSH_AUTH_DENIED) break;
  }
  co_return rc;
}

SshSession::Task<SshSession::Failure> SshSession::log_in() {
  State& s = *state_;
  Symptom symptom = symptom_at(Stage::login, {});
  int rc = SSH_AUTH_DENIED;
  if (!s.config.files_first) rc = co_await s.try_agent();
  if (rc == SSH_AUTH_DENIED) rc = co_await s.try_files(symptom);
  if (rc == SSH_AUTH_DENIED && s.config.files_first) rc = co_await s.try_agent();
  if (rc == SSH_AUTH_DENIED && !s.tried_a_key)
    rc = co_await s.again([&] { return ssh_userauth_none(s.ssh, nullptr); }, SSH_AUTH_AGAIN);
  if (rc == SSH_AUTH_SUCCESS) co_return std::nullopt;
  symptom.login = rc == SSH_AUTH_DENIED    ? Login::denied
                  : rc == SSH_AUTH_PARTIAL ? Login::partial
                                           : Login::broken;
  if (rc == SSH_AUTH_ERROR)
    symptom.text = s.error();
  else
    symptom.text = methods_text(ssh_userauth_list(s.ssh, nullptr));
  co_return symptom;
}

// ---------------------------------------------------------------- commands

SshSession::Task<int> SshSession::State::open(Channel& into, const std::string& command) {
  into.reset(ssh_channel_new(ssh));
  int rc = co_await again([&] { return ssh_channel_open_session(into.get()); });
  if (rc == SSH_OK)
    rc = co_await again([&] { return ssh_channel_request_exec(into.get(), command.c_str()); });
  co_return rc;
}

SshSession::Task<SshSession::Failure> SshSession::start(const std::string& command, Stage stage) {
  State& s = *state_;
  s.exit_signal = 0;
  if (co_await s.open(s.channel, command) != SSH_OK) co_return symptom_at(stage, s.error());
  s.callbacks.channel_exit_signal_function = on_exit_signal;
  s.callbacks.userdata = &s.exit_signal;
  ssh_callbacks_init(&s.callbacks);
  ssh_set_channel_callbacks(s.channel.get(), &s.callbacks);
  co_return std::nullopt;
}

SshSession::Task<void> SshSession::start_aside(const std::string& command) {
  co_await state_->open(state_->aside, command);
}

void SshSession::end_input() { ssh_channel_send_eof(state_->channel.get()); }

bool SshSession::State::read_pending(std::string& out, std::string& err) {
  std::array<char, 16384> buffer;
  bool any = false;
  for (const int is_err : {0, 1}) {
    for (;;) {
      const int n =
          ssh_channel_read_nonblocking(channel.get(), buffer.data(), buffer.size(), is_err);
      if (n <= 0) break;
      (is_err ? err : out).append(buffer.data(), static_cast<std::size_t>(n));
      any = true;
    }
  }
  return any;
}

SshSession::Task<void> SshSession::write(std::string_view bytes, std::string& out, std::string& err,
                                         const std::function<void()>& progress) {
  State& s = *state_;
  ssh_channel channel = s.channel.get();
  while (!bytes.empty()) {
    const auto size = static_cast<std::uint32_t>(std::min(bytes.size(), piece));
    const int written = ssh_channel_write(channel, bytes.data(), size);
    // The call itself may have taken in that the command has ended; nothing more comes then, and
    // libssh does not say so before what the command has printed is read.
    s.read_pending(out, err);
    if (written == SSH_ERROR || !ssh_is_connected(s.ssh) || ssh_channel_is_closed(channel) ||
        ssh_channel_is_eof(channel))
      co_return;
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      progress();
    }
    if (written == 0 || (ssh_get_poll_flags(s.ssh) & SSH_WRITE_PENDING)) co_await s.wait();
  }
}

SshSession::Task<SshSession::More> SshSession::read(std::string& out, std::string& err) {
  State& s = *state_;
  for (bool waited = false;; waited = true) {
    // What lies in libssh's memory does not make the descriptor readable.
    if (s.read_pending(out, err)) co_return More::yes;
    const bool has_exit = ssh_channel_get_exit_status(s.channel.get()) != -1 || s.exit_signal != 0;
    if (ssh_channel_is_eof(s.channel.get()) && has_exit) co_return More::ended;
    if (!ssh_is_connected(s.ssh)) co_return More::lost;
    if (ssh_channel_is_closed(s.channel.get())) co_return More::ended;
    if (waited) co_return More::yes;
    co_await s.wait();
  }
}

int SshSession::exit_code() const {
  if (state_->exit_signal != 0) return 128 + state_->exit_signal;
  return ssh_channel_get_exit_status(state_->channel.get());
}

}  // namespace elasticrun::launcher
