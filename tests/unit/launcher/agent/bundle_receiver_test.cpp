// A real agent that lacks its worker's program: it asks for the program, receives it and runs it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "controller.hpp"
#include "launcher/bundle/bundle_digest.hpp"

namespace elasticrun::launcher::agent {
namespace {

const std::string script =
    "#!/bin/sh\necho \"$0 $1 $COLOUR $LD_LIBRARY_PATH\"; cat \"${0%/*}/libx.so\" 2>/dev/null; "
    "true\n";
const std::string library = "library\n";

// The bundle that a controller would send: this script, and the library if there is one.
struct Box {
  explicit Box(bool with_library) : has_library(with_library) {
    bundle::BundleDigest seen;
    if (has_library) {
      seen.add(library);
      seen.end_file("libx.so", false);
    }
    seen.add(script);
    seen.end_file("train", true);
    hash = seen.text();
  }
  wire::agent::StartWorker order(std::uint32_t worker) const {
    const auto bytes = script.size() + (has_library ? library.size() : 0);
    return {.worker = WorkerId{worker},
            .argv = {"./none/train", "word"},
            .env = {"PATH=/usr/bin:/bin", "COLOUR=blue", "LD_LIBRARY_PATH=/mine"},
            .cwd = "/",
            .bundle = hash,
            .bundle_bytes = static_cast<std::int64_t>(bytes)};
  }
  void send(Controller& c, const std::string& text = script) const {
    if (has_library)
      c.send(wire::agent::BundlePart{.bundle = hash, .file = "libx.so", .bytes = {library}});
    for (std::size_t i = 0; i < text.size(); i += 10)
      c.send(wire::agent::BundlePart{.bundle = hash,
                                     .file = "train",
                                     .executable = true,
                                     .last = i + 10 >= text.size(),
                                     .bytes = text.substr(i, 10)});
  }
  bool has_library;
  std::string hash;
};

TEST_CASE("workers wait for one copy and run it with their arguments and environment") {
  Controller c;
  const Box box(true);
  for (const std::uint32_t worker : {1u, 2u}) c.send(box.order(worker));
  REQUIRE(c.until([&] { return !c.wanted.empty(); }));
  CHECK(c.wanted[0].bundle == box.hash);
  CHECK(c.wanted[0].taken == 0);
  box.send(c);
  for (const std::uint32_t worker : {1u, 2u}) {
    const std::string& out = c.finished(worker, library).out;
    const std::string folder = out.substr(0, out.find("/train "));
    CHECK(folder.ends_with("/bundle-" + box.hash));
    CHECK(out == fmt::format("{0}/train word blue {0}:/mine\nlibrary\n", folder));
    CHECK(is_locked(folder));  // against cleaners, since a worker may load more files later
  }
  CHECK(c.wanted.size() == 1);
  c.send(box.order(3));  // the copy exists by now
  CHECK(c.finished(3, library).code == 0);
  CHECK(c.wanted.size() == 1);
}

TEST_CASE("without libraries the library path stays as it is") {
  Controller c;
  const Box box(false);
  c.send(box.order(1));
  REQUIRE(c.until([&] { return !c.wanted.empty(); }));
  box.send(c);
  CHECK(c.finished(1, " blue /mine\n").code == 0);
}

TEST_CASE("a Python script or module is run from the copy, with what lies beside it") {
  const std::string python = "/usr/bin/python3";
  const std::string text =
      "import os, sys, nets.small\n"
      "print(sys.argv[0], sys.argv[1:], nets.small.word, os.getenv('PYTHONPATH'),\n"
      "      os.getenv('LD_LIBRARY_PATH'), flush=True)\n";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"nets/small.py", "word = 'small'\n"}, {"train.py", text}};
  bundle::BundleDigest seen;
  wire::agent::StartWorker order = Box(false).order(1);
  order.bundle_bytes = 0;
  for (const auto& [name, bytes] : files) {
    seen.add(bytes);
    seen.end_file(name, false);
    order.bundle_bytes += static_cast<std::int64_t>(bytes.size());
  }
  order.bundle = seen.text();
  order.cwd = "/no/such/directory";
  order.argv = {python, "-u", "none/train.py", "word"};

  Controller c;
  c.send(order);
  REQUIRE(c.until([&] { return !c.wanted.empty(); }));
  for (const auto& [name, bytes] : files)
    c.send(wire::agent::BundlePart{.bundle = order.bundle,
                                   .file = name,
                                   .last = name == files.back().first,
                                   .bytes = {bytes}});
  const std::string out = c.finished(1, "/mine").out;
  const std::string folder = out.substr(0, out.find("/train.py "));
  CHECK(folder.ends_with("/bundle-" + order.bundle));
  CHECK(out == fmt::format("{}/train.py ['word'] small None /mine\n", folder));

  order.worker = WorkerId{2};
  order.argv = {python, "-m", "train", "word"};
  order.env.push_back("PYTHONPATH=/before");
  c.send(order);
  CHECK(c.finished(2, "/mine").out ==
        fmt::format("{0}/train.py ['word'] small {0}:/before /mine\n", folder));

  order.worker = WorkerId{3};
  order.argv = {"/none/python3", "-m", "train"};
  c.send(order);
  CHECK(c.finished(3).code == 127);
  CHECK(c.workers[3].reason == "n1: program '/none/python3' not found");
  CHECK(c.wanted.size() == 1);
}

TEST_CASE("a Python script or module that exists on the host is not copied") {
  Controller c;
  wire::agent::StartWorker order = Box(false).order(1);
  std::string name = std::filesystem::temp_directory_path() / "jobs-XXXXXX";
  REQUIRE(::mkdtemp(name.data()));
  std::filesystem::create_directory(name + "/jobs");
  std::ofstream(name + "/jobs/train.py") << "print('own')\n";
  order.cwd = name;
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{"jobs/train.py"}, Words{name + "/jobs/train.py"}, Words{"-m", "jobs.train"}}) {
    order.argv = {"/usr/bin/python3", "-uB"};
    order.argv.insert(order.argv.end(), words.begin(), words.end());
    c.send(order);
    CHECK(c.finished(order.worker.value, "own\n").code == 0);
    ++order.worker.value;
  }
  CHECK(c.wanted.empty());
  std::filesystem::remove_all(name);
}

TEST_CASE("a program that exists on the host is not copied") {
  Controller c;
  const Box box(false);
  wire::agent::StartWorker order = box.order(1);
  for (const std::string program : {"echo", "/bin/echo", "bin/echo"}) {
    order.argv[0] = program;
    c.send(order);
    CHECK(c.finished(order.worker.value, "word\n").code == 0);
    ++order.worker.value;
  }
  order.argv[0] = "/etc/passwd";  // it exists, but is no program
  c.send(order);
  CHECK(c.finished(order.worker.value).code == 126);
  CHECK(c.wanted.empty());
}

TEST_CASE("a relative path is not searched in a fallback directory") {
  Controller c;
  wire::agent::StartWorker order = Box(false).order(1);
  order.argv[0] = "bin/echo";
  order.cwd = "/no/such/directory";
  c.send(order);  // would run in /, where bin/echo exists
  CHECK(c.until([&] { return c.wanted.size() == 1; }));
}

TEST_CASE("a worker that waits for a copy can be stopped, and does not keep the agent") {
  const Box box(false);
  for (const int signal : {SIGTERM, SIGKILL}) {
    Controller c;
    c.send(box.order(1));
    REQUIRE(c.until([&] { return !c.wanted.empty(); }));
    c.send(wire::agent::StopWorker{WorkerId{1}, signal, Duration(1000s).count()});
    CHECK(c.finished(1).signal == SIGTERM);
    CHECK(c.workers[1].pid == 0);
    box.send(c);  // parts that are still under way do no harm
    c.send(box.order(2));
    CHECK(c.finished(2, "word").code == 0);
    CHECK(c.wanted.size() == 1);
  }
  Controller c;
  c.send(box.order(1));
  REQUIRE(c.until([&] { return !c.wanted.empty(); }));
  c.send(wire::agent::Shutdown{Duration(1000s).count()});
  CHECK(c.agent_ended());
  CHECK(c.finished(1).signal == SIGTERM);
}

TEST_CASE("a copy that fails is reported, and another worker asks again") {
  Controller c;
  const Box box(true);
  c.send(box.order(1));
  REQUIRE(c.until([&] { return c.wanted.size() == 1; }));
  c.send(
      wire::agent::BundlePart{.bundle = box.hash, .trouble = "'train' cannot be read: it burns"});
  CHECK(c.finished(1).code == 126);
  CHECK(c.workers[1].reason == "n1: copy of the program: 'train' cannot be read: it burns");
  c.send(box.order(2));
  REQUIRE(c.until([&] { return c.wanted.size() == 2; }));
  std::string other = script;
  other.back() = ' ';
  box.send(c, other);
  CHECK(c.finished(2).code == 126);
  CHECK(c.workers[2].reason.find("is not what was announced") != std::string::npos);
  c.send(box.order(3));
  REQUIRE(c.until([&] { return c.wanted.size() == 3; }));
  c.send(wire::agent::BundlePart{.bundle = box.hash, .file = "../train", .bytes = {"x"}});
  CHECK(c.finished(3).code == 126);
  wire::agent::StartWorker huge = box.order(4);
  huge.bundle_bytes = std::int64_t{1} << 60;
  c.send(huge);
  CHECK(c.finished(4).code == 126);
  CHECK(c.workers[4].reason.find("not enough room") != std::string::npos);
  wire::agent::StartWorker odd = box.order(5);
  odd.bundle = "../../etc";
  c.send(odd);
  CHECK(c.finished(5).code == 126);
}

TEST_CASE("a killed agent leaves no partial copy") {
  Controller c;
  const Box box(true);
  c.send(box.order(1));
  REQUIRE(c.until([&] { return !c.wanted.empty(); }));
  c.send(wire::agent::BundlePart{.bundle = box.hash, .file = "libx.so", .bytes = {library}});
  signal_one(c.agent_pid, SIGKILL);
  CHECK(c.agent_ended());
  CHECK(c.until([&] { return c.directory_is_empty(); }));
}

}  // namespace
}  // namespace elasticrun::launcher::agent
