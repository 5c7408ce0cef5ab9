#!/usr/bin/env python3
"""Plants one mistake at a time in a copy of the cores; the simulator or the policies must catch it.

Every invariant has a mutation that breaks it. A rule that no mutation can break checks nothing, and
a mutation that nothing catches shows a hole. For each mutation one file is compiled again and
linked before the archives of a finished build, which takes seconds.

    tests/sim/mutations.py [--seeds 1000] [--only WORD] [--few] [--places] [--build FOLDER]
"""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Mutation(NamedTuple):
    """A mistake: `new` in place of `old`, which stands once in `file`; `program` must catch it."""

    rule: str
    file: str
    old: str
    new: str
    program: str = "simulate"
    few: bool = False  # runs before each commit
    seeds: int = 0  # more than the others need, if it takes several faults at once


def of_policies(rule: str, file: str, old: str, new: str) -> Mutation:
    """A mutation that policies.cpp must catch."""
    return Mutation(rule, file, old, new, "policies")


PROGRAMS = ("simulate", "policies")

MUTATIONS = [
    # ---- how worlds follow each other
    Mutation("generations only grow", "rendezvous/membership.cpp",
             "  last_ = last_.next();\n",
             "  if (last_.value % 4 != 2) last_ = last_.next();\n"),
    Mutation("one rank each", "rendezvous/forced.cpp",
             " && !rank_table.contains(worker) &&\n", " &&\n"),
    Mutation("who is out stays out", "rendezvous/membership.cpp",
             "  for (const WorkerId worker : leaving_) peers_.at(worker).left = true;\n", "",
             seeds=12_000),
    Mutation("a world has a source of state", "rendezvous/membership.cpp",
             "is_member(worker) && rank_table.size() > 1", "is_member(worker)"),
    Mutation("never below the minimum", "rendezvous/forced.cpp",
             "if (size < wanted_.minimum)", "if (size < 1)"),
    Mutation("a step of a worker that leaves counts", "worker/core/member_ends.cpp",
             "if (in_step && !has_reached(order))", "if (false && in_step)"),
    Mutation("never below the minimum", "src/job/core/job_staffing.cpp",
             "std::max({1, least - slots_.retired(), std::min(least, target())})", "1"),
    Mutation("never above the maximum", "rendezvous/forced.cpp",
             "        rank_table.size() < static_cast<std::size_t>(wanted_.size))\n",
             "        true)\n", few=True),
    Mutation("every decision has a reason", "src/job/core/job_staffing.cpp",
             '"replacements and new slots"', '""'),
    Mutation("never two worlds", "rendezvous/forced.cpp",
             "std::max(safe_at(), aborting_->form_at)", "aborting_->form_at"),
    Mutation("never two worlds", "worker/core/member.cpp",
             "  lease_over_ = now >= lease_ends_;\n",
             "  lease_over_ = now >= lease_ends_ + std::chrono::hours(1);\n"),
    # ---- the gate
    Mutation("nothing commits after the answer", "worker/core/member_ends.cpp",
             "  if (phase_ != Phase::apply && phase_ != Phase::swap) answer();\n",
             "  if (phase_ != Phase::apply && phase_ != Phase::swap) answer();\n"
             "  else send(wire::Answer{aborted_, committed_});\n"),
    Mutation("an answer is true", "worker/core/member_ends.cpp",
             "send(wire::Answer{aborted_, committed_, std::exchange(held_up_, {})});",
             "send(wire::Answer{aborted_, StepId(committed_.value / 2)});"),
    Mutation("one world, one update", "rendezvous/membership.cpp",
             "peers_.at(member.worker).committed == newest;",
             "peers_.at(member.worker).committed != no_state;"),
    Mutation("members are at most one step apart", "worker/core/member.cpp",
             ".size = static_cast<int>(world.members.size()),", ".size = 1,"),
    # ---- gradients in buckets
    Mutation("a bucket is whole when it starts", "worker/core/buckets.cpp",
             " || missing_[next_] > 0) return", " || missing_[next_] > 1) return", few=True),
    Mutation("members start the same buckets", "worker/core/buckets.cpp",
             "  if (!under_way() || all_started() || missing_[next_] > 0) return std::nullopt;\n",
             "  if (!under_way() || all_started()) return std::nullopt;\n"
             "  for (std::size_t i = 0; i < missing_.size(); ++i) {\n"
             "    if (missing_[i] > 0) continue;\n"
             "    missing_[i] = marked_.size() + 1;\n"
             "    ++next_;\n"
             "    return i;\n"
             "  }\n"
             "  if (missing_[next_] > 0) return std::nullopt;\n"),
    # The cut depends on what happened: on how many were made before, or on what was ready first.
    Mutation("members start the same buckets", "worker/core/buckets.cpp",
             "  std::vector<Bucket> buckets;\n",
             "  std::vector<Bucket> buckets;\n"
             "  static std::size_t cuts = 0;\n"
             "  bytes += cuts++ % 2 * bytes;\n"),
    Mutation("a bucket is whole when it starts", "worker/core/buckets.cpp",
             "  if (bucket_of_[gradient] < missing_.size()) --missing_[bucket_of_[gradient]];\n",
             "  if (bucket_of_[gradient] == missing_.size()) return true;\n"
             "  for (std::size_t& left : missing_)\n"
             "    if (left > 0) return --left, true;\n"),
    Mutation("a bucket starts once", "worker/core/buckets.cpp",
             "  std::ranges::fill(missing_, 0);\n",
             "  std::ranges::fill(missing_, 0);\n  next_ = 0;\n"),
    Mutation("an aborted step starts no bucket", "worker/core/member_ends.cpp",
             "if (std::exchange(groups_open_, false)) outbox_.push_back(AbortGroups{aborted_});",
             "groups_open_ = false;"),
    # At the end of compute the missing gradients count as ready, once.
    Mutation("healthy workers come together", "worker/core/buckets.cpp",
             "  std::ranges::fill(missing_, 0);\n", ""),
    Mutation("healthy workers come together", "worker/core/buckets.cpp",
             "  std::ranges::fill(marked_, 1);\n", ""),
    # What stood in the step before does not count.
    Mutation("a bucket is whole when it starts", "worker/core/buckets.cpp",
             "  missing_ = sizes_;\n  std::ranges::fill(marked_, 0);\n", ""),
    Mutation("a step is committed whole", "worker/core/buckets.cpp",
             "  std::ranges::fill(marked_, 0);\n  next_ = 0;\n",
             "  std::ranges::fill(marked_, 0);\n"),
    Mutation("a late gradient changes nothing", "worker/core/buckets.cpp",
             "  if (step != step_ || std::exchange(marked_[gradient], 1) != 0) return false;\n",
             "  if (std::exchange(marked_[gradient], 1) != 0) return false;\n", few=True),
    # ---- the state
    Mutation("holders hold the same", "rendezvous/forced.cpp",
             "peers_.at(worker).committed = answer.committed;",
             "peers_.at(worker).committed = std::max(newest_seen_, answer.committed);"),
    Mutation("state never goes back", "rendezvous/membership.cpp",
             "newest = std::max(newest, peers_.at(member.worker).committed);",
             "newest = newest == no_state ? peers_.at(member.worker).committed\n"
             "                  : std::min(newest, peers_.at(member.worker).committed);"),
    Mutation("never fresh weights again", "rendezvous/forced.cpp",
             "return !some_peer_has_state() && state_born_ &&",
             "return !some_peer_has_state() && !state_born_ &&"),
    Mutation("state is lost only with its last holder", "rendezvous/forced.cpp",
             "return !some_peer_has_state() && state_born_ &&",
             "return (!some_peer_has_state() || peers_.size() < 3) && state_born_ &&"),
    Mutation("state is lost only with its last holder", "src/job/core/course/saves.cpp",
             "if (is(SaveState::sealing)) attempt_.lost = why;", ""),
    Mutation("a save is one state", "worker/core/member.cpp",
             "voted_ && sums.agree_to_save(voted_->number, members);",
             "voted_ && sums.save > 0;"),
    # ---- the answer
    Mutation("each sample exactly once", "worker/core/progress.cpp",
             "after.cursor = step_range(*this, global_batch, samples).last;",
             "after.cursor = step_range(*this, global_batch, samples).last;\n"
             "  if (step % 50 == 7 && after.cursor > 1) --after.cursor;"),
    Mutation("success means trained", "rendezvous/forced.cpp",
             "  if (left && entered_) entered_->erase(gone.worker);\n",
             "  if (left) entered_.emplace();\n", seeds=12_000),
    Mutation("success means trained", "src/job/core/job_worker_ends.cpp",
             "    if (member) keep_failure(fmt::format(\"{} {}\", name, why), end, true);\n", "", seeds=12_000),
    Mutation("every epoch has its end", "rendezvous/training.cpp",
             "  if (rank_table_.empty() || done_.size() < rank_table_.size()) return;\n",
             "  if (rank_table_.empty() || done_.empty()) return;\n"
             "  if (const auto any = done_.begin()->second; any > released_call_)\n"
             "    for (const WorkerId w : rank_table_.order()) done_.try_emplace(w, any);\n"),
    # ---- who pays for which trouble
    Mutation("healthy workers come together", "rendezvous/overdue.cpp",
             "  const std::vector<WorkerId> stuck = transfer_.stuck();\n",
             "  const std::vector<WorkerId> stuck;\n", few=True),
    Mutation("newcomers cost little", "rendezvous/blame.cpp",
             "    if (newcomers.contains(one.worker)) {\n",
             "    if (newcomers.contains(one.worker)) continue;\n"
             "    if (newcomers.contains(one.worker)) {\n", few=True),
    Mutation("nobody is killed for another's fault", "rendezvous/blame.cpp",
             "  auto blamed = complaints_.verdict(newcomers, members, only_holder(), aborted.somebody_died);\n",
             "  std::vector<Blamed> blamed;\n"
             "  if (aborted.messenger != WorkerId()) blamed.push_back({aborted.messenger, \"it\"});\n"),
    Mutation("one worker in a slot", "src/job/core/job_worker_ends.cpp",
             "  if (!end.still_dies) return workers_.erase(id);\n", "  return workers_.erase(id);\n"),
    # ---- the end
    Mutation("a job ends once", "src/job/core/job_ending.cpp",
             "  ending_.happen(course::PhaseEvent::agents_gone);\n", ""),
    Mutation("a job that ends begins nothing", "src/job/core/job_staffing.cpp",
             "  if (ending_.ending() || ending_.is(course::Phase::trained) ||",
             "  if (ending_.is(course::Phase::trained) ||"),
    Mutation("documented exit codes", "src/job/core/course/ending.cpp",
             "  const int own = row_of(cause).exit_code;\n",
             "  const int own = cause == Cause::too_many_failures ? 77 : row_of(cause).exit_code;\n"),
    Mutation("the last words tell why", "src/job/core/course/ending.cpp",
             "  words_ = std::move(words);\n", ""),
    Mutation("nothing is left behind", "launcher/agent/agent_core.cpp",
             "  actions_.emplace_back(KillTree{worker.first});\n", ""),
    Mutation("nothing hangs", "rendezvous/liveness.cpp",
             "  if (doing.phase == Phase::elsewhere) return false;\n",
             "  if (doing.phase != Phase::reducing) return false;\n"),
    Mutation("no busy waiting", "src/job/core/course/ending.cpp",
             "  const bool waits = is(Phase::starting) || is(Phase::short_of);\n",
             "  const bool waits = true;\n", seeds=12_000),
    # ---- who chooses a size
    of_policies("sizes are lawful", "src/autoscaler/fit_text.cpp",
                "  settled_ = here.setting;\n  searching_ = false;\n",
                "  if (std::exchange(searching_, false)) settled_ = here.setting;\n"),
    of_policies("no internal error", "src/autoscaler/batch_plan.cpp",
                "    *batch = std::max<std::int64_t>(*batch, 0);\n", "    (void)batch;\n"),
    of_policies("one change at a time", "src/autoscaler/autoscaler.cpp",
                '  if (changing_) return waiting(size_, "a change is under way");\n', ""),
    of_policies("changes keep their distance", "src/autoscaler/autoscaler.cpp",
                "  if (now < settled)\n", "  if (now < settled - limits_.settle / 4)\n"),
    of_policies("no busy waiting", "src/autoscaler/throughput.cpp",
                "  return at > view.now ? at : never;\n", "  return at;\n"),
    of_policies("sizes are lawful", "src/autoscaler/autoscaler.cpp",
                "  limits_.sizes.clear();\n", ""),
    of_policies("rounds make sense", "src/autoscaler/samples.cpp",
                "  if (world.step_time <= Duration::zero()) return {};", "  //"),
    of_policies("figures are numbers", "src/autoscaler/goodput.cpp",
                "if (std::isinf(scale)) return", "if (scale < 0) return"),
    of_policies("no host that is gone", "src/job/core/workers/slots.cpp",
                "{ slots_ = std::move(slots); }",
                "{\n  if (slots.size() >= slots_.size()) slots_ = std::move(slots);\n}"),
]


def strays(tree: Path) -> list[str]:
    """The mutations whose `old` does not stand exactly once in the code."""
    return [f"{mutation.file}: '{mutation.old.strip()}' does not stand there once; "
            f"the mutation for '{mutation.rule}' must follow the code"
            for mutation in MUTATIONS
            if (tree / mutation.file).read_text().count(mutation.old) != 1]


def write(file: Path, text: str) -> None:
    """Leaves a file as it is that has this text already."""
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


class Workshop:
    """Makes programs with a mistake: one file is compiled again, the rest is the build's."""

    def __init__(self, build: Path) -> None:
        self.build = build
        self.commands = {program: self.commands_for(program) for program in PROGRAMS}

    def commands_for(self, program: str) -> list[str]:
        done = subprocess.run(["ninja", "-t", "commands", f"bin/{program}"], cwd=self.build,
                              check=True, capture_output=True, text=True)
        return done.stdout.splitlines()

    def compiling(self, mutation: Mutation) -> list[str]:
        """The command that compiles the file, alone or in a unity of several."""
        file = str(ROOT / mutation.file)
        for line in self.commands[mutation.program]:
            words = shlex.split(line)
            if words[-1] == file or ("/Unity/" in words[-1]
                                     and f'"{file}"' in Path(words[-1]).read_text()):
                return words
        raise LookupError(f"nothing compiles {file}")

    def plant(self, mutation: Mutation, number: int) -> Path:
        """The program with the mistake; its object precedes the archives, so it is linked."""
        folder = self.build / "mutations" / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        source, made = folder / Path(mutation.file).name, folder / "mutated.o"
        write(source, (ROOT / mutation.file).read_text().replace(mutation.old, mutation.new))
        commands = self.commands[mutation.program]
        words = self.compiling(mutation)
        if words[-1] != str(ROOT / mutation.file):  # the others of the unity define what it needs, once
            unity = Path(words[-1]).read_text().replace(str(ROOT / mutation.file), str(source))
            source = folder / "unity.cpp"
            write(source, unity)
        words = words[:-1] + [str(source), "-w"]
        words[words.index("-o") + 1] = str(made)
        words[words.index("-MF") + 1] = str(folder / "mutated.d")
        subprocess.run(words, cwd=self.build, check=True)
        program = folder / mutation.program
        linking = commands[-1].replace(f"-o bin/{mutation.program}", f"{made} -o {program}")
        subprocess.run(linking, cwd=self.build, shell=True, check=True)
        return program


def broken_rules(program: Path, mutation: Mutation, seeds: int) -> dict[str, int]:
    """How often each rule broke; the simulator stops when the mutation's rule breaks."""
    how = ["--until", mutation.rule] if mutation.program == "simulate" else ["--rules"]
    done = subprocess.run([program, *how, "1", str(seeds)],
                          capture_output=True, text=True, check=False, timeout=1200)
    rules = {}
    for line in done.stdout.splitlines()[:-1]:
        name, count = line.rsplit(": ", 1)
        rules[name] = int(count)
    if done.returncode not in (0, 1):  # the mutation ran into a check of the cores
        rules[f"{program} ended with {done.returncode}"] = 1
    return rules


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1000, help="to run with each (1000)")
    parser.add_argument("--only", default="", help="a word of the rule's name")
    parser.add_argument("--few", action="store_true", help="only those that stand for the others")
    parser.add_argument("--places", action="store_true", help="only see that the code has them")
    parser.add_argument("--build", type=Path, default=ROOT / "build",
                        help="where the simulator was built (build)")
    options = parser.parse_args()
    if wrong := strays(ROOT):
        sys.exit("\n".join(wrong))
    if options.places:
        return 0
    workshop = Workshop(options.build.resolve())
    chosen = [(number, mutation) for number, mutation in enumerate(MUTATIONS)
              if options.only in mutation.rule and (mutation.few or not options.few)]
    missed = 0
    for number, mutation in chosen:
        rules = broken_rules(workshop.plant(mutation, number), mutation,
                             max(options.seeds, mutation.seeds))
        caught = mutation.rule in rules
        missed += not caught
        print(f"{'caught' if caught else 'MISSED'}  {mutation.rule}: {rules}", flush=True)
    print(f"{missed} of {len(chosen)} mutations missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
