// The host file: which machines a job may use, in the order of their ranks.
//
// People already have such a file, written for Open MPI, MPICH (hydra), Horovod or DeepSpeed. These
// dialects differ little, so one grammar reads them all and nobody has to convert anything:
//
//     [user@]host[:slots][,...] [key=value ...]     # comment
//
// Everything here is pure: text in, hosts or one error out. Reading the file, and reading it again
// when it changes, is the caller's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::launcher::hosts {

inline constexpr int slots_per_host_max = 1024;
inline constexpr std::size_t hosts_max = 65536;           // after ranges are written out
inline constexpr std::size_t host_line_bytes_max = 8192;  // one line of a host file

struct Host {
  std::string name;        // as written; IPv6 without its brackets
  std::string user;        // empty: the caller's
  std::string identity;    // private key file for ssh; empty: ssh's own choice
  std::string address;     // what the other hosts dial; empty: the name
  std::string type;        // kind of machine, for a person and for policies
  std::string rack;        // hosts of one rack fail together
  double price = 0;        // per hour, in whatever currency; 0: not said
  int slots = 0;           // workers it takes; 0: not said
  int slots_max = 0;       // of them the job takes so many at most; 0: all
  std::uint16_t port = 0;  // of ssh; 0: not said
  bool spare = false;      // held ready, not in the first world
  int line = 0;            // where it was said: line of the file, or item of the list, from 1

  bool operator==(const Host&) const = default;
};

// `file` is what errors call it: "hosts.txt:7: ...".
Result<std::vector<Host>> parse_hosts(std::string_view text, std::string_view file);
// "a:4,b:4": the same grammar, items separated by commas; `where` begins every error.
Result<std::vector<Host>> parse_host_list(std::string_view text, std::string_view where);

// A file that somebody is writing ends in the middle of a line; "n12" of "n123" would remove one
// host and add another. A file that is read again counts only when this is true.
bool is_complete(std::string_view text);

// What makes two entries the same host. Several machines may hide behind one name with different
// ssh ports (containers, tunnels), so the port belongs to it.
std::string key_of(const Host& host);

// What the machine we run on is called; see machine.hpp.
struct OwnNames {
  std::vector<std::string> names;  // host names and addresses
  std::string user;
};
// True when the host is this machine, so that no ssh is needed. An entry with an ssh port, a key
// or another user asks for ssh and gets it, even to this machine.
bool is_this_machine(const Host& host, const OwnNames& own);

}  // namespace elasticrun::launcher::hosts
