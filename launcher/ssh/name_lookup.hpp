// Looks up the addresses of names, many at once, each with a patience of its own: each lookup can
// be cancelled.
//
// Not Asio's resolver: it looks up one name after the other, so that one name server that does not
// answer would hold up all hosts, and a lookup cannot be abandoned while it waits.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <string>
#include <vector>

namespace elasticrun::launcher::ssh {

struct Addresses {
  int error = 0;                   // EAI_*; 0: found
  std::vector<std::string> found;  // numeric, in the system's order of preference
};
// `family`: any, inet, inet6. Can be cancelled.
boost::asio::awaitable<Addresses> look_up(boost::asio::io_context& io, const std::string& name,
                                          const std::string& family);

}  // namespace elasticrun::launcher::ssh
