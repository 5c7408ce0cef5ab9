// The command line as a table: what it means, and for each mistake one line and exit code 2.
#include "cli/run/options.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/text.hpp"

using namespace elasticrun;
using namespace elasticrun::cli;
using namespace elasticrun::cli::run;

namespace {

const launcher::machine::Machine laptop{{{"laptop"}, "bob"}, 0, "/home/bob"};

Parsed parse_line(const std::string& line, const std::vector<const char*>& env = {},
                  const launcher::machine::Machine& machine = laptop) {
  std::vector<std::string> words{"elasticrun"};
  for (std::size_t at = 0; at < line.size();) {
    const auto end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  std::vector<const char*> argv;
  for (const auto& word : words) argv.push_back(word.c_str());
  std::vector<const char*> variables = env;
  variables.push_back(nullptr);
  return parse(static_cast<int>(argv.size()), argv.data(), variables.data(), machine);
}

std::string text_of(const job::JobSpec& spec) {
  std::string hosts;
  for (const auto& host : spec.hosts)
    hosts += fmt::format(" {}:{}{}", host.name, host.slots,
                         host.slots_max > 0 ? fmt::format("<={}", host.slots_max) : "");
  const auto& limits = spec.limits;
  std::string text = fmt::format("{} np {}:{}{}", hosts.substr(1), limits.min, limits.max,
                                 spec.start ? fmt::format(" start {}", spec.start) : "");
  if (limits.max_hosts) text += fmt::format(" nodes {}:{}", limits.min_hosts, limits.max_hosts);
  return text + fmt::format(" {} {} | {}",
                            spec.unit == launcher::hosts::Unit::host ? "host" : "slot", spec.policy,
                            fmt::join(spec.argv, " "));
}

std::string text_of(const Parsed& parsed) {
  if (const auto* spec = std::get_if<job::JobSpec>(&parsed)) return text_of(*spec);
  const auto& answer = std::get<PrintAndExit>(parsed);
  return fmt::format("{} {}", answer.code, answer.text);
}

job::JobSpec spec_of(const std::string& line, const std::vector<const char*>& env = {}) {
  Parsed parsed = parse_line(line, env);
  INFO(text_of(parsed));
  REQUIRE(std::holds_alternative<job::JobSpec>(parsed));
  return std::get<job::JobSpec>(std::move(parsed));
}

struct Case {
  const char* line;
  std::string out;
};

}  // namespace

TEST_CASE("Python scripts and modules are run by the interpreter of the caller's PATH") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("er-python-{}", ::getpid());
  const auto make = [&](const std::string& name, bool runs) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n";
    if (runs) std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  };
  const std::string python = make("bin/python", true), python3 = make("venv/python3", true);
  make("bin/python3", false);
  const std::string script = make("train.py", false), tool = make("tool.py", true);
  const std::string old = "PATH=/nowhere:" + folder.string() + "/bin",
                    active = fmt::format("PATH={0}/venv:{0}/bin", folder.string());
  const auto program = [&](const std::string& line, const std::string& path) {
    const std::string text = text_of(parse_line(line, {path.c_str()}));
    return text.substr(text.find("| ") == text.npos ? 0 : text.find("| ") + 2);
  };
  CHECK(program("train.py -m 3", active) == python3 + " -u train.py -m 3");
  CHECK(program("train.py", old) == python + " -u train.py");
  CHECK(program(script + " a", active) == fmt::format("{} -u {} a", python3, script));
  CHECK(program(tool + " a", active) == tool + " a");
  CHECK(program("-n 2 -m package.train -n 3", active) == python3 + " -u -m package.train -n 3");
  CHECK(program("-m", active) == "2 elasticrun: -m needs the name of a module\n");
  CHECK(program("--ship train.py", active) == python3 + " -u train.py");
  CHECK(program("train.py", "PATH=/nowhere") ==
        "2 elasticrun: no python3 and no python is on PATH; put the interpreter in front of the "
        "script\n");
  std::filesystem::remove_all(folder);
}

TEST_CASE("the command line determines workers, hosts and limits") {
  const Case cases[] = {
      {"./t", "localhost:1 np 1:0 slot fixed | ./t"},
      {"./t -np 5 --hosts x -- --help",
       "localhost:1 np 1:0 slot fixed | ./t -np 5 --hosts x -- --help"},
      {"-- ./t a", "localhost:1 np 1:0 slot fixed | ./t a"},
      {"-- --odd", "localhost:1 np 1:0 slot fixed | --odd"},
      {"--quiet -- ./t -- a", "localhost:1 np 1:0 slot fixed | ./t -- a"},
      {"-np 4 ./t", "localhost:4 np 4:4 slot fixed | ./t"},
      {"--np=4 ./t -np 8", "localhost:4 np 4:4 slot fixed | ./t -np 8"},
      {"--np 1:4 ./t", "localhost:4 np 1:4 slot fit | ./t"},
      {"--np 1:4 --start 1 ./t", "localhost:4 np 1:4 start 1 slot fit | ./t"},
      {"--np 2:2 ./t", "localhost:2 np 2:2 slot fixed | ./t"},
      {"-np 4 --np 2 ./t", "localhost:2 np 2:2 slot fixed | ./t"},
      {"-np 4 --max-np 8 ./t", "localhost:8 np 4:8 start 4 slot fit | ./t"},
      {"-np 4 --min-np 2 ./t", "localhost:4 np 2:0 start 4 slot fit | ./t"},
      {"--min-np 2 --max-np 4 ./t", "localhost:4 np 2:4 slot fit | ./t"},
      {"--slots 4 ./t", "localhost:4 np 1:0 slot fixed | ./t"},
      {"--nproc-per-node 4 ./t", "localhost:4 np 1:0 slot fixed | ./t"},
      {"--nproc_per_node=4 --nnodes=1 ./t", "localhost:4 np 1:0 nodes 1:1 slot fixed | ./t"},
      {"--slots auto ./t", "localhost:1 np 1:0 slot fixed | ./t"},
      {"-H a:4,b:4 ./t", "a:4 b:4 np 1:0 host fixed | ./t"},
      {"-Ha:4 ./t", "a:4 np 1:0 slot fixed | ./t"},
      {"--host-list a:4 ./t", "a:4 np 1:0 slot fixed | ./t"},
      {"--host_list a:4 ./t", "a:4 np 1:0 slot fixed | ./t"},
      {"-H [::1]:2 ./t", "::1:2 np 1:0 slot fixed | ./t"},
      {"-H a:4,b:4 --max-batch 64 ./t", "a:4 b:4 np 1:0 host fit | ./t"},
      {"-H a:4,b:4 --max_batch 64 --policy fixed ./t", "a:4 b:4 np 1:0 host fixed | ./t"},
      {"-H a:4,b:4 --policy throughput ./t", "a:4 b:4 np 1:0 host throughput | ./t"},
      {"-H a:4,b:4 --budget 50 ./t", "a:4 b:4 np 1:0 host budget | ./t"},
      {"-H a:4,b:4 --policy deadline --deadline 2h ./t", "a:4 b:4 np 1:0 host deadline | ./t"},
      {"-H a:4,b:4 --np 1:8 --utility 1h:9,2h:1 ./t", "a:4 b:4 np 1:8 host utility | ./t"},
      {"-H a:4,b:4 --unit slot --np 6 ./t", "a:4 b:4 np 6:6 slot fixed | ./t"},
      {"-H a:4,b:4,c:4 --nnodes 2:3 ./t", "a:4 b:4 c:4 np 1:0 nodes 2:3 host fit | ./t"},
      {"-H a:4,b:4 --np 2:100 ./t", "a:4 b:4 np 2:100 host fit | ./t"},
      {"-H n[1-4]:2 --include n[2-3] ./t", "n2:2 n3:2 np 1:0 host fixed | ./t"},
      {"-H n[1-4]:2 --exclude n[2-3] ./t", "n1:2 n4:2 np 1:0 host fixed | ./t"},
      {"-H a:4,b:4 --include b,a:1 ./t", "a:4<=1 b:4 np 1:0 host fixed | ./t"},
      {"-H a,b --slots 4 --include a:3,b ./t", "a:0<=3 b:0 np 1:0 host fixed | ./t"},
      {"-H a:4,b:4,c:4 --exclude c --nnodes 2 ./t", "a:4 b:4 np 1:0 nodes 2:2 host fixed | ./t"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.line);
    CHECK(text_of(parse_line(one.line)) == one.out);
  }
}

TEST_CASE("a text that does not fit an agent's start line is refused") {
  CHECK(spec_of("--notice " + std::string(15'000, 'x') + " ./t").notice.size() == 15'000);
  for (const std::string flag : {"--notice", "--network"}) {
    const std::string said = text_of(parse_line(flag + " " + std::string(100'000, '"') + " ./t"));
    CHECK(said.find(flag + ": the text is too long: it takes 200") != said.npos);
  }
}

TEST_CASE("slots of this machine are its GPUs") {
  const launcher::machine::Machine box{{{"box"}, "bob"}, 8, "/"};
  CHECK(text_of(parse_line("./t", {}, box)) == "localhost:8 np 1:0 slot fixed | ./t");
  CHECK(text_of(parse_line("--slots 2 ./t", {}, box)) == "localhost:2 np 1:0 slot fixed | ./t");
  CHECK(text_of(parse_line("--np 2 ./t", {}, box)) == "localhost:8 np 2:2 slot fixed | ./t");
}

TEST_CASE("the other values arrive") {
  const auto spec = spec_of(
      "--max-batch 256 --batch 64 --base-batch 32 --lr-rule sqrt --max-restarts 3 --heartbeat "
      "100ms "
      "--grace 2s --log-dir logs --label none --quiet --events e.jsonl --explain --dry-run "
      "-x A=1 -x B=2 --no-env --port 29400-29500 --price 2.5 --deadline 2h ./t");
  CHECK(spec.price == 2.5);
  CHECK(spec.aims.deadline == std::chrono::hours(2));
  CHECK(spec_of("--budget 12.5 ./t").aims.budget == 12.5);
  CHECK(spec_of("--utility 1h:9,2h:1 ./t").aims.utility.size() == 2);
  CHECK(spec_of("--verify-state 10 ./t").verify_state == 10);
  CHECK(spec_of("--verify-state off ./t").verify_state == 0);
  CHECK(spec.batch.max_batch == 256);
  CHECK(spec.batch.batch == 64);
  CHECK(spec.batch.base_batch == 32);
  CHECK(spec.batch.lr_rule == autoscaler::LrRule::sqrt);
  CHECK(spec.max_restarts == 3);
  CHECK(spec.deadlines.heartbeat == std::chrono::milliseconds(100));
  CHECK(spec.deadlines.grace == std::chrono::seconds(2));
  CHECK(spec.deadlines.orphan_grace == std::chrono::seconds(2));
  CHECK(spec.log_dir == "logs");
  CHECK_FALSE(spec.label);
  CHECK(spec.quiet);
  CHECK(spec.events_file == "e.jsonl");
  CHECK(spec.explain);
  CHECK(spec.dry_run);
  CHECK(spec.environment.none);
  CHECK(spec.environment.extra == std::vector<std::string>{"A=1", "B=2"});
  CHECK(spec.port_first == 29400);
  CHECK(spec.port_last == 29500);
  CHECK(spec.cwd == "/home/bob");
}

TEST_CASE("values that are not given have their defaults") {
  const auto spec = spec_of("./t", {"A=1", "B=2"});
  CHECK(spec.batch.max_batch == 0);
  CHECK_FALSE(spec.max_restarts.has_value());
  CHECK(spec.deadlines == job::Deadlines{});
  CHECK(spec.verify_state == 5000);
  CHECK(spec.label);
  CHECK_FALSE(spec.quiet);
  CHECK(spec.port_first == 0);
  CHECK(spec.caller_environment == std::vector<std::string>{"A=1", "B=2"});
}

TEST_CASE("the orphan grace is the grace, but never longer than the lease") {
  CHECK(spec_of("--grace 30s ./t").deadlines.orphan_grace == std::chrono::seconds(10));
  CHECK(spec_of("--grace 30s --orphan-grace 1s ./t").deadlines.orphan_grace ==
        std::chrono::seconds(1));
  CHECK(spec_of("--grace 0 ./t").deadlines.grace == Duration::zero());
}

TEST_CASE("a mistake gives one line and exit code 2") {
  const std::string help = " (see elasticrun --help)";
  const std::string beyond = " is not a whole number from ";
  const Case cases[] = {
      {"", "no program given; usage: elasticrun [options] program [args...]"},
      {"--np 4", "no program given; usage: elasticrun [options] program [args...]"},
      {"--", "no program given; usage: elasticrun [options] program [args...]"},
      {"--nq 4 ./t", "unknown flag --nq; did you mean --np?" + help},
      {"--max-bacth=4 ./t", "unknown flag --max-bacth; did you mean --max-batch?" + help},
      {"--max_bacth 4 ./t", "unknown flag --max_bacth; did you mean --max-batch?" + help},
      {"--machinefile h ./t", "unknown flag --machinefile; did you mean --hosts?" + help},
      {"--standalone ./t",
       "unknown flag --standalone; leave it out: without hosts the job runs on this machine alone" +
           help},
      {"-hosts a ./t", "unknown flag -hosts; did you mean --hosts?" + help},
      {"--frobnicate ./t", "unknown flag --frobnicate" + help},
      {"--quiet --frobnicate ./t", "unknown flag --frobnicate" + help},
      {"--np", "--np needs a value" + help},
      {"-np", "-np needs a value" + help},
      {"--np= ./t", "--np needs a value" + help},
      {"--np 0 ./t", "--np: '0' is neither a number nor MIN:MAX, as in 1:8"},
      {"--np -4 ./t", "--np: '-4' is neither a number nor MIN:MAX, as in 1:8"},
      {"--np 4: ./t", "--np: '4:' is neither a number nor MIN:MAX, as in 1:8"},
      {"--np x ./t", "--np: 'x' is neither a number nor MIN:MAX, as in 1:8"},
      {"--np 1:2:3 ./t", "--np: '1:2:3' is neither a number nor MIN:MAX, as in 1:8"},
      {"--np 4:2 ./t", "--np: '4:2' begins above its end; write 2:4"},
      {"--np 99999 ./t", "--np: '99999' is neither a number nor MIN:MAX, as in 1:8"},
      {"--np 2000 ./t",
       "--np: 2000 workers are more than the 1024 that one host can take; give hosts"},
      {"--user a;reboot ./t", "--user: 'a;reboot' is no user name"},
      {"--user -oProxyCommand=x ./t", "--user: '-oProxyCommand=x' is no user name"},
      {"--user $HOME ./t",
       "--user: '$HOME' is no user name here: as ssh, this takes '\\' and '$' only from a User "
       "line "
       "in the configuration of ssh"},
      {"--min-np 4 --max-np 2 ./t", "--min-np: the fewest workers (4) are more than the most (2)"},
      {"-H a:4 --np 5 ./t",
       "--np: 5 workers are needed, but the hosts have 4 slots; add hosts, or --slots"},
      {"-H a:1 --min-np 2 ./t",
       "--min-np: 2 workers are needed, but the hosts have 1 slot; add hosts, or --slots"},
      {"-H a:4 --np 2:4 --start 1 ./t",
       "--start: cannot begin with 1 worker; from 2 to 4 are possible (the hosts have 4 slots)"},
      {"-H a:4 --start 5 ./t",
       "--start: cannot begin with 5 workers; from 1 to 4 are possible (the hosts have 4 slots)"},
      {"-H a:4 --nnodes 2 ./t", "--nnodes: at least 2 hosts needed, 1 given"},
      {"-H a:4,b:4 --nnodes 1 --min-np 5 ./t",
       "--nnodes: no size is possible within the limits (the hosts have 8 slots)"},
      {"-H a:0 ./t", "--host-list: slots must be a number from 1 to 1024, not '0'"},
      {"-H a,a ./t", "--host-list: a is given twice; it was first given in item 1"},
      {"--hosts /no/file ./t", "--hosts: cannot read /no/file: No such file or directory"},
      {"--hosts / ./t", "--hosts: / is a folder, not a file"},
      {"--hosts h -H a ./t", "--host-list: --hosts is given as well; use one of them"},
      {"--host-discovery x -H a ./t",
       "--host-discovery: --host-list is given as well; use one of "
       "them"},
      {"--include a ./t",
       "--include: there are no hosts to choose from; give --hosts, -H or --host-discovery"},
      {"-H n1,n2 --include n2,m3 ./t", "--include: m3 is not among the hosts"},
      {"-H n01,n02 --include n2 ./t", "--include: n2 is not among the hosts; did you mean n02?"},
      {"-H node1,node2 --exclude nod2 ./t",
       "--exclude: nod2 is not among the hosts; did you mean node2?"},
      {"-H a,b --include a@b:0,2 ./t",
       "--include: 'a@b:0,2' is not understood; hosts are separated by commas, and their slots "
       "are counted; write a,b:2"},
      {"-H a,b --exclude a,b ./t", "--exclude: no host is left"},
      {"-H a:4,b:4 --include a --np 5 ./t",
       "--np: 5 workers are needed, but the hosts have 4 slots; add hosts, or --slots"},
      {"-H a,b --include a --nnodes 2 ./t", "--nnodes: at least 2 hosts needed, 1 given"},
      {"--discovery-timeout 0 ./t", "--discovery-timeout: 0 is too short; the default is 30s"},
      {"--slots 0 ./t", "--slots: '0'" + beyond + "1 to 1024"},
      {"--slots 4x ./t", "--slots: '4x'" + beyond + "1 to 1024"},
      {"--start 0 ./t", "--start: '0'" + beyond + "1 to 65536"},
      {"--max-batch -1 ./t", "--max-batch: '-1'" + beyond + "1 to 1099511627776"},
      {"--max-batch 1e3 ./t", "--max-batch: '1e3'" + beyond + "1 to 1099511627776"},
      {"--max-batch 8 --batch 9 ./t", "--batch: 9 per worker is more than --max-batch 8"},
      {"--lr-rule cubic ./t",
       "--lr-rule: unknown learning-rate rule 'cubic'; use none, linear, sqrt or adascale"},
      {"--policy best ./t",
       "--policy: unknown policy 'best'; the known ones are fixed, throughput, throughput-walk, "
       "fit, goodput, utility, budget, deadline, exec"},
      {"--policy exec: ./t",
       "--policy: policy 'exec' needs a program that is asked, as in exec:./policy.sh"},
      {"--policy utility ./t", "--policy: utility needs --utility"},
      {"--policy budget ./t", "--policy: budget needs --budget"},
      {"--policy deadline ./t", "--policy: deadline needs --deadline"},
      {"--budget 5 --deadline 2h ./t",
       "--deadline: is for the policy deadline, and the policy is budget; leave one out"},
      {"--budget 5 --policy fit ./t",
       "--budget: is for the policy budget, and the policy is fit; leave one out"},
      {"--budget 0 ./t", "--budget: '0' is no amount of money above 0, as in 2.5"},
      {"--price free ./t", "--price: 'free' is no amount of money above 0, as in 2.5"},
      {"--deadline 0 ./t", "--deadline: no job ends in no time; write a time as in 2h"},
      {"--deadline 2 ./t", "--deadline: '2' has no known unit; use ms, s, m or h, as in 30s"},
      {"--utility 1h ./t", "--utility: '1h' is no TIME:MONEY, as in 1h:100,2h:40"},
      {"--unit rack ./t", "--unit: 'rack' is not known; use host or slot"},
      {"--label rank ./t", "--label: 'rank' is not known; use host:rank or none"},
      {"--max-restarts -1 ./t", "--max-restarts: '-1'" + beyond + "0 to 1000000"},
      {"--verify-state 0 ./t",
       "--verify-state: '0' is neither off nor a whole number from 1 to 1000000000"},
      {"--grace 10 ./t", "--grace: '10' has no known unit; use ms, s, m or h, as in 30s"},
      {"--grace x ./t", "--grace: 'x' is not a time; write a number and a unit, as in 30s"},
      {"--heartbeat 0 ./t", "--heartbeat: 0 is too short; the default is 500ms"},
      {"--heartbeat 5s ./t", "--heartbeat: 5.0 s must be shorter than --agent-timeout (5.0 s)"},
      {"--lease 3s ./t", "--agent-timeout: 5.0 s must be shorter than --lease (3.0 s)"},
      {"--port 0x1 ./t", "--port: '0x1' is no port; write 29400 or 29400-29500"},
      {"--port 70000 ./t", "--port: '70000' is no port; write 29400 or 29400-29500"},
      {"--port 5-4 ./t", "--port: '5-4' is no port; write 29400 or 29400-29500"},
      {"--port 0-9 ./t", "--port: '0-9' is no port; write 29400 or 29400-29500"},
      {"--quiet=maybe ./t", "--quiet: 'maybe' is neither true nor false"},
      {"-x NOT_THERE ./t",
       "-x NOT_THERE: NOT_THERE is not set here; set it, or write -x NOT_THERE=VALUE"},
      {"-H a ./t --unknown --np", "a:0 np 1:0 slot fixed | ./t --unknown --np"},
      // The number of GPUs is known only when the host is up.
      {"-H a --min-np 2 ./t", "a:0 np 2:0 slot fit | ./t"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.line);
    const bool fine = std::string_view(one.out).starts_with("a:0");
    CHECK(text_of(parse_line(one.line)) ==
          (fine ? one.out : fmt::format("2 elasticrun: {}\n", one.out)));
  }
}

TEST_CASE("--version and --help are answered") {
  CHECK(text_of(parse_line("--version")) == "0 elasticrun 0.1.0\n");
  CHECK(text_of(parse_line("--version ./t")) == "0 elasticrun 0.1.0\n");
  CHECK(text_of(parse_line("--help")) == "0 " + help_text());
  CHECK(text_of(parse_line("-h")) == "0 " + help_text());
  // Help is printed even if other settings are wrong.
  CHECK(text_of(parse_line("--np x --help", {"ELASTICRUN_CONFIG=/no/file"})) == "0 " + help_text());
  CHECK(text_of(parse_line("./t --help")) == "localhost:1 np 1:0 slot fixed | ./t --help");
}

// The program given to --host-discovery is one argument, as a shell passes it on.
TEST_CASE("hosts are read from a program's output") {
  const auto discovered = [](const char* program, std::vector<const char*> more = {}) {
    std::vector<const char*> line{"elasticrun", "--host-discovery", program};
    line.insert(line.end(), more.begin(), more.end());
    line.push_back("./t");
    const launcher::machine::Machine here{{{"box"}, "bob"}, 0, "/"};
    return text_of(parse(static_cast<int>(line.size()), line.data(), nullptr, here));
  };
  CHECK(discovered("echo a:4; echo b:2") == "a:4 b:2 np 1:0 host fixed | ./t");
  CHECK(discovered("printf a:4") == "a:4 np 1:0 slot fixed | ./t");
  CHECK(discovered("echo a; echo b >&2") == "a:0 np 1:0 slot fixed | ./t");
  CHECK(discovered("echo n[1-4]:2", {"--include", "n2,n9"}) == "n2:2 np 1:0 slot fixed | ./t");
  // More hosts may come later.
  CHECK(discovered("echo a:4; echo b:4", {"-np", "16"}) == "a:4 b:4 np 16:16 host fixed | ./t");
  CHECK(discovered("echo a; echo b", {"--nnodes", "3:9"}) ==
        "a:0 b:0 np 1:0 nodes 3:9 host fit | ./t");
  const std::string mistake = "2 elasticrun: --host-discovery: ";
  CHECK(discovered("exit 3") == mistake + "'exit 3' ended with exit code 3\n");
  CHECK(discovered("echo no such cloud >&2; exit 1") ==
        mistake + "'echo no such cloud >&2; exit 1' ended with exit code 1: no such cloud\n");
  CHECK(discovered("yes a", {"--discovery-timeout", "1m"}) ==
        mistake + "'yes a' printed more than 1 MiB\n");
  CHECK(discovered("sleep 100", {"--discovery-timeout", "100ms"}) ==
        mistake + "'sleep 100' took longer than 100 ms (--discovery-timeout)\n");
  CHECK(discovered("true") == mistake + "no host in it; write one a line, as in 'node1 slots=4'\n");
  CHECK(discovered("echo a; echo a:x") ==
        "2 elasticrun: --host-discovery:2: slots must be a number from 1 to 1024, not 'x'\n");
  CHECK(discovered("echo a", {"--exclude", "a"}) == "2 elasticrun: --exclude: no host is left\n");
  CHECK(discovered("echo a spare") == mistake + "every host is a spare\n");
}
