// The host file: which machines a job may use, in rank order.
//
// Users already have such a file, written for Open MPI, MPICH (hydra), Horovod or DeepSpeed. These
// dialects differ little, so one grammar reads them all and no file has to be converted:
//
//     [user@]host[:slots][,...] [key=value ...]     # comment
//
// Everything here is pure: text in, hosts or one error out. The caller reads the file, and reads it
// again when it changes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::launcher::hosts {

inline constexpr int slots_per_host_max = 1024;
inline constexpr std::size_t hosts_max = 65536;           // after ranges are expanded
inline constexpr std::size_t host_line_bytes_max = 8192;  // limit for one line of a host file

struct Host {
  std::string name;        // as written; IPv6 without its brackets
  std::string user;        // account for ssh; empty: the caller's
  std::string identity;    // private key file for ssh; empty: ssh's own choice
  std::string address;     // what the other hosts dial; empty: the name
  std::string type;        // kind of machine, for the user and for policies
  std::string rack;        // hosts in one rack fail together
  double price = 0;        // per hour, in any currency; 0: not given
  int slots = 0;           // number of workers the host takes; 0: not given
  int slots_max = 0;       // the most slots the job uses on this host (--include); 0: all
  std::uint16_t port = 0;  // ssh port; 0: not given
  bool spare = false;      // held in reserve, not in the first world
  int line = 0;            // where it was given: line of the file or item of the list, from 1

  bool operator==(const Host&) const = default;
};

// Parses the text of a host file. `file` is its name in errors: "hosts.txt:7: ...".
Result<std::vector<Host>> parse_hosts(std::string_view text, std::string_view file);
// Parses a list such as "a:4,b:4": the same grammar, with commas between the items. `where` begins
// every error.
Result<std::vector<Host>> parse_host_list(std::string_view text, std::string_view where);

// Whether the text ends at a line end. A file that is being written may end in the middle of a
// line, and reading "n12" of "n123" would remove one host and add another. A file that is read
// again is used only when this is true.
bool is_complete(std::string_view text);

// The key under which two entries are the same host: name and ssh port. The port is part of it
// because several machines may share one name with different ssh ports (containers, tunnels).
std::string key_of(const Host& host);

// How the machine we run on may be named in a host entry; see machine.hpp.
struct OwnNames {
  std::vector<std::string> names;  // host names and addresses
  std::string user;
};
// True when the host is this machine, so that no ssh is needed. False for an entry with an ssh
// port, a key or another user: such an entry asks for ssh, even to this machine.
bool is_this_machine(const Host& host, const OwnNames& own);

}  // namespace elasticrun::launcher::hosts
