// See name_lookup.hpp. The C library's asynchronous lookups do the work in threads of its own; one
// that nobody waits for any more ends by itself, and does not keep the process from ending.
#include "launcher/ssh/name_lookup.hpp"

#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <memory>
#include <utility>

#include "net/sockets.hpp"

namespace elasticrun::launcher {
namespace {

namespace asio = boost::asio;

struct Lookup {
  std::string name;
  addrinfo hints{};
  gaicb request{};
  net::Fd done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::shared_ptr<Lookup> self;  // until the C library has finished with it

  ~Lookup() {
    if (request.ar_result) ::freeaddrinfo(request.ar_result);
  }
};

// In a thread of the C library.
void finished(sigval value) {
  const auto lookup = std::move(static_cast<Lookup*>(value.sival_ptr)->self);
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
  lookup->request.ar_name = lookup->name.c_str();
  lookup->request.ar_request = &lookup->hints;
  lookup->self = lookup;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = finished;
  event.sigev_value.sival_ptr = lookup.get();
  asio::posix::stream_descriptor done(io, ::dup(lookup->done.get()));
  gaicb* requests[] = {&lookup->request};
  if (const int error = ::getaddrinfo_a(GAI_NOWAIT, requests, 1, &event); error != 0) {
    lookup->self.reset();
    co_return Addresses{error, {}};
  }
  boost::system::error_code error;
  co_await done.async_wait(asio::posix::stream_descriptor::wait_read,
                           asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return Addresses{EAI_AGAIN, {}};
  if (const int failed = ::gai_error(&lookup->request); failed != 0)
    co_return Addresses{failed, {}};
  co_return addresses_of(lookup->request.ar_result);
}

}  // namespace elasticrun::launcher
