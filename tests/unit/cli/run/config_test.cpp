// Values from three sources: which one wins, what --show-config prints, and errors that name the
// file and line or the variable.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/run/options.hpp"

using namespace elasticrun;
using namespace elasticrun::cli;
using namespace elasticrun::cli::run;

namespace {

const launcher::machine::Machine laptop{{{"laptop"}, "bob"}, 0, "/home/bob"};

Parsed parse_words(std::vector<const char*> words, std::vector<const char*> env) {
  words.insert(words.begin(), "elasticrun");
  env.push_back(nullptr);
  return parse(static_cast<int>(words.size()), words.data(), env.data(), laptop);
}

std::string printed(const Parsed& parsed) {
  const auto* answer = std::get_if<PrintAndExit>(&parsed);
  REQUIRE(answer != nullptr);
  return fmt::format("{} {}", answer->code, answer->text);
}

job::JobSpec spec_of(const Parsed& parsed) {
  if (const auto* answer = std::get_if<PrintAndExit>(&parsed)) FAIL(answer->text);
  return std::get<job::JobSpec>(parsed);
}

// A file that is removed at the end of the test.
class File {
 public:
  explicit File(const std::string& text) {
    char name[] = "/tmp/elasticrun-cli-test-XXXXXX";
    const char* const folder = mkdtemp(name);
    REQUIRE(folder != nullptr);
    folder_ = folder;
    path_ = folder_ + "/job.toml";
    std::ofstream(path_) << text;
  }
  ~File() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  std::string folder_, path_;
};

}  // namespace

TEST_CASE("the command line wins over the environment, the file and the default") {
  const File file("max-batch = 1\nbatch = 1\nbase_batch = 1\n");
  const auto spec = spec_of(parse_words({"--config", file.path(), "--max-batch", "3", "./t"},
                                        {"ELASTICRUN_MAX_BATCH=2", "ELASTICRUN_BATCH=2"}));
  CHECK(spec.batch.max_batch == 3);
  CHECK(spec.batch.batch == 2);
  CHECK(spec.batch.base_batch == 1);
  CHECK(spec.batch.lr_rule == autoscaler::LrRule::linear);
}

TEST_CASE("hosts: the nearer source wins, in whichever form it names them") {
  const File file("host-list = \"a:1,b:1\"\n");
  CHECK(spec_of(parse_words({"--config", file.path(), "./t"}, {})).hosts.size() == 2);
  const File hosts("x\ny\nz\n");
  const std::string variable = fmt::format("ELASTICRUN_HOSTS={}", hosts.path());
  const auto spec = spec_of(parse_words({"--config", file.path(), "./t"}, {variable.c_str()}));
  CHECK(spec.hosts.size() == 3);
  CHECK(spec.hosts_file == hosts.path());
  CHECK(spec_of(parse_words({"-H", "q", "./t"}, {variable.c_str()})).hosts.size() == 1);
}

TEST_CASE("an error in the host file names file and line") {
  const File hosts("a\nb:0\n");
  CHECK(printed(parse_words({"--hosts", hosts.path(), "./t"}, {})) ==
        fmt::format("2 elasticrun: {}:2: slots must be a number from 1 to 1024, not '0'\n",
                    hosts.path()));
  const File spares("a spare\n");
  CHECK(printed(parse_words({"--hosts", spares.path(), "./t"}, {})) ==
        "2 elasticrun: --hosts: every host is a spare\n");
}

TEST_CASE("flags can be set in the environment") {
  const auto spec = spec_of(parse_words(
      {"./t"}, {"ELASTICRUN_QUIET=1", "ELASTICRUN_EXPLAIN=no",
                "ELASTICRUN_NP=", "ELASTICRUN_X=A=1,B", "B=2", "ELASTICRUN_JOB_ID=j",
                "ELASTICRUN_HOST=n1", "ELASTICRUN_SLOT=0", "ELASTICRUN_SOMEBODY_ELSES=1"}));
  CHECK(spec.quiet);
  CHECK_FALSE(spec.explain);
  CHECK(spec.environment.extra == std::vector<std::string>{"A=1", "B"});
  CHECK(printed(parse_words({"./t"}, {"ELASTICRUN_NP=x"})) ==
        "2 elasticrun: ELASTICRUN_NP: 'x' is neither a number nor MIN:MAX, as in 1:8\n");
  CHECK(printed(parse_words({"./t"}, {"ELASTICRUN_MAXBATCH=4"})) ==
        "2 elasticrun: ELASTICRUN_MAXBATCH: unknown variable; did you mean "
        "ELASTICRUN_MAX_BATCH?\n");
}

TEST_CASE("a configuration file may contain these settings") {
  const auto settings = settings_from_file(
      "# comment\n\nnp = \"1:4\"  # tail\nmax_batch=8\nquiet = true\nnproc-per-node = 2\n"
      "x = [\"A=1\",\n  'B=2', # two\n]\nhost-list = \"a:1,b:1\"\r\n",
      "f");
  REQUIRE(settings.has_value());
  const auto values = [&](const char* name) { return settings->at(name).values; };
  using Values = std::vector<std::string>;
  CHECK(values("np") == Values{"1:4"});
  CHECK(values("max-batch") == Values{"8"});
  CHECK(values("quiet") == Values{"true"});
  CHECK(values("slots") == Values{"2"});
  CHECK(values("x") == Values{"A=1", "B=2"});
  CHECK(values("host-list") == Values{"a:1,b:1"});
  CHECK(settings->at("host-list").place == "f:10: host-list");
}

TEST_CASE("mistakes in a configuration file name file and line") {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"\nmax-bacth = 4\n", "f:2: unknown key max-bacth; did you mean --max-batch?"},
      {"garbage\n", "f:1: unknown key garbage"},
      {"help = true\n", "f:1: help belongs on the command line"},
      {"config = \"g\"\n", "f:1: config belongs on the command line"},
      {"[job]\nnp = 4\n", "f:1: sections are not used; write name = value"},
      {"np = 4\nnp = 5\n", "f:2: np is given twice; it was first given at f:1: np"},
      {"np = [1, 2]\n", "f:1: np takes one value; write np = \"...\""},
      {"x = []\n", "f:1: x takes one value; write x = \"...\""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto settings = settings_from_file(row.text, "f");
    REQUIRE_FALSE(settings.has_value());
    CHECK(settings.error().text == row.error);
  }
}

TEST_CASE("a wrong value in a configuration file names file and line") {
  const File file("\nnp = \"4:2\"\n");
  CHECK(
      printed(parse_words({"--config", file.path(), "./t"}, {})) ==
      fmt::format("2 elasticrun: {}:2: np: '4:2' begins above its end; write 2:4\n", file.path()));
  CHECK(printed(parse_words({"--config", "/no/file", "./t"}, {})) ==
        "2 elasticrun: --config: cannot read /no/file: No such file or directory\n");
}

TEST_CASE("--show-config prints the source of each value, and can be read again") {
  const File file("batch = 8\n");
  const std::string text = printed(parse_words(
      {"--config", file.path(), "--np", "1:4", "-x", "A=1", "-x", "B", "--quiet", "--show-config"},
      {"ELASTICRUN_HUNG=2m"}));
  for (const std::string& line :
       {std::string("np = \"1:4\"  # command line\n"),
        std::string("quiet = true  # command line\n"),
        std::string("x = [\"A=1\", \"B\"]  # command line\n"),
        std::string("hung = \"2m\"  # environment ELASTICRUN_HUNG\n"),
        fmt::format("batch = \"8\"  # file {}:1\n", file.path()),
        std::string("# grace = \"10s\"  # default\n"), std::string("# max-batch is not set\n")}) {
    CAPTURE(line);
    CHECK(text.find("\n" + line) != std::string::npos);
  }
  const auto again = settings_from_file(text.substr(2), "again");
  REQUIRE(again.has_value());
  CHECK(again->size() == 5);
  CHECK(again->at("x").values == std::vector<std::string>{"A=1", "B"});
}

TEST_CASE("the sample files in configs are valid") {
  struct Row {
    const char* name;
    std::size_t hosts;
  };
  const Row rows[] = {{"hosts.txt", 10},
                      {"hosts-openmpi.txt", 3},
                      {"hosts-hydra.txt", 3},
                      {"hosts-horovod.txt", 2}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::string path = fmt::format("{}/{}", SAMPLES, row.name);
    CHECK(spec_of(parse_words({"--hosts", path.c_str(), "./t"}, {})).hosts.size() == row.hosts);
  }
  const std::string config = std::string(SAMPLES) + "/elasticrun.toml";
  const auto spec = spec_of(parse_words({"--config", config.c_str(), "./t"}, {}));
  CHECK(spec.limits == launcher::hosts::Limits{.min = 1, .max = 4});
  CHECK(spec.batch.max_batch == 256);
  CHECK(spec.explain);
  CHECK(spec.environment.extra ==
        std::vector<std::string>{"OMP_NUM_THREADS=1", "PYTHONUNBUFFERED=1"});
}
