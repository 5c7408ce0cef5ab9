// The log files stay in their folder, whatever a host is called.
#include "cli/run/log_name.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using namespace elasticrun::cli;
using namespace elasticrun::cli::run;

TEST_CASE("names of log files have no special characters of a host name") {
  const struct {
    std::string host, name;
  } rows[] = {
      {"localhost", "localhost"},
      {"node-1.rack_2.example.org", "node-1.rack_2.example.org"},
      {"fe80::1", "fe80::1"},
      {"../../../elsewhere/x", "_._.._.._elsewhere_x"},
      {"/etc/cron.d/x", "_etc_cron.d_x"},
      {"..", "_."},
      {".hidden", "_hidden"},
      {"-rf", "_rf"},
      {"", "_"},
      {"a b\tc\nd\re", "a_b_c_d_e"},
      {std::string("a\0b", 3), "a_b"},
      {"\x1b[31m", "__31m"},
      {"k\xc3\xb6ln", "k__ln"},
      {"$(reboot);`x`|&*?<>\\\"'~#!", "__reboot___x_____________"},
      {std::string(300, 'x'), std::string(200, 'x')},
  };
  for (const auto& row : rows) {
    CAPTURE(row.host);
    const job::report::WorkerLabel label{WorkerId(7), HostId(3), row.host, 2};
    CHECK(log_name(label, 1) == row.name + ".2.worker7.out");
    CHECK(log_name(label, 2) == row.name + ".2.worker7.err");
  }
}
