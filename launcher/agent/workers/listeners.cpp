// See listeners.hpp.
#include "launcher/agent/workers/listeners.hpp"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

bool listens(int netlink, int family, std::uint16_t port) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 question;
  } request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.question.sdiag_family = static_cast<std::uint8_t>(family);
  request.question.sdiag_protocol = IPPROTO_TCP;
  request.question.idiag_states = 1u << TCP_LISTEN;
  request.question.id.idiag_sport = htons(port);
  if (::send(netlink, &request, sizeof request, 0) < 0) return false;
  bool found = false;
  while (true) {
    alignas(nlmsghdr) std::array<char, 8192> answer{};
    const ssize_t bytes = ::recv(netlink, answer.data(), answer.size(), 0);
    if (bytes < static_cast<ssize_t>(sizeof(nlmsghdr))) return found;
    nlmsghdr header{};
    for (std::size_t at = 0; at + sizeof header <= static_cast<std::size_t>(bytes);
         at += NLMSG_ALIGN(header.nlmsg_len)) {
      std::memcpy(&header, answer.data() + at, sizeof header);
      if (header.nlmsg_len < sizeof header || header.nlmsg_type == NLMSG_DONE ||
          header.nlmsg_type == NLMSG_ERROR)
        return found;
      found = true;  // only sockets of that port are listed
    }
  }
}

}  // namespace

bool listens(std::uint16_t port) {
  const net::Fd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (netlink.get() < 0) return false;
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  (void)::setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return listens(netlink.get(), AF_INET, port) || listens(netlink.get(), AF_INET6, port);
}

}  // namespace elasticrun::launcher::agent::workers
