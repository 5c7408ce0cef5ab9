// Names to addresses, many at once, each with its own patience.
//
// Not Asio's resolver: it asks for one name after the other, so that one name server that does not
// answer would hold up all hosts; and it cannot be left while it waits.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <string>
#include <vector>

namespace elasticrun::launcher::ssh {

struct Addresses {
  int error = 0;                   // EAI_*
  std::vector<std::string> found;  // numeric, in the system's order of preference
};
// `family`: any, inet, inet6. Can be cancelled.
boost::asio::awaitable<Addresses> look_up(boost::asio::io_context& io, const std::string& name,
                                          const std::string& family);

}  // namespace elasticrun::launcher::ssh
