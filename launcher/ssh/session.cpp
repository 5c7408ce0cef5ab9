// See session.hpp. This file: the connection up to the login.

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "launcher/ssh/await_files.hpp"
#include "launcher/ssh/session_state.hpp"

namespace elasticrun::launcher::ssh {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

// How long the peer may be silent. Losing ssh alone ends nothing, so there is no hurry to notice
// it.
constexpr Duration silence_limit = std::chrono::seconds(30);

// Without this callback libssh would ask at the terminal, where no user is waiting.
int no_passphrase(const char*, char*, size_t, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
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

const KeyRing::State::Entry& KeyRing::State::load(const std::string& path,
                                                  const std::string& text) {
  const auto [it, is_new] = entries.try_emplace(path);
  if (is_new) {
    ssh_key key = nullptr;
    const int rc = ssh_pki_import_privkey_base64(text.c_str(), nullptr, no_passphrase,
                                                 &it->second.locked, &key);
    if (rc == SSH_OK) it->second.key.reset(key);
  }
  return it->second;
}
KeyRing::KeyRing() : state_(new State) {}
KeyRing::~KeyRing() = default;

SshSession::SshSession(asio::io_context& io, const SshConfig& config, KeyRing& keys,
                       executors::FileThread& file_thread)
    : state_(new State(io, config, *keys.state_, file_thread)) {}
SshSession::~SshSession() = default;

std::string SshSession::error() const { return state_->error(); }

// ---------------------------------------------------------------- waiting

// Without TCP_QUICKACK the kernel delays the acknowledgement that the server waits for, by 40 ms
// each time.
void SshSession::State::hurry() {
  const int on = 1;
  ::setsockopt(descriptor.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

SshSession::Task<void> SshSession::State::wait() {
  hurry();
  const bool writes = ssh_get_poll_flags(ssh) & SSH_WRITE_PENDING;
  boost::system::error_code ignored;  // the next libssh call sees the error, or it is wake()
  co_await descriptor.async_wait(writes ? Descriptor::wait_write : Descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, ignored));
}

SshSession::Task<void> SshSession::State::leave_a_turn() {
  co_await asio::post(io, asio::use_awaitable);
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
  // The port is for known_hosts only: the connection exists already.
  const unsigned port = alias ? 22 : config.port;
  ssh_options_set(ssh, SSH_OPTIONS_PORT, &port);
  set(SSH_OPTIONS_USER, config.user);
  // libssh drops the algorithms that it does not know from a list; if none is left, its own default
  // stays.
  set(SSH_OPTIONS_KEY_EXCHANGE, config.key_exchange);
  set(SSH_OPTIONS_CIPHERS_C_S, config.ciphers);
  set(SSH_OPTIONS_CIPHERS_S_C, config.ciphers);
  set(SSH_OPTIONS_HMAC_C_S, config.macs);
  set(SSH_OPTIONS_HMAC_S_C, config.macs);
  set(SSH_OPTIONS_HOSTKEYS, config.host_keys);
  if (config.identity_agent != "none") set(SSH_OPTIONS_IDENTITY_AGENT, config.identity_agent);
  choose_known_hosts();
}

// libssh reads one known_hosts file of the user and one of the system, OpenSSH several. Of each
// list the first file that has the host is taken.
void SshSession::State::choose_known_hosts() {
  const auto copy_of = [this](const std::string& path) {
    const auto found = files.known_hosts.find(path);
    return found == files.known_hosts.end() ? "/dev/null" : found->second->path();
  };
  const auto choose = [&](const std::vector<std::string>& paths, ssh_options_e option) {
    for (const std::string& path : paths) {
      set(option, copy_of(path));
      if (ssh_session_has_known_hosts_entry(ssh) == SSH_KNOWN_HOSTS_OK) return true;
    }
    set(option, paths.empty() ? "/dev/null" : copy_of(paths.front()));
    return false;
  };
  set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  if (!choose(config.user_known_hosts, SSH_OPTIONS_KNOWNHOSTS))
    choose(config.global_known_hosts, SSH_OPTIONS_GLOBAL_KNOWNHOSTS);
}

// When keys are exchanged again later, libssh looks up which key types are known for the host; any
// type will do by then.
void SshSession::State::forget_known_hosts() {
  set(SSH_OPTIONS_KNOWNHOSTS, "/dev/null");
  set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  files.known_hosts.clear();
}

SshSession::Task<SshSession::Failure> SshSession::greet(net::Fd socket) {
  State& s = *state_;
  auto read = [config = s.config] { return read_ssh_files(config); };
  s.files = co_await await_files(s.io, s.file_thread, read);
  s.set_options();
  net::set_tcp_options(socket.get(), silence_limit);
  int fd = socket.release();
  s.descriptor.assign(fd);
  ssh_options_set(s.ssh, SSH_OPTIONS_FD, &fd);
  ssh_set_blocking(s.ssh, 0);
  if (co_await s.again([&] { return ssh_connect(s.ssh); }) == SSH_OK) co_return std::nullopt;
  co_return symptom_at(Stage::greeting, s.error());
}

SshSession::Task<bool> SshSession::State::remember_host_key() {
  if (config.user_known_hosts.empty()) co_return true;
  char* line = nullptr;
  if (ssh_session_export_known_hosts_entry(ssh, &line) != SSH_OK) co_return false;
  auto append = [path = config.user_known_hosts.front(), entry = std::string(line)] {
    return append_known_host(path, entry);
  };
  ssh_string_free_char(line);
  co_return co_await await_files(io, file_thread, append);
}

SshSession::Task<SshSession::Failure> SshSession::check_host_key() {
  State& s = *state_;
  HostKey key = HostKey::unreadable;
  const ssh_known_hosts_e known = ssh_session_is_known_server(s.ssh);
  s.forget_known_hosts();
  switch (known) {
    case SSH_KNOWN_HOSTS_OK:
      co_return std::nullopt;
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
  const std::string error = s.error();
  if (key == HostKey::unknown && s.config.accept_new_keys && co_await s.remember_host_key())
    co_return std::nullopt;
  Symptom symptom = symptom_at(Stage::host_key, error);
  symptom.key = key;
  symptom.fingerprint = fingerprint_of(s.ssh);
  co_return symptom;
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
    const auto text = files.identities.find(path);
    if (text == files.identities.end()) continue;
    const auto& entry = keys.load(path, text->second);
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
  s.files.identities.clear();
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

}  // namespace elasticrun::launcher::ssh
