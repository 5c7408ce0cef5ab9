// How much this process has sent, for ssh_driver. A file of its own, because <linux/tcp.h>, which
// knows fields that the library's header lacks, cannot be included together with that one.
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdint>

std::uint64_t written_to_connections();

// The bytes that were written so far to the open TCP connections, sent or not: tcp(7).
std::uint64_t written_to_connections() {
  std::uint64_t bytes = 0;
  for (int fd = 3; fd < 64; ++fd) {
    tcp_info info{};
    socklen_t size = sizeof info;
    int not_sent = 0;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    if (::ioctl(fd, SIOCOUTQNSD, &not_sent) != 0) continue;
    bytes += info.tcpi_bytes_sent + static_cast<std::uint64_t>(not_sent);
  }
  return bytes;
}
