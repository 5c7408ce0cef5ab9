// The yardstick for recovery: how fast a program written by hand against Gloo can be when it does
// only the minimum after a member is killed.
//
//     bench_bare_gloo WORKERS STEP_US GRADIENT_KB RUNS
//
// Workers are forked; they sleep STEP_US and all-reduce, step after step. The parent kills one in
// the middle of a step. A survivor whose all-reduce throws drops its context and sends new
// addresses to the parent, which answers all survivors at once; they connect and make a step. It
// prints one line per run: the milliseconds from the kill to the first all-reduce of the smaller
// world.
//
// Nothing is decided, checked or agreed here; there is no state, no progress and no replacement.
// Now and then a run takes ten seconds, because one of its timeouts expires. So this is a yardstick
// and not an alternative, and only the median counts.
#include <gloo/allreduce.h>
#include <gloo/context.h>
#include <gloo/math.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Device = std::shared_ptr<gloo::transport::Device>;

void check(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::_Exit(1);
}

// ---------------------------------------------------------------- messages over a socket pair

void write_all(int fd, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(fd, at, bytes, MSG_NOSIGNAL);
    check(n > 0, "send");
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void read_all(int fd, void* data, std::size_t bytes) {
  check(::recv(fd, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes), "recv");
}

void put(int fd, const std::string& text) {
  const auto bytes = static_cast<std::uint32_t>(text.size());
  write_all(fd, &bytes, sizeof bytes);
  write_all(fd, text.data(), text.size());
}

std::string get(int fd) {
  std::uint32_t bytes = 0;
  read_all(fd, &bytes, sizeof bytes);
  std::string text(bytes, '\0');
  if (bytes > 0) read_all(fd, text.data(), bytes);
  return text;
}

// ---------------------------------------------------------------- a worker

class Mesh final : public gloo::Context {
 public:
  Mesh(Device device, std::shared_ptr<gloo::transport::Context> transport)
      : gloo::Context(transport->rank, transport->size) {
    device_ = std::move(device);
    transportContext_ = std::move(transport);
  }
};

// Sends this rank's addresses to the parent, receives those of all members, and connects to them.
std::shared_ptr<gloo::Context> form(Device& device, int fd, int rank, int size) {
  std::shared_ptr<gloo::transport::Context> transport = device->createContext(rank, size);
  transport->setTimeout(std::chrono::seconds(2));
  std::string own;
  std::size_t length = 0;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const std::vector<char> address = transport->createPair(peer)->address().bytes();
    length = address.size();
    own.append(address.begin(), address.end());
  }
  put(fd, own);
  for (int peer = 0; peer < size; ++peer) {
    const std::string theirs = get(fd);
    if (peer == rank) continue;
    const auto place = length * static_cast<std::size_t>(rank < peer ? rank : rank - 1);
    transport->getPair(peer)->connect(
        {theirs.begin() + static_cast<std::ptrdiff_t>(place),
         theirs.begin() + static_cast<std::ptrdiff_t>(place + length)});
  }
  auto mesh = std::make_shared<Mesh>(device, transport);
  mesh->setTimeout(std::chrono::seconds(10));
  return mesh;
}

struct Work {
  std::chrono::microseconds compute{};
  std::vector<float> gradients;

  void step(const std::shared_ptr<gloo::Context>& mesh) {
    std::this_thread::sleep_for(compute);
    gloo::AllreduceOptions options(mesh);
    options.setOutput(gradients.data(), gradients.size());
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  }
};

// Steps until the first step after the loss of `victim` is done.
void work(int fd, int rank, int size, int victim, Work work) {
  Device device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  std::shared_ptr<gloo::Context> mesh = form(device, fd, rank, size);
  constexpr int warm_up = 20;
  try {
    for (int i = 0;; ++i) {
      work.step(mesh);
      if (i == warm_up) put(fd, "warm");
    }
  } catch (const gloo::IoException&) {
  }
  mesh.reset();
  mesh = form(device, fd, rank < victim ? rank : rank - 1, size - 1);
  work.step(mesh);
  const Clock::time_point done = Clock::now();
  write_all(fd, &done, sizeof done);
  char byte = 0;
  check(::recv(fd, &byte, 1, 0) == 0, "recv");  // the parent has all stamps: no early hang-up
}

// ---------------------------------------------------------------- the parent

struct Child {
  pid_t pid = -1;
  int fd = -1;
};

Child start(int rank, int size, int victim, const Work& load, const std::vector<Child>& others) {
  int fds[2];
  check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "socketpair");
  const pid_t pid = ::fork();
  check(pid >= 0, "fork");
  if (pid > 0) {
    ::close(fds[1]);
    return {pid, fds[0]};
  }
  ::close(fds[0]);
  for (const Child& other : others) ::close(other.fd);
  try {
    work(fds[1], rank, size, victim, load);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_bare_gloo: rank %d: %s\n", rank, error.what());
    std::_Exit(1);
  }
  std::_Exit(0);
}

void exchange(const std::vector<Child>& members) {
  std::vector<std::string> all;
  for (const Child& member : members) all.push_back(get(member.fd));
  for (const Child& member : members)
    for (const std::string& addresses : all) put(member.fd, addresses);
}

double run(int size, int victim, const Work& load) {
  std::vector<Child> members;
  for (int rank = 0; rank < size; ++rank)
    members.push_back(start(rank, size, victim, load, members));
  exchange(members);
  for (const Child& member : members) get(member.fd);  // warm
  std::this_thread::sleep_for(load.compute / 2);       // the middle of a step
  const Child lost = members[static_cast<std::size_t>(victim)];
  members.erase(members.begin() + victim);
  const Clock::time_point killed = Clock::now();
  ::kill(lost.pid, SIGKILL);
  exchange(members);
  Clock::time_point first = Clock::time_point::max();
  for (const Child& member : members) {
    Clock::time_point done;
    read_all(member.fd, &done, sizeof done);
    first = std::min(first, done);
  }
  ::close(lost.fd);
  ::waitpid(lost.pid, nullptr, 0);
  for (const Child& member : members) ::close(member.fd);
  for (const Child& member : members) {
    int status = 0;
    check(::waitpid(member.pid, &status, 0) == member.pid && status == 0, "a worker failed");
  }
  return std::chrono::duration<double, std::milli>(first - killed).count();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fprintf(stderr, "bench_bare_gloo WORKERS STEP_US GRADIENT_KB RUNS\n");
    return 2;
  }
  const int size = std::atoi(arguments[1]);
  const Work load{.compute = std::chrono::microseconds(std::atoi(arguments[2])),
                  .gradients = std::vector<float>(
                      static_cast<std::size_t>(std::atoi(arguments[3])) * 1'000 / sizeof(float))};
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to a dead peer
  for (int i = 0; i < std::atoi(arguments[4]); ++i)
    std::printf("%.2f\n", run(size, i % size, load));
}
