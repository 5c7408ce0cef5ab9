// See peer_connector.hpp. The higher rank of two dials the lower one, so a newcomer, which gets the
// highest rank, finds out by itself which peers it cannot reach.
#include "worker/collective/peer_connector.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

namespace elasticrun::worker::collective {
namespace {

// A pending that has not greeted within this time is no member: a greeting is one small packet.
constexpr std::chrono::seconds greeting_time{5};
// How long to wait for more errors: a rank that can reach no peer learns it of all of them at about
// the same time.
constexpr std::chrono::milliseconds unreachable_time{20};
// Most connections accepted besides the peers'. More wait in the kernel's queue.
constexpr std::size_t pending_max = 256;

struct Place {
  std::string address;
  std::uint16_t port = 0;
};

std::optional<Place> parse(const std::string& published) {
  const std::size_t slash = published.find('/');
  if (slash == std::string::npos || published.size() != slash + 5) return std::nullopt;
  Place place{published.substr(0, slash)};
  const char* const digits = published.data() + slash + 1;
  const auto parsed = std::from_chars(digits, digits + 4, place.port, 16);
  if (parsed.ptr != digits + 4 || place.port == 0) return std::nullopt;
  return place;
}

// The error of a connection being made; 0: connected.
int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// Whether the cause of this error is on this machine (short of something, or without a network) and
// not at a peer.
bool is_ours(int error) {
  constexpr int ours[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL, ENETUNREACH, ENETDOWN};
  return std::ranges::count(ours, error) > 0;
}

enum class Reading { more, whole, ended };

// Reads until `bytes` has `wanted` bytes, and none of what follows them on the connection.
Reading read_into(std::string& bytes, std::size_t wanted, int fd) {
  char buffer[PeerGreeting::greeting_bytes];
  while (bytes.size() < wanted) {
    const ssize_t n = ::recv(fd, buffer, std::min(sizeof buffer, wanted - bytes.size()), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return Reading::more;
    if (n <= 0) return Reading::ended;
    bytes.append(buffer, static_cast<std::size_t>(n));
  }
  return Reading::whole;
}

// Sends everything in one call: a connection that has just been made takes some fifty bytes at
// once.
bool send_all(int fd, std::string_view bytes) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes);
}

}  // namespace

PeerConnector::PeerConnector(const GroupSpec& spec, const std::string& address)
    : spec_(spec),
      address_(address),
      greeting_(spec.secret, spec.generation),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      peers_(static_cast<std::size_t>(spec.size)) {
  Result<int> listening = net::listen_tcp(address, 0);
  if (!listening || wake_.get() < 0) {
    failed(spec_.rank, false,
           listening ? "cannot make a socket: " + net::error_text(errno) : listening.error().text);
    give_up();
  }
  listener_ = net::Fd(*listening);
  port_ = net::local_port(listener_.get());
  missing_.insert(spec_.neighbours.begin(), spec_.neighbours.end());
  if (spec_.neighbours.empty())
    for (int rank = 0; rank < spec_.size; ++rank) missing_.insert(rank);
  missing_.erase(spec_.rank);
}

PeerConnector::~PeerConnector() = default;

std::string PeerConnector::published() const { return fmt::format("{}/{:04x}", address_, port_); }

std::vector<net::Fd> PeerConnector::connect(const std::vector<std::string>& published) {
  const auto deadline = Clock::now() + spec_.connect_limit;
  places_ = published;
  for (const int rank : missing())
    if (rank < spec_.rank) dial(rank, published[static_cast<std::size_t>(rank)]);
  while (!missing().empty() && troubles_.empty() && Clock::now() < deadline) wait(deadline);
  if (!missing().empty() && troubles_.empty()) out_of_time();
  if (!troubles_.empty()) {
    const auto until = Clock::now() + unreachable_time;
    while (unreachable_ && !dials_.empty() && Clock::now() < until) wait(until);
    give_up();
  }
  listener_ = net::Fd();
  pending_.clear();
  return std::move(peers_);
}

void PeerConnector::abort() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

std::vector<int> PeerConnector::missing() const {
  const std::lock_guard lock(mutex_);
  return {missing_.begin(), missing_.end()};
}

void PeerConnector::dial(int rank, const std::string& published) {
  const auto place = parse(published);
  if (!place)
    return failed(rank, false, fmt::format("it published no address: '{:.80}'", published));
  Result<int> socket = net::connect_tcp(place->address, place->port);
  if (!socket) return cannot_dial(rank, socket.error().number, socket.error().text);
  dials_.push_back(
      {rank, net::Fd(*socket), net::host_and_port(place->address, place->port), false, {}});
}

// Waits until something has happened, at most for a second: then slow pending connections are
// checked.
void PeerConnector::wait(Clock::time_point until) {
  std::vector<pollfd> waiting{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  for (const Dial& dial : dials_)
    waiting.push_back({dial.socket.get(), static_cast<short>(dial.greeted ? POLLIN : POLLOUT), 0});
  for (const Pending& pending : pending_) waiting.push_back({pending.socket.get(), POLLIN, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  ::poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<long>(left, 0, 1000)));
  if (waiting[0].revents != 0) throw GroupBroken("the group was aborted");

  auto state = waiting.begin() + 2;
  for (Dial& dial : dials_)
    if ((state++)->revents != 0) advance(dial);
  for (Pending& pending : pending_)
    if ((state++)->revents != 0) advance(pending);
  if (waiting[1].revents != 0) accept_guests();
  turn_away_slow_guests();
  const auto is_over = [](const auto& one) { return one.socket.get() < 0; };
  std::erase_if(dials_, is_over);
  std::erase_if(pending_, is_over);
}

void PeerConnector::accept_guests() {
  while (pending_.size() < pending_max + missing_.size()) {
    net::Fd socket(net::accept_socket(listener_.get()));
    if (socket.get() < 0) return;
    pending_.push_back({std::move(socket), {}, Clock::now()});
  }
}

void PeerConnector::turn_away(Pending& pending) {
  pending.socket = net::Fd();
  ++rejected_;
}

void PeerConnector::turn_away_slow_guests() {
  const auto now = Clock::now();
  for (Pending& pending : pending_)
    if (pending.socket.get() >= 0 && now - pending.since >= greeting_time) turn_away(pending);
}

void PeerConnector::advance(Pending& pending) {
  const Rank own(spec_.rank);
  const Reading reading =
      read_into(pending.bytes, PeerGreeting::greeting_bytes, pending.socket.get());
  if (reading == Reading::more) return;
  const auto from = greeting_.sender(pending.bytes, own);
  // Lower ranks do not dial this one but are dialled, and each neighbour comes once.
  if (!from || *from <= own || !missing_.contains(from->value)) return turn_away(pending);
  if (!send_all(pending.socket.get(), greeting_.answer(*from, own)))
    return failed(from->value, true, "it hung up before it was answered");
  connected(from->value, std::move(pending.socket));
}

void PeerConnector::advance(Dial& dial) {
  const Rank own(spec_.rank), peer(dial.rank);
  net::Fd socket = std::move(dial.socket);  // moved back if the dial goes on
  if (!dial.greeted) {
    if (const int error = connect_error(socket.get()))
      return cannot_dial(
          dial.rank, error,
          fmt::format("cannot connect to {}: {}", dial.place, net::error_text(error)));
    dial.greeted = send_all(socket.get(), greeting_.greeting(own, peer));
    if (!dial.greeted)
      return failed(dial.rank, true, dial.place + " hung up before it was greeted");
    dial.socket = std::move(socket);
    return;
  }
  const Reading reading = read_into(dial.bytes, PeerGreeting::answer_bytes, socket.get());
  if (reading == Reading::more) {
    dial.socket = std::move(socket);
    return;
  }
  if (reading == Reading::ended)
    return failed(dial.rank, true, dial.place + " hung up when it was greeted");
  if (!same_tag(dial.bytes, greeting_.answer(own, peer)))
    return failed(dial.rank, false, dial.place + " answers, but is no member of this world");
  connected(dial.rank, std::move(socket));
}

void PeerConnector::connected(int rank, net::Fd socket) {
  peers_[static_cast<std::size_t>(rank)] = std::move(socket);
  const std::lock_guard lock(mutex_);
  missing_.erase(rank);
}

void PeerConnector::failed(int rank, bool hung_up, std::string why) {
  troubles_.push_back({rank, hung_up, std::move(why)});
}

// A dead peer refuses at once, and then there is no reason to wait for more errors. When a peer
// cannot be reached, the cause may be at the peer or here: whether other peers cannot be reached
// either shows which.
void PeerConnector::cannot_dial(int rank, int error, std::string why) {
  const bool ours = is_ours(error);
  unreachable_ |= !ours && error != ECONNREFUSED && error != ECONNRESET;
  // The peer is dead, or has given up this world.
  const bool closed = error == ECONNRESET || error == ECONNREFUSED;
  failed(ours ? spec_.rank : rank, closed, std::move(why));
}

void PeerConnector::give_up() const {
  const PeerTrouble& first = troubles_.front();
  const std::string who = first.rank == spec_.rank ? "here" : fmt::format("rank {}", first.rank);
  throw GroupBroken(fmt::format("{}: {}", who, first.reason), troubles_);
}

void PeerConnector::out_of_time() {
  for (const int rank : missing()) {
    const auto place = parse(places_[static_cast<std::size_t>(rank)]);
    const std::string where = place ? net::host_and_port(place->address, place->port) : "nowhere";
    const bool dialled = rank < spec_.rank;
    const char* const what = dialled ? "{} did not answer within {}" : "{} did not dial within {}";
    failed(rank, false, fmt::format(fmt::runtime(what), where, to_text(spec_.connect_limit)));
  }
}

}  // namespace elasticrun::worker::collective
