// See network.hpp.
#include "launcher/machine/network.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <boost/asio/ip/udp.hpp>
#include <memory>
#include <sstream>

namespace elasticrun::launcher::machine {
namespace ip = boost::asio::ip;
namespace {

ip::address address_of(const sockaddr& socket) {
  if (socket.sa_family == AF_INET)
    return ip::address_v4(ntohl(reinterpret_cast<const sockaddr_in&>(socket).sin_addr.s_addr));
  ip::address_v6::bytes_type bytes;
  std::ranges::copy(reinterpret_cast<const sockaddr_in6&>(socket).sin6_addr.s6_addr, bytes.begin());
  return ip::address_v6(bytes);
}

bool link_local(const ip::address& address) {
  if (address.is_v6()) return address.to_v6().is_link_local();
  return (address.to_v4().to_uint() >> 16) == 0xa9fe;  // 169.254/16, RFC 3927
}

// Container bridges have the same address on every host, and lead to no other host.
bool bridge_of_containers(const std::string& interface) {
  constexpr std::string_view names[] = {"docker", "br-", "virbr", "cni", "veth", "lxc"};
  return std::ranges::any_of(names, [&](auto name) { return interface.starts_with(name); });
}

bool in_network(const ip::address& address, const std::string& cidr) {
  boost::system::error_code ec4, ec6;
  const auto v4 = ip::make_network_v4(cidr, ec4);
  const auto v6 = ip::make_network_v6(cidr, ec6);
  if (address.is_v4() && !ec4)
    return v4.canonical() == ip::network_v4(address.to_v4(), v4.prefix_length()).canonical();
  if (address.is_v6() && !ec6)
    return v6.canonical() == ip::network_v6(address.to_v6(), v6.prefix_length()).canonical();
  return false;
}

bool wished(const OwnAddress& own, const ip::address& address, std::string_view wish) {
  return wish.empty() || own.interface == wish || own.address == wish ||
         in_network(address, std::string(wish));
}

int rank_of(const OwnAddress& own, const ip::address& address) {
  return (bridge_of_containers(own.interface) ? 2 : 0) + (address.is_v6() ? 1 : 0);
}

}  // namespace

std::vector<OwnAddress> own_addresses() {
  std::vector<OwnAddress> found;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  for (const ifaddrs* one = first; one; one = one->ifa_next) {
    const bool up = one->ifa_addr && (one->ifa_flags & IFF_UP) != 0;
    if (!up || (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6))
      continue;
    const ip::address address = address_of(*one->ifa_addr);
    found.push_back({one->ifa_name, address.to_string(), address.is_loopback()});
  }
  return found;
}

std::string interface_of(const std::vector<OwnAddress>& own, std::string_view address) {
  const auto found = std::ranges::find(own, address, &OwnAddress::address);
  return found == own.end() ? std::string() : found->interface;
}

Result<std::vector<std::string>> addresses_for_others(const std::vector<OwnAddress>& own,
                                                      std::string_view wish) {
  std::vector<std::pair<int, std::string>> ranked;
  std::string there_are;
  for (const OwnAddress& one : own) {
    boost::system::error_code ec;
    const auto address = ip::make_address(one.address, ec);
    if (ec || one.loopback || address.is_loopback() || link_local(address)) continue;
    there_are += fmt::format("{}{} {}", there_are.empty() ? "" : ", ", one.interface, one.address);
    if (wished(one, address, wish)) ranked.emplace_back(rank_of(one, address), one.address);
  }
  if (ranked.empty() && is_loopback(wish))
    return Error{
        fmt::format("'{}' is the loopback, which other hosts cannot reach; name an interface, an "
                    "address or a network",
                    wish)};
  if (ranked.empty() && !wish.empty())
    return Error{fmt::format("'{}' is no interface, address or network of this machine; it has {}",
                             wish, there_are.empty() ? "none but the loopback" : there_are)};
  std::ranges::stable_sort(ranked, {}, &std::pair<int, std::string>::first);
  std::vector<std::string> addresses;
  for (auto& [rank, address] : ranked) addresses.push_back(std::move(address));
  return addresses;
}

std::string data_address(const std::string& towards_controller, std::string_view ssh_connection,
                         const std::vector<std::string>& for_others) {
  if (!towards_controller.empty() && !is_loopback(towards_controller)) return towards_controller;
  // "client port server port": the third word is our address.
  std::istringstream words{std::string(ssh_connection)};
  std::string reached;
  for (int word = 0; word < 3; ++word) words >> reached;
  if (words && !is_loopback(reached)) return reached;
  return for_others.empty() ? "127.0.0.1" : for_others.front();
}

bool is_loopback(std::string_view address) {
  boost::system::error_code ec;
  const auto parsed = ip::make_address(std::string(address), ec);
  return !ec && parsed.is_loopback();
}

std::string source_towards(const std::string& address) {
  boost::system::error_code ec;
  const auto there = ip::make_address(address, ec);
  if (ec) return {};
  const ip::udp::endpoint to(there, 9);
  const int fd = ::socket(to.data()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  const bool known = fd >= 0 && ::connect(fd, to.data(), static_cast<socklen_t>(to.size())) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&from), &size) == 0;
  if (fd >= 0) ::close(fd);
  return known ? address_of(reinterpret_cast<const sockaddr&>(from)).to_string() : std::string();
}

}  // namespace elasticrun::launcher::machine
