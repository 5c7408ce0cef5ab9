// The yardstick for starting a program on many hosts: how fast a program written by hand against
// libssh can be when it does only what ssh requires.
//
//     bench_bare_libssh USER IDENTITY KNOWN_HOSTS ADDRESS...
//
// One thread serves all hosts at once. On each host it connects, checks the host's key, logs in
// with the one key, runs a program and waits for its exit status. It exits with 0 when all programs
// did.
//
// It reads no configuration, looks up no names, has no deadlines and no retries, and does not watch
// over what it has started. So this is a yardstick and not an alternative. It uses poll and not
// Asio, so that it shares nothing with elasticrun.
#include <libssh/libssh.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

void check(bool good, const std::string& host, const char* what) {
  if (good) return;
  std::fprintf(stderr, "bench_bare_libssh: %s: %s\n", host.c_str(), what);
  std::exit(1);
}

// One host. `go` does everything that can be done without waiting.
class Host {
 public:
  Host(const char* user, ssh_key key, const char* known_hosts, const char* address)
      : address_(address), key_(key), ssh_(ssh_new()) {
    const bool off = false;
    const int on = 1;
    ssh_options_set(ssh_, SSH_OPTIONS_PROCESS_CONFIG, &off);
    ssh_options_set(ssh_, SSH_OPTIONS_HOST, address);
    ssh_options_set(ssh_, SSH_OPTIONS_USER, user);
    ssh_options_set(ssh_, SSH_OPTIONS_KNOWNHOSTS, known_hosts);
    ssh_options_set(ssh_, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
    ssh_options_set(ssh_, SSH_OPTIONS_NODELAY, &on);
    ssh_set_blocking(ssh_, 0);
  }
  ~Host() {
    if (channel_) ssh_channel_free(channel_);
    ssh_silent_disconnect(ssh_);
    ssh_free(ssh_);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void go() {
    while (stage_ != Stage::done) {
      const int rc = call();
      if (rc == SSH_AGAIN) return;
      check(rc == SSH_OK, address_, ssh_get_error(ssh_));
      stage_ = static_cast<Stage>(static_cast<int>(stage_) + 1);
    }
  }
  bool done() const { return stage_ == Stage::done; }
  pollfd waiting() const {
    const int fd = ssh_get_fd(ssh_);
    const int on = 1;  // otherwise the kernel delays an acknowledgement by 40 ms
    ::setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
    const bool writes = ssh_get_poll_flags(ssh_) & SSH_WRITE_PENDING;
    return {fd, static_cast<short>(writes ? POLLOUT : POLLIN), 0};
  }

 private:
  enum class Stage { connect, host_key, login, channel, command, exit, done };

  int call() {
    switch (stage_) {
      case Stage::connect:
        return ssh_connect(ssh_);
      case Stage::host_key:
        return ssh_session_is_known_server(ssh_) == SSH_KNOWN_HOSTS_OK ? SSH_OK : SSH_ERROR;
      case Stage::login:
        return log_in();
      case Stage::channel:
        if (!channel_) channel_ = ssh_channel_new(ssh_);
        return ssh_channel_open_session(channel_);
      case Stage::command:
        return ssh_channel_request_exec(channel_, "/bin/true");
      case Stage::exit:
        return exit_status();
      case Stage::done:
        break;
    }
    return SSH_OK;
  }

  int log_in() {
    const int rc = ssh_userauth_publickey(ssh_, nullptr, key_);
    if (rc == SSH_AUTH_AGAIN) return SSH_AGAIN;
    return rc == SSH_AUTH_SUCCESS ? SSH_OK : SSH_ERROR;
  }

  int exit_status() {
    char ignored[256];
    for (const int is_err : {0, 1})
      while (ssh_channel_read_nonblocking(channel_, ignored, sizeof ignored, is_err) > 0) {
      }
    const int status = ssh_channel_get_exit_status(channel_);
    if (status == 0) return SSH_OK;
    return status < 0 && ssh_is_connected(ssh_) ? SSH_AGAIN : SSH_ERROR;
  }

  const std::string address_;
  const ssh_key key_;
  const ssh_session ssh_;
  ssh_channel channel_ = nullptr;
  Stage stage_ = Stage::connect;
};

}  // namespace

int main(int argc, char** argv) {
  check(argc > 4, "arguments", "USER IDENTITY KNOWN_HOSTS ADDRESS...");
  ssh_key key = nullptr;
  check(ssh_pki_import_privkey_file(argv[2], nullptr, nullptr, nullptr, &key) == SSH_OK, argv[2],
        "is no private key");
  std::vector<std::unique_ptr<Host>> hosts;
  for (int i = 4; i < argc; ++i)
    hosts.push_back(std::make_unique<Host>(argv[1], key, argv[3], argv[i]));
  for (const auto& host : hosts) host->go();
  for (;;) {
    std::erase_if(hosts, [](const auto& host) { return host->done(); });
    if (hosts.empty()) break;
    std::vector<pollfd> waiting;
    for (const auto& host : hosts) waiting.push_back(host->waiting());
    ::poll(waiting.data(), waiting.size(), -1);
    for (std::size_t i = 0; i < hosts.size(); ++i)
      if (waiting[i].revents) hosts[i]->go();
  }
  ssh_key_free(key);
  return 0;
}
