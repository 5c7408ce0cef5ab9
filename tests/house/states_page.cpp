// Writes the manual page of the states, elasticrun-states(7), from the tables of the job's core.
//
//     build/bin/states_page > man/elasticrun-states.7
//     build/bin/states_page --check man/elasticrun-states.7
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "job/core/course/ending.hpp"
#include "job/core/course/phase.hpp"
#include "job/core/course/saves.hpp"
#include "job/core/hosts/hosts.hpp"
#include "job/core/workers/workers.hpp"

namespace {

using namespace elasticrun::job;
using namespace elasticrun::job::hosts;
using namespace elasticrun::job::workers;
using namespace elasticrun::job::course;

constexpr std::string_view head =
    R"(.\" Made by build/bin/states_page from the tables in src/job/core: change those.
.Dd November 23, 2026
.Dt ELASTICRUN-STATES 7
.Os
.Sh NAME
.Nm elasticrun-states
.Nd the states of a job, of its hosts, workers and saves
.Sh DESCRIPTION
.Xr elasticrun 1
keeps one state for the job, one for each host, one for each worker, and one for the
save that is under way.
Below each state stand its meaning, the events that can change it, and the state
that follows each of them.
No other event changes the state.
)";

constexpr std::string_view tail = R"(.Sh SEE ALSO
.Xr elasticctl 1 ,
.Xr elasticrun 1 ,
.Xr elasticrun-policies 7
)";

template <class States, class Turns, class Transitions>
void write(std::string& page, std::string_view title, const States& states, const Turns& turns,
           const Transitions& transitions) {
  page += fmt::format(".Sh {}\n.Bl -tag -width indent\n", title);
  for (const auto& state : states) {
    page += fmt::format(".It Cm {}\n{}.\n", state.name, state.meaning);
    std::string rows;
    for (const auto& row : transitions)
      if (row.from == state.value)
        rows += fmt::format(".It {} Ta {}\n", name_in(turns, row.turn), name_in(states, row.to));
    if (!rows.empty())
      page += fmt::format(
          ".Bl -column -compact \"the last worker has gone\" \"short of workers\"\n{}.El\n", rows);
  }
  page += ".El\n";
}

std::string page() {
  std::string page(head);
  write(page, "THE JOB", phases, phase_events, phase_transitions);
  write(page, "A HOST", host_states, host_turns, host_transitions);
  write(page, "A WORKER", worker_states, worker_turns, worker_transitions);
  write(page, "A SAVE", save_states, save_turns, save_transitions);
  page += ".Sh HOW A JOB ENDS\nEvery cause of the end, with its exit code.\n";
  page += ".Bl -column -compact \"its own\" \"why\"\n";
  for (const CauseRow& row : causes)
    page += fmt::format(".It {} Ta {}\n",
                        row.exit_code == own_code ? "its own" : std::to_string(row.exit_code),
                        row.when);
  page += ".El\n";
  return page + std::string(tail);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string made = page();
  if (argc < 3 || std::string_view(argv[1]) != "--check") {
    std::fputs(made.c_str(), stdout);
    return 0;
  }
  std::ifstream in(argv[2]);
  if (std::string(std::istreambuf_iterator<char>(in), {}) == made) return 0;
  std::fprintf(stderr, "%s is not what the tables say; build/bin/states_page > %s\n", argv[2],
               argv[2]);
  return 1;
}
