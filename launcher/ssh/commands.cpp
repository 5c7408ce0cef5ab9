// Commands on a host: see session.hpp.
#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "launcher/ssh/session_state.hpp"

namespace elasticrun::launcher::ssh {
namespace {

// Most bytes that are written or read before the event loop gets a turn to serve others. This also
// bounds what libssh keeps in memory.
constexpr std::size_t piece = 64u << 10;
// Most bytes that are written and not yet consumed by the command. An sshd whose memory fills with
// unconsumed bytes moves and remaps that memory all the time, and takes three times as long.
constexpr std::uint32_t under_way_max = 256u << 10;

int number_of(std::string_view signal) {
  static const std::map<std::string_view, int> numbers = {
      {"ABRT", 6},  {"ALRM", 14}, {"BUS", 7},   {"FPE", 8},   {"HUP", 1},
      {"ILL", 4},   {"INT", 2},   {"KILL", 9},  {"PIPE", 13}, {"QUIT", 3},
      {"SEGV", 11}, {"TERM", 15}, {"USR1", 10}, {"USR2", 12}};
  const auto it = numbers.find(signal);
  return it == numbers.end() ? 0 : it->second;
}

// ssh_channel_get_exit_status reads from the socket first, and the descriptor does not show any
// more what it took in. So the status is kept as it arrives.
void on_exit_status(ssh_session, ssh_channel, int status, void* code) {
  *static_cast<std::optional<int>*>(code) = status;
}

void on_exit_signal(ssh_session, ssh_channel, const char* signal, int, const char*, const char*,
                    void* code) {
  const int number = number_of(signal);
  *static_cast<std::optional<int>*>(code) = number == 0 ? -1 : 128 + number;
}

}  // namespace

SshSession::Task<int> SshSession::State::open(Channel& into, const std::string& command,
                                              ssh_channel_callbacks_struct* told) {
  into.reset(ssh_channel_new(ssh));
  if (told) ssh_set_channel_callbacks(into.get(), told);  // a short command may end while it begins
  int rc = co_await again([&] { return ssh_channel_open_session(into.get()); });
  if (rc == SSH_OK)
    rc = co_await again([&] { return ssh_channel_request_exec(into.get(), command.c_str()); });
  co_return rc;
}

SshSession::Task<SshSession::Failure> SshSession::start(const std::string& command, Stage stage) {
  State& s = *state_;
  // An earlier command may still tell how it ended.
  if (s.channel) ssh_remove_channel_callbacks(s.channel.get(), &s.callbacks);
  s.exit_code.reset();
  s.callbacks.channel_exit_status_function = on_exit_status;
  s.callbacks.channel_exit_signal_function = on_exit_signal;
  s.callbacks.userdata = &s.exit_code;
  ssh_callbacks_init(&s.callbacks);
  if (co_await s.open(s.channel, command, &s.callbacks) != SSH_OK)
    co_return symptom_at(stage, s.error());
  co_return std::nullopt;
}

SshSession::Task<void> SshSession::start_aside(const std::string& command) {
  co_await state_->open(state_->aside, command, nullptr);
}

void SshSession::end_input() { ssh_channel_send_eof(state_->channel.get()); }

// Reading one stream may also take in what has arrived for the other, and the descriptor does not
// show that any more. So only a pass that took nothing in from the socket proves that nothing is
// pending.
bool SshSession::State::read_pending(std::string& out, std::size_t most, std::string& err) {
  for (;;) {
    const std::uint64_t before = from_socket.in_bytes;
    if (read_once(out, most, err)) return true;
    if (from_socket.in_bytes == before) return false;
  }
}

// Takes at most `most` bytes of `out`, or all that libssh has in memory if that is more; with 0 it
// takes nothing of `out`. Every read of either stream, however small, lets the command send another
// window, no matter how much is in memory already. So reading a little of a lot at a time would
// make that memory grow without end, and `err` is read only when it has something. Polling for that
// also lets libssh send what waits to be sent.
bool SshSession::State::read_once(std::string& out, std::size_t most, std::string& err) {
  std::array<char, 16384> buffer;
  bool any = false;
  for (const int is_err : {0, 1}) {
    std::string& into = is_err ? err : out;
    const int there = ssh_channel_poll(channel.get(), is_err);
    const auto all = static_cast<std::size_t>(std::max(there, 0));
    const std::size_t from_out = most > 0 ? std::max(most, all) : 0;
    for (std::size_t left = is_err ? std::min(all, piece) : from_out; left > 0;) {
      const int n = ssh_channel_read_nonblocking(
          channel.get(), buffer.data(), static_cast<std::uint32_t>(std::min(left, buffer.size())),
          is_err);
      if (n <= 0) break;
      into.append(buffer.data(), static_cast<std::size_t>(n));
      left -= static_cast<std::size_t>(n);
      any = true;
    }
  }
  // After the end of the output libssh takes in what follows only when it is asked for the status.
  if (ssh_channel_is_eof(channel.get())) (void)ssh_channel_get_exit_status(channel.get());
  return any;
}

SshSession::More SshSession::State::more() const {
  if (ssh_channel_is_eof(channel.get()) && exit_code) return More::ended;
  if (!ssh_is_connected(ssh)) return More::lost;
  return ssh_channel_is_closed(channel.get()) ? More::ended : More::yes;
}

SshSession::Task<void> SshSession::write(std::string_view bytes, std::string& out, std::string& err,
                                         const std::function<void()>& progress) {
  State& s = *state_;
  ssh_channel channel = s.channel.get();
  std::uint32_t whole_window = 0;
  while (!bytes.empty()) {
    const std::uint32_t window = ssh_channel_window_size(channel);
    whole_window = std::max(whole_window, window);
    if (whole_window - window >= under_way_max && ssh_is_connected(s.ssh) &&
        !ssh_channel_is_closed(channel) && !ssh_channel_is_eof(channel)) {
      co_await s.wait();
      s.read_pending(out, piece, err);
      continue;
    }
    const auto size = static_cast<std::uint32_t>(std::min(bytes.size(), piece));
    const std::uint64_t before = s.from_socket.in_bytes;
    const int written = ssh_channel_write(channel, bytes.data(), size);
    // The call itself may have received the news that the command has ended. Nothing more arrives
    // then, and libssh does not report the end before the command's output has been read.
    s.read_pending(out, piece, err);
    if (written == SSH_ERROR || !ssh_is_connected(s.ssh) || ssh_channel_is_closed(channel) ||
        ssh_channel_is_eof(channel))
      co_return;
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      progress();
    }
    const bool maybe_room = written == 0 && s.from_socket.in_bytes != before;
    if ((written == 0 && !maybe_room) || (ssh_get_poll_flags(s.ssh) & SSH_WRITE_PENDING))
      co_await s.wait();
    else
      co_await s.leave_a_turn();
  }
}

SshSession::Task<SshSession::More> SshSession::read(std::string& out, std::string& err) {
  State& s = *state_;
  for (bool waited = false;; waited = true) {
    // Data in libssh's memory does not make the descriptor readable.
    if (s.read_pending(out, piece, err)) {
      co_await s.leave_a_turn();
      co_return More::yes;
    }
    const More more = s.more();
    if (waited || more != More::yes) co_return more;
    co_await s.wait();
  }
}

std::uint64_t SshSession::taken_in() const { return state_->from_socket.in_bytes; }

bool SshSession::take(std::string& out, std::size_t most, std::string& err) {
  return state_->read_pending(out, most, err);
}

std::size_t SshSession::give(std::string_view bytes) {
  if (ssh_get_poll_flags(state_->ssh) & SSH_WRITE_PENDING) return 0;
  const auto size = static_cast<std::uint32_t>(std::min(bytes.size(), piece));
  return static_cast<std::size_t>(
      std::max(ssh_channel_write(state_->channel.get(), bytes.data(), size), 0));
}

SshSession::More SshSession::more() const { return state_->more(); }

bool SshSession::output_ended() const { return ssh_channel_is_eof(state_->channel.get()); }

void SshSession::watch(bool for_room, std::function<void()> ready) {
  using Descriptor = boost::asio::posix::stream_descriptor;
  state_->hurry();
  state_->descriptor.async_wait(
      for_room ? Descriptor::wait_write : Descriptor::wait_read,
      [ready = std::move(ready)](const boost::system::error_code&) { ready(); });
}

bool SshSession::wants_room() const { return ssh_get_poll_flags(state_->ssh) & SSH_WRITE_PENDING; }

int SshSession::exit_code() const { return state_->exit_code.value_or(-1); }

}  // namespace elasticrun::launcher::ssh
