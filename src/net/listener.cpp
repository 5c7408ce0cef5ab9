// See listener.hpp. Pending connections are kept by number, and their handlers look them up by that
// number, so a late handler of a connection that is gone finds nothing.
#include "net/listener.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <map>
#include <utility>

#include "net/sockets.hpp"
#include "net/stream.hpp"
#include "wire/codec.hpp"

namespace elasticrun::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Pause before accepting again when descriptors or memory are short; meanwhile the connection stays
// in the kernel's queue.
constexpr auto accept_retry = std::chrono::milliseconds(100);
constexpr Duration refusal_flush_time = std::chrono::seconds(1);

struct Pending {
  Peer peer;
  std::unique_ptr<Session> session;
  asio::steady_timer deadline;
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
};

// An error says why a peer with this greeting is refused.
Result<void> check_hello(const wire::Hello& hello, const ListenerOptions& options) {
  const wire::Welcome& ours = options.welcome;
  if (hello.protocol != ours.protocol)
    return Error{
        fmt::format("this is protocol {} (version {}), you speak protocol {} (version {}); "
                    "use one version on both sides",
                    ours.protocol, ours.version, hello.protocol, hello.version)};
  if (std::ranges::count(options.roles, hello.role) == 0)
    return Error{
        fmt::format("expected the role '{}', got '{}'", options.roles.front(), hello.role)};
  if (hello.job != options.job)
    return Error{fmt::format("this is job '{}', not '{}'", options.job, hello.job)};
  return {};
}

std::string no_room(const ListenerOptions& options) {
  return fmt::format("no greeting within {}, and others wait", to_text(options.full_time));
}

}  // namespace

struct Listener::Impl : std::enable_shared_from_this<Listener::Impl> {
  Impl(asio::io_context& context, int fd, std::string unlink_path,
       std::function<std::unique_ptr<Stream>(int)> stream_maker, ListenerOptions o,
       ListenerHandlers h)
      : io(context),
        acceptor(context, fd),
        retry(context),
        path(std::move(unlink_path)),
        make_stream(std::move(stream_maker)),
        options(std::move(o)),
        handlers(std::move(h)) {}

  void wait();
  void accept();
  void retry_after(asio::steady_timer::duration time);
  bool is_full() const { return pending.size() >= options.pending_max; }
  bool oldest_may_go();
  void admit(Fd fd);
  void handshaken(std::uint64_t id, const Result<void>& handshake);
  void greeted(std::uint64_t id, WorkerId worker, std::string_view payload);
  void refuse(std::uint64_t id, const std::string& why, bool answer);
  void close();

  asio::io_context& io;
  asio::posix::stream_descriptor acceptor;
  asio::steady_timer retry;
  std::string path;
  std::function<std::unique_ptr<Stream>(int)> make_stream;
  ListenerOptions options;
  ListenerHandlers handlers;
  std::map<std::uint64_t, Pending> pending;
  std::uint64_t last_id = 0;
  bool waiting = false;
};

void Listener::Impl::wait() {
  if (waiting || !acceptor.is_open()) return;
  waiting = true;
  acceptor.async_wait(asio::posix::stream_descriptor::wait_read,
                      [weak = weak_from_this()](const error_code& ec) {
                        const auto self = weak.lock();
                        if (!self || ec) return;
                        self->waiting = false;
                        self->accept();
                      });
}

void Listener::Impl::accept() {
  while (acceptor.is_open()) {
    if (is_full() && !oldest_may_go()) return;
    Fd fd(accept_socket(acceptor.native_handle()));
    if (fd.get() >= 0) {
      if (is_full()) refuse(pending.begin()->first, no_room(options), false);
      admit(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return retry_after(accept_retry);
    } else if (errno == EAGAIN) {
      break;
    }  // otherwise this one connection broke before it was accepted
  }
  wait();
}

// True: the oldest connection has had its full_time, so it may be dropped for a new connection.
// Hundreds of silent connections must not keep out peers that would greet. False: its time is not
// over, and accepting is retried when it is.
bool Listener::Impl::oldest_may_go() {
  const auto since = std::chrono::steady_clock::now() - pending.begin()->second.since;
  if (since < options.full_time) retry_after(options.full_time - since);
  return since >= options.full_time;
}

void Listener::Impl::retry_after(asio::steady_timer::duration time) {
  retry.expires_after(time);
  retry.async_wait([weak = weak_from_this()](const error_code& ec) {
    const auto self = weak.lock();
    if (self && !ec) self->wait();
  });
}

void Listener::Impl::admit(Fd fd) {
  Peer peer;
  if (socket_family(fd.get()) == AF_UNIX) {
    const PeerCredentials credentials = peer_credentials(fd.get());
    peer = {fmt::format("pid {}", credentials.pid), credentials.pid};
    if (credentials.uid != ::geteuid())
      return handlers.refused(peer, fmt::format("a process of another user ({})", credentials.uid));
  } else {
    peer.name = peer_name(fd.get());
  }
  const std::uint64_t id = ++last_id;
  auto session = std::make_unique<Session>(io, make_stream(fd.release()));
  Pending& connection =
      pending.try_emplace(id, Pending{peer, std::move(session), asio::steady_timer(io)})
          .first->second;
  connection.session->handshake([weak = weak_from_this(), id](const Result<void>& handshake) {
    if (const auto self = weak.lock()) self->handshaken(id, handshake);
  });
  connection.deadline.expires_after(
      std::chrono::duration_cast<asio::steady_timer::duration>(options.greeting_time));
  connection.deadline.async_wait([weak = weak_from_this(), id](const error_code& ec) {
    const auto self = weak.lock();
    if (self && !ec)
      self->refuse(id, fmt::format("no greeting within {}", to_text(self->options.greeting_time)),
                   false);
  });
}

void Listener::Impl::handshaken(std::uint64_t id, const Result<void>& handshake) {
  const auto found = pending.find(id);
  if (found == pending.end()) return;
  if (!handshake)
    return refuse(id, fmt::format("no TLS with our key: {}", handshake.error().text), false);
  found->second.session->start(
      {.on_frame =
           [weak = weak_from_this(), id](WorkerId worker, std::string_view payload) {
             if (const auto self = weak.lock()) self->greeted(id, worker, payload);
           },
       .on_close =
           [weak = weak_from_this(), id](const std::string& reason) {
             if (const auto self = weak.lock())
               self->refuse(id, fmt::format("no greeting: {}", reason), false);
           }},
      wire::greeting_bytes_max);
}

void Listener::Impl::greeted(std::uint64_t id, WorkerId worker, std::string_view payload) {
  const auto found = pending.find(id);
  if (found == pending.end()) return;
  Result<wire::Hello> hello = wire::decode<wire::Hello>(payload);
  if (!hello || worker != WorkerId())
    return refuse(
        id, fmt::format("no greeting: {}", hello ? "a message came first" : hello.error().text),
        true);
  Pending& connection = found->second;
  connection.peer.identity = connection.session->identity();
  wire::Welcome welcome = options.welcome;
  welcome.host = hello->host;
  Result<void> admitted = check_hello(*hello, options);
  if (admitted && hello->proof != connection.session->proof(Side::dialler))
    admitted = Error{"its greeting does not prove our key"};
  if (admitted) admitted = handlers.admit(*hello, connection.peer, welcome);
  if (!admitted) return refuse(id, admitted.error().text, true);
  const Peer peer = connection.peer;
  std::unique_ptr<Session> session = std::move(connection.session);
  pending.erase(found);
  session->hold();
  hello->host = welcome.host;
  welcome.proof = session->proof(Side::listener);
  session->limit_sends(wire::welcome_bytes_max);
  session->send(WorkerId(), wire::encode(welcome));
  session->limit_sends(wire::frame_bytes_max);
  handlers.accepted(std::move(session), *hello, peer);
  wait();
}

void Listener::Impl::refuse(std::uint64_t id, const std::string& why, bool answer) {
  const auto found = pending.find(id);
  if (found == pending.end()) return;
  const Peer peer = found->second.peer;
  if (answer) {
    wire::Welcome refusal = options.welcome;
    refusal.refused = why;
    refusal.proof = found->second.session->proof(Side::listener);
    found->second.session->send(WorkerId(), wire::encode(refusal));
    found->second.session->close(refusal_flush_time);
  }
  pending.erase(found);
  handlers.refused(peer, why);
  wait();
}

void Listener::Impl::close() {
  error_code ignored;
  acceptor.close(ignored);
  retry.cancel();
  pending.clear();
  if (!path.empty()) (void)::unlink(path.c_str());
}

Listener::Listener(asio::io_context& io, int fd, std::string unlink_path,
                   std::function<std::unique_ptr<Stream>(int fd)> make_stream,
                   ListenerOptions options, ListenerHandlers handlers)
    : impl_(std::make_shared<Impl>(io, fd, std::move(unlink_path), std::move(make_stream),
                                   std::move(options), std::move(handlers))) {
  impl_->wait();
}

Listener::~Listener() { impl_->close(); }

std::uint16_t Listener::port() const { return local_port(impl_->acceptor.native_handle()); }

Result<std::unique_ptr<Listener>> listen_unix(asio::io_context& io, const std::string& path,
                                              ListenerOptions options, ListenerHandlers handlers) {
  const Result<int> fd = listen_unix_socket(path);
  if (!fd) return fd.error();
  return std::make_unique<Listener>(
      io, *fd, path, [&io](int connected) { return make_plain_stream(io, connected); },
      std::move(options), std::move(handlers));
}

}  // namespace elasticrun::net
