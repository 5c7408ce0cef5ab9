// See name_lookup.hpp. One thread for each lookup; few are under way at once. A thread whose result
// is not wanted any more ends by itself, and does not keep the process from ending.
#include "launcher/ssh/name_lookup.hpp"

#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <system_error>
#include <thread>

#include "net/sockets.hpp"

namespace elasticrun::launcher::ssh {
namespace {

namespace asio = boost::asio;

struct Lookup {
  std::string name;
  addrinfo hints{};
  addrinfo* list = nullptr;
  std::atomic<int> outcome{EAI_AGAIN};
  net::Fd done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  ~Lookup() {
    if (list) ::freeaddrinfo(list);
  }
};

void run(const std::shared_ptr<Lookup>& lookup) {
  lookup->outcome = ::getaddrinfo(lookup->name.c_str(), nullptr, &lookup->hints, &lookup->list);
  const std::uint64_t one = 1;
  (void)!::write(lookup->done.get(), &one, sizeof one);
}

Addresses addresses_of(const addrinfo* list) {
  Addresses addresses;
  for (; list; list = list->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0)
      addresses.found.emplace_back(text);
  }
  if (addresses.found.empty()) addresses.error = EAI_NODATA;
  return addresses;
}

addrinfo hints_for(const std::string& family, int flags) {
  addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_family = family == "inet" ? AF_INET : family == "inet6" ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  return hints;
}

}  // namespace

asio::awaitable<Addresses> look_up(asio::io_context& io, const std::string& name,
                                   const std::string& family) {
  const addrinfo numeric = hints_for(family, AI_NUMERICHOST);
  addrinfo* list = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &numeric, &list) == 0) {
    Addresses addresses = addresses_of(list);
    ::freeaddrinfo(list);
    co_return addresses;
  }
  const auto lookup = std::make_shared<Lookup>();
  lookup->name = name;
  lookup->hints = hints_for(family, AI_ADDRCONFIG);
  asio::posix::stream_descriptor done(io, ::dup(lookup->done.get()));
  try {
    std::thread lookup_thread(run, lookup);
    lookup_thread.detach();
  } catch (const std::system_error&) {  // no more threads
    co_return Addresses{EAI_AGAIN, {}};
  }
  boost::system::error_code error;
  co_await done.async_wait(asio::posix::stream_descriptor::wait_read,
                           asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return Addresses{EAI_AGAIN, {}};
  if (const int failed = lookup->outcome; failed != 0) co_return Addresses{failed, {}};
  co_return addresses_of(lookup->list);
}

}  // namespace elasticrun::launcher::ssh
