// Lines of host files as the users of other launchers write them: accepted where their meaning is
// clear, otherwise refused with one helpful line.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>

#include "launcher/hosts/hosts.hpp"

using namespace elasticrun;
using namespace elasticrun::launcher::hosts;

namespace {

std::string text_of(const Result<std::vector<Host>>& hosts) {
  if (!hosts) return hosts.error().text;
  std::string text;
  for (const Host& host : *hosts) {
    text += (text.empty() ? "" : " | ") + (host.user.empty() ? "" : host.user + "@") + host.name;
    if (host.slots > 0) text += fmt::format(":{}", host.slots);
    if (host.port > 0) text += fmt::format(" port={}", host.port);
  }
  return text;
}

struct Row {
  std::string notation;
  std::string text;    // one or more lines
  std::string result;  // the hosts, or the error
};

const std::string keys = "the keys are slots port user identity price type spare rack address";
const std::string after =
    "after the host come key=value: slots port user identity price type spare rack address";
const std::string letters = "is no host name; letters, digits, '-', '_' and '.' make one";
const std::string slots = "slots must be a number from 1 to 1024, not ";
const std::string range = "is no range; write it as in n[01-16,20]";

const Row rows[] = {
    {"Open MPI", "node1", "node1"},
    {"Open MPI", "node1 slots=4", "node1:4"},
    {"Open MPI", "node1 slots=4 max_slots=8", "node1:4"},
    {"Open MPI", "node1 slots=4 max-slots=8", "node1:4"},
    {"Open MPI", "node1   slots = 4\tmax_slots = 8", "node1:4"},
    {"Open MPI", "node1 max_slots=8", "node1"},
    {"Open MPI", "node1 cpu=2", "node1:2"},
    {"Open MPI", "node1 count=2 username=bob", "bob@node1:2"},
    {"Open MPI", "bob@node1 slots=2", "bob@node1:2"},
    {"Open MPI", "node1 sockets=2 cores=8 slots=16", "node1:16"},
    {"Open MPI", "10.0.0.1 slots=4 # rack 2", "10.0.0.1:4"},
    {"Open MPI", "# all\nnode1 slots=2\n\nnode2 slots=2\n", "node1:2 | node2:2"},
    {"Open MPI", "node1\nnode1", "node1:2"},
    {"Open MPI", "node1 slots=1\nnode1", "f:2: node1 is given twice; it was first given in line 1"},
    {"Open MPI", "node1\nnode1:2", "f:2: node1 is given twice; it was first given in line 1"},
    {"PBS, Torque", "node1\nnode1\nnode2\nnode2\n", "node1:2 | node2:2"},
    {"PBS, Torque", "node2\nnode1\nnode2\nnode3\nNode2\n", "node2:3 | node1:1 | node3:1"},
    {"PBS, Torque", "node1\nnode2\n", "node1 | node2"},
    {"LSF", "hostA.example.org\nhostA.example.org\nhostB\n", "hostA.example.org:2 | hostB:1"},
    {"Grid Engine", "node1 4 all.q@node1 UNDEFINED\nnode2.org 2 all.q@node2.org <NULL>\n",
     "node1:4 | node2.org:2"},
    {"Grid Engine", "node1 4 all.q@node1 0,0:0,1\n", "node1:4"},
    {"Grid Engine",
     "node1 4 all.q@node1 UNDEFINED\nnode2 1 all.q@node2 UNDEFINED\n"
     "node1 2 big.q@node1 UNDEFINED\n",
     "node1:6 | node2:1"},
    {"Grid Engine", "node1 0 all.q@node1 UNDEFINED\n", "f:1: " + slots + "'0'"},
    {"Grid Engine", "node1 4", "f:1: '4' is not understood; " + after},
    {"Open MPI", "node1 slots=many", "f:1: " + slots + "'many'"},
    {"Open MPI", "node1 slot=4", "f:1: unknown key 'slot'; " + keys},
    {"Open MPI", "+n0", "f:1: '+n0' " + letters},
    {"Open MPI", "+e:4", "f:1: '+e' " + letters},
    {"Open MPI", "^node1", "f:1: '^node1' " + letters},
    {"Open MPI rankfile", "rank 0=node1 slot=0", "f:1: unknown key '0'; " + keys},

    {"hydra", "node1:4", "node1:4"},
    {"hydra", "node1.cluster", "node1.cluster"},
    {"hydra", "node1:2 binding=user:0,3", "node1:2"},
    {"hydra", "node1:2 ifname=eth1", "node1:2"},
    {"hydra", "node1:2 user=bob", "bob@node1:2"},
    {"hydra", "node1:2 binding=core ifname=ib0 user=bob", "bob@node1:2"},
    {"hydra", "node1:2\nnode2:4 # big", "node1:2 | node2:4"},
    {"hydra", "node1:", "f:1: " + slots + "''"},
    {"hydra", "node1 : 2", "f:1: ':' is not understood; " + after},

    {"DeepSpeed", "worker-0 slots=4", "worker-0:4"},
    {"DeepSpeed", "worker-0    slots=4   # first", "worker-0:4"},
    {"DeepSpeed", "# here\nworker-0 slots=4\nworker-1 slots=2\n", "worker-0:4 | worker-1:2"},
    {"DeepSpeed", "worker-0 slots=4\r\nworker-1 slots=4\r\n", "worker-0:4 | worker-1:4"},
    {"DeepSpeed", "worker-0 slots=0", "f:1: " + slots + "'0'"},
    {"DeepSpeed", "worker-0 slots=4\nworker-0 slots=4",
     "f:2: worker-0 is given twice; it was first given in line 1"},
    {"DeepSpeed", "slots=4", "f:1: 'slots=4' " + letters},
    {"DeepSpeed", "worker-0 4", "f:1: '4' is not understood; " + after},

    {"Horovod", "host1 slots=4", "host1:4"},
    {"Horovod", "host1:4", "host1:4"},
    {"Horovod", "host1:4\nhost2\n", "host1:4 | host2"},
    {"Horovod", "host1:4,host2:4", "host1:4 | host2:4"},
    {"Horovod", "host1:4, host2:2", "host1:4 | host2:2"},
    {"Horovod", "host1 port=2222", "host1 port=2222"},
    {"Horovod", "host1:2222", "f:1: " + slots + "'2222'; write a port of ssh as port=..."},
    {"Horovod", "host1:4:2",
     "f:1: 'host1:4:2' has several colons; write IPv6 in brackets, as in "
     "[::1]:4"},
    {"Horovod", "host1:auto", "f:1: " + slots + "'auto'"},
    {"Horovod", "http://host1", "f:1: " + slots + "'//host1'"},

    {"pdsh", "n1,n2,n7", "n1 | n2 | n7"},
    {"pdsh", "n[1-3,7]", "n1 | n2 | n3 | n7"},
    {"pdsh", "n[08-10]", "n08 | n09 | n10"},
    {"pdsh", "n[1-2],m[1-2]", "n1 | n2 | m1 | m2"},
    {"pdsh", "n[1-2]-ib0", "n1-ib0 | n2-ib0"},
    {"pdsh", "r[1-2]n[1-2]", "r1n1 | r1n2 | r2n1 | r2n2"},
    {"pdsh", "bob@n[1-2]", "bob@n1 | bob@n2"},
    {"pdsh", "n1 , n2", "n1 | n2"},
    {"pdsh", "ssh:n1", "f:1: " + slots + "'n1'"},
    {"pdsh", "-n3", "f:1: '-n3' is no host name; it cannot begin with '-'"},
    {"pdsh", "n[1-4],-n3", "f:1: '-n3' is no host name; it cannot begin with '-'"},
    {"pdsh", "^hosts", "f:1: '^hosts' " + letters},
    {"pdsh", "/n[13]/", "f:1: '/n13/' " + letters},
    {"pdsh", "n1,,n2", "f:1: there is no host name"},
    {"pdsh", "n1,", "f:1: there is no host name"},
    {"pdsh", "n[3-1]", "f:1: the range '3-1' runs backwards; write [1-3]"},
    {"ClusterShell", "n[1-9/2]", "f:1: '[1-9/2]' " + range},
    {"ClusterShell", "@compute", "f:1: '' is no user name"},
    {"ClusterShell", "n[1-4]!n3", "f:1: 'n1!n3' " + letters},

    {"Slurm", "n[01-04,06]", "n01 | n02 | n03 | n04 | n06"},
    {"Slurm", "n[01-02],login1", "n01 | n02 | login1"},
    {"Slurm", "n[01-02],gpu[1-2] slots=8", "n01:8 | n02:8 | gpu1:8 | gpu2:8"},
    {"Slurm", "rack[0-1]n[1-2]", "rack0n1 | rack0n2 | rack1n1 | rack1n2"},
    {"Slurm", "n[099-101]", "n099 | n100 | n101"},
    {"Slurm", "n1,n2,n1", "f:1: n1 is given twice; it was first given in line 1"},
    {"Slurm", "n[1-2", "f:1: '[' without ']'; write ranges as in n[01-16,20]"},
    {"Slurm", "n[1-2]*4", "f:1: 'n1*4' " + letters},
    {"Slurm", "n1(x2)", "f:1: 'n1(x2)' " + letters},
    {"Slurm", "n{1..4}", "f:1: 'n{1..4}' " + letters},

    {"any", "[::1]", "::1"},
    {"any", "[2001:db8::7]:4", "2001:db8::7:4"},
    {"any", "bob@[fe80::1%eth0] slots=2", "bob@fe80::1%eth0:2"},
    {"any", "[::1],[::2]:4,n[1,2]", "::1 | ::2:4 | n1 | n2"},
    {"any", "::1", "f:1: '::1' has several colons; write IPv6 in brackets, as in [::1]:4"},
    {"any", "[::1]:2222", "f:1: " + slots + "'2222'; write a port of ssh as port=..."},
    {"any", "a:1,b:2 slots=4", "f:1: slots is given twice"},
    {"any", "a,b address=10.0.0.1",
     "f:1: several hosts cannot share one address; give each host its own line"},
    {"any", "n[1-40000],m[1-40000]", "f:1: the line gives more than 65536 hosts"},
    {"any", "\xef\xbb\xbfn1\r\n\r\n", "n1"},
};

}  // namespace

TEST_CASE("host files of other launchers are read or refused with a helpful error") {
  std::set<std::string> seen;
  for (const Row& row : rows) {
    CAPTURE(row.notation);
    CAPTURE(row.text);
    CHECK(seen.insert(row.text).second);
    CHECK(text_of(parse_hosts(row.text, "f")) == row.result);
  }
  CHECK(seen.size() >= 60);
}
