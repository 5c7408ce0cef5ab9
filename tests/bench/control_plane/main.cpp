// What the controller of a job costs by itself, for jobs of any size: its real core, codec, frames
// and queues, beside hosts and workers that are simulated on a virtual clock. There are no sockets,
// no other processes of a job, and no training. tests/bench/run --only control_plane prints it.
//
//     bench_control_plane [--sizes 64,256,1024,4096] [--steady SECONDS] [--limit SECONDS]
//                         [--memory GIB]
//
// virtual: how long the phase took on the virtual clock; cpu: processor time of the controller's
// side in that phase, and its parts; call: the longest call of the core; turn: the longest handling
// of one event, with all that follows from it; late: the longest time from an event's arrival to
// the end of its turn if one thread serves all (the virtual clock stands still meanwhile, so hosts
// never notice); memory: the most in use at one time.
//
// --limit: processor time of the controller in one phase; --memory: memory of the whole process. A
// phase that needs more, or in which a check fails, shows a dash, and the reason stands below the
// table. Each size runs in a process of its own, so a failure does not end the others.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "tests/bench/control_plane/cell.hpp"

namespace elasticrun::bench {
namespace {

struct Options {
  std::vector<int> sizes = {64, 256, 1024, 4096};
  int steady_s = 4;
  int limit_s = 60;
  double memory_gib = 8;
};

constexpr const char* row_format =
    "{:>7}  {:<11}  {:>7}  {:>8}  {:>7}  {:>8}  {:>7}  {:>7}  {:>7}  {:>8}  {:>8}  {:>8}  {:>8}  "
    "{:>7}\n";

void print_head() {
  const auto row = [](auto... cells) { fmt::print(fmt::runtime(row_format), cells...); };
  row("workers", "phase", "virtual", "cpu", "decode", "core", "encode", "turns", "sent", "received",
      "call max", "turn max", "late max", "memory");
  row("", "", "s", "s", "s", "s", "s", "", "MB", "MB", "ms", "ms", "ms", "MB");
}

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::string row(int workers, const PhaseResult& result) {
  const Cost& cost = result.cost;
  const auto s = [](Duration time) { return fmt::format("{:.4f}", seconds(time)); };
  const auto ms = [](Duration time) { return fmt::format("{:.2f}", milliseconds(time)); };
  const auto mb = [](std::size_t bytes) { return fmt::format("{:.2f}", megabytes(bytes)); };
  return fmt::format(fmt::runtime(row_format), workers, result.name,
                     fmt::format("{:.2f}", seconds(result.took)), s(cost.all()), s(cost.decode),
                     s(cost.core), s(cost.encode), cost.turns, mb(cost.sent), mb(cost.received),
                     ms(cost.longest_call), ms(cost.longest_turn), ms(cost.longest_delay),
                     mb(cost.most_bytes));
}

std::string dash(int workers, const std::string& phase) {
  return fmt::format(fmt::runtime(row_format), workers, phase, "", "-", "", "", "", "", "", "", "",
                     "", "", "");
}

// ---------------------------------------------------------------- the process of one size

// Sends one line to the parent: a word, and its text.
void tell(int pipe, const std::string& word, const std::string& text) {
  const std::string line = word + " " + text + "\n";
  (void)!::write(pipe, line.data(), line.size());
}

// The last resort against a single call that does not return.
void limit_processor_time(int more_s) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  rlimit limit{};
  ::getrlimit(RLIMIT_CPU, &limit);
  limit.rlim_cur = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + more_s);
  ::setrlimit(RLIMIT_CPU, &limit);
}

void run_size(int workers, const Options& options, int pipe) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const rlim_t memory = static_cast<rlim_t>(options.memory_gib * (1u << 30));
  const rlimit most{memory, memory};
  ::setrlimit(RLIMIT_AS, &most);
  Cell cell(
      {workers, std::chrono::seconds(options.steady_s), std::chrono::seconds(options.limit_s)});
  cell.run(
      [&](const std::string& name) {
        limit_processor_time(3 * options.limit_s + 30);
        tell(pipe, "begins", name);
      },
      [&](const PhaseResult& result) {
        std::string text = row(workers, result);
        text.pop_back();
        if (result.cut.empty()) return tell(pipe, "row", text);
        tell(pipe, "cut",
             fmt::format("{}: {}, after {:.2f} s of virtual time and {} turns", result.name,
                         result.cut, seconds(result.took), result.cost.turns));
      });
  if (const std::string& words = cell.last_words(); !words.empty())
    tell(pipe, "row", fmt::format("{:>7}  {}", workers, words));
}

// ---------------------------------------------------------------- the parent

std::string how_it_ended(int status, const std::string& said, const Options& options) {
  if (!said.empty()) return said;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    return fmt::format("one call takes more than {} s", options.limit_s);
  if (WIFSIGNALED(status)) return fmt::format("it ended with signal {}", WTERMSIG(status));
  return fmt::format("it ended with code {}", WEXITSTATUS(status));
}

// Prints the rows of one size as they come, and notes why some are missing.
void show_size(int workers, const Options& options, std::vector<std::string>& notes) {
  int pipe[2];
  if (::pipe(pipe) != 0) std::abort();
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    ::dup2(pipe[1], STDERR_FILENO);  // the message of a failed check comes the same way
    run_size(workers, options, pipe[1]);
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::FILE* const lines = ::fdopen(pipe[0], "r");
  char buffer[4096];
  std::vector<std::string> left = phase_names();
  std::string last_words, running;
  while (std::fgets(buffer, sizeof buffer, lines)) {
    std::string line(buffer);
    line.erase(line.find_last_not_of('\n') + 1);
    const std::string word = line.substr(0, line.find(' '));
    const std::string text = line.substr(std::min(line.size(), word.size() + 1));
    if (word == "begins") {
      running = text;
      continue;
    }
    if (word != "row" && word != "cut") {
      last_words += (last_words.empty() ? "" : " ") + line;
      continue;
    }
    if (word == "row") fmt::print("{}\n", text);
    if (word == "cut") {
      fmt::print("{}", dash(workers, running));
      notes.push_back(fmt::format("{} workers, {}", workers, text));
    }
    std::erase(left, std::exchange(running, {}));
    std::fflush(stdout);
  }
  std::fclose(lines);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!running.empty())
    notes.push_back(fmt::format("{} workers, {}: {}", workers, running,
                                how_it_ended(status, last_words, options)));
  for (const std::string& phase : left) fmt::print("{}", dash(workers, phase));
  fmt::print("\n");
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--sizes") {
      options.sizes.clear();
      std::istringstream list(argv[i + 1]);
      for (std::string size; std::getline(list, size, ',');)
        options.sizes.push_back(std::max(std::atoi(size.c_str()), Cell::least_workers));
    } else if (name == "--steady") {
      options.steady_s = std::atoi(argv[i + 1]);
    } else if (name == "--limit") {
      options.limit_s = std::atoi(argv[i + 1]);
    } else if (name == "--memory") {
      options.memory_gib = std::atof(argv[i + 1]);
    }
  }
  return options;
}

}  // namespace
}  // namespace elasticrun::bench

int main(int argc, char** argv) {
  using namespace elasticrun::bench;
  const Options options = read_options(argc, argv);
  std::vector<std::string> notes;
  print_head();
  for (const int size : options.sizes) show_size(size, options, notes);
  for (const std::string& note : notes) fmt::print("- {}\n", note);
}
