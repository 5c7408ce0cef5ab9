// The kernel's tables of sockets.
#include "launcher/agent/workers/listeners.hpp"

#include <doctest/doctest.h>

using elasticrun::launcher::agent::workers::listens;

TEST_CASE("a port is listened to when a socket of it is in that state") {
  const std::string_view table =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
      "   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
      "   1: 0100007F:7530 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0\n";
  CHECK(listens(table, 22));
  CHECK_FALSE(listens(table, 30000));  // connected
  CHECK_FALSE(listens(table, 8080));   // the other end's
  CHECK_FALSE(listens(table, 0));
  const std::string_view table6 =
      "  sl  local_address                         remote_address                        st\n"
      "   0: 00000000000000000000000000000000:7530 00000000000000000000000000000000:0000 0A 0\n";
  CHECK(listens(table6, 30000));
  CHECK_FALSE(listens(table6, 22));
}

TEST_CASE("a table that is no table says nothing") {
  for (const std::string_view text : {"", "\n\n", ":", "0: ", "0: :0016 ", "0: :0016 x"})
    CHECK_FALSE(listens(text, 22));
}
