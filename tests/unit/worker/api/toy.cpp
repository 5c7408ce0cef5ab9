// A worker for the tests: it learns a few doubles, logs every step that it computes and applies,
// and can be told to die or wait at a given place.
//
// Lines on standard output, one write each:  computed GENERATION STEP SAMPLE...
//   applied GENERATION STEP SIZE   holding STEP   epoch DONE RANK SIZE GENERATION   saved DONE
//   counted HITS   evicted REASON   changed STEP COMMITTED SIZE   failed WHY   left
//   missed EPOCH   ended EPOCH
//   final CALL RANK WEIGHT...  (weights as hexadecimal floats, then buffer, then the sum of losses)
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elasticrun/elasticrun.hpp>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "worker/examples/allreduce_bench/gpu_memory.hpp"

namespace {

using Weights = std::array<double, 8>;

struct Options {
  std::map<std::string, std::string> given;
  std::int64_t number(const std::string& name, std::int64_t otherwise) const {
    const auto found = given.find(name);
    return found == given.end() ? otherwise : std::stoll(found->second);
  }
  bool at(const std::string& name, const std::string& place) const {
    const auto found = given.find(name);
    return found != given.end() && found->second == place;
  }
};

Options options;

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::_Exit(99);
}

// --change epoch|between: changes state where that is not allowed.
// --die PLACE:STEP, --throw PLACE:STEP, and --hold PLACE:STEP and --then PLACE:STEP, which hold. A
// step that is repeated holds once.
void pass(const char* place, std::int64_t step) {
  const std::string here = std::string(place) + ":" + std::to_string(step);
  if (options.at("--die", here)) ::kill(::getpid(), SIGKILL);
  if (options.at("--throw", here)) throw std::runtime_error("told to throw at " + here);
  for (const char* const hold : {"--hold", "--then"}) {
    if (!options.at(hold, here)) continue;
    options.given.erase(hold);
    say("holding " + std::to_string(step));
    char go = 0;
    if (::read(STDIN_FILENO, &go, 1) < 0) std::_Exit(98);
  }
}

// --flip WHAT:STEP: flips a bit once, as failing memory does.
void flip(const char* what, std::int64_t step, double& number) {
  if (!options.at("--flip", std::string(what) + ":" + std::to_string(step))) return;
  number = std::nextafter(number, 2 * number + 1);
  options.given.erase("--flip");
}

double feature(std::uint64_t sample, std::size_t d) {
  return std::sin(1.7 * static_cast<double>(sample) + static_cast<double>(d));
}

struct Model {
  Weights weights{}, gradients{};
  std::array<double, 1> running{1};
  std::unique_ptr<double> losses;  // with TOY_SOURCE made in the first step
  std::int64_t applied = 0;        // steps, which the source carries as an object
  std::array<double, 1> never{99};

  // Adds the gradient of a quadratic loss to `sum`; returns the loss.
  double add_gradients(std::uint64_t sample, Weights& sum) const {
    double loss = 0;
    for (std::size_t d = 0; d < weights.size(); ++d) {
      const double away = weights[d] - feature(sample, d);
      sum[d] += away;
      loss += away * away / 2;
    }
    return loss;
  }
  void descend(double rate) {
    for (std::size_t d = 0; d < weights.size(); ++d) weights[d] -= rate * gradients[d];
  }
  void say_final(std::int64_t call, int rank) const {
    std::string line = "final " + std::to_string(call) + " " + std::to_string(rank);
    std::array<char, 64> text{};
    for (const double x : weights) {
      std::snprintf(text.data(), text.size(), " %a", x);
      line += text.data();
    }
    std::snprintf(text.data(), text.size(), " %a %a", running[0], losses ? *losses : 0.0);
    say(line + text.data());
  }
  void make_losses() {
    if (!losses) losses = std::make_unique<double>(0);
  }
  void check_applied(std::int64_t step) const {
    if (applied != step)
      throw std::logic_error(std::to_string(applied) + " steps are applied, and step " +
                             std::to_string(step) + " begins");
  }
};

// The memory of the model when TOY_GPU is set. It is on the fake GPU, so the program can access it
// directly once it has waited for its stream.
std::optional<GpuMemory> gpu;

void wait_for_gpu() {
  if (gpu) gpu->wait();
}

// --end reduce|barrier|none: the end of an epoch is a step, with a collective and one more.
void end_epoch(elasticrun::Job& job, Model& model, std::int64_t done) {
  try {
    double hits = job.world().rank() + 1;
    if (options.at("--end", "reduce")) job.all_reduce(hits);
    if (options.at("--end", "barrier")) job.barrier();
    say("counted " + std::to_string(static_cast<int>(hits)));
    pass("counted", done);
    job.barrier();
  } catch (const elasticrun::WorldChanged&) {
    say("missed " + std::to_string(done));
    pass("missed", done);
  }
  const elasticrun::World world = job.world();
  const std::string applied = "applied " + std::to_string(world.generation()) + " " +
                              std::to_string(job.committed()) + " " + std::to_string(world.size());
  if (!job.reduce()) return;
  ++model.applied;
  say(applied);
  say("ended " + std::to_string(done));
  pass("ended", done);
  job.commit();
}

// The same as job.train, as a loop. TOY_STEPS chooses it, and so does --end.
template <class Compute, class Apply, class Epoch>
void take_steps(elasticrun::Job& job, Model& model, const elasticrun::TrainOptions& train,
                const Compute& compute, const Apply& apply, const Epoch& epoch) {
  for (job.begin(train); std::optional<elasticrun::Step> step = job.next();) {
    if (step->epochs_done() > 0) {
      epoch(job.world(), step->epochs_done());
      if (train.epoch_steps != 0) end_epoch(job, model, step->epochs_done());
      continue;
    }
    if (!step->samples().empty()) compute(*step);
    if (!step->last_piece() || !job.reduce()) continue;
    apply(*step);
    job.commit();
  }
}

void train(elasticrun::Job& job, Model& model) {
  const auto epoch = [&](const elasticrun::World& world, std::int64_t done) {
    say("epoch " + std::to_string(done) + " " + std::to_string(world.rank()) + " " +
        std::to_string(world.size()) + " " + std::to_string(world.generation()));
    pass("epoch", done);
    if (world.rank() == 0) say("saved " + std::to_string(done));
    if (options.at("--change", "epoch")) model.weights[0] += 1;
  };
  job.on_epoch(epoch);
  const auto compute = [&](elasticrun::Step& step) {
    std::string line = "computed " + std::to_string(job.world().generation()) + " " +
                       std::to_string(step.number());
    for (const std::uint64_t sample : step.samples()) line += " " + std::to_string(sample);
    say(line);
    pass("compute", step.number());
    wait_for_gpu();
    if (std::getenv("TOY_SOURCE")) model.check_applied(step.number());
    for (const char name : options.given["--names"]) step.sum(std::string(1, name).c_str(), 1);
    model.gradients = {};
    double mean = 0, odd = 0;
    for (const std::uint64_t sample : step.samples()) {
      step.sum("loss", model.add_gradients(sample, model.gradients));
      mean += feature(sample, 0);
      odd += static_cast<double>(sample % 2);
    }
    const auto n = static_cast<double>(step.samples().size());
    for (double& g : model.gradients) g /= n;
    model.running[0] = 0.9 * model.running[0] + 0.1 * mean / n;
    if (step.number() >= 3) step.sum("odd", odd);
    if (std::getenv("TOY_BUCKETS")) {
      // From four threads, the last registered one first; the second is elsewhere, and sometimes it
      // is left to the library.
      static std::optional<elasticrun::Step> before;
      if (before) before->ready("first");  // of a step that is over
      before.emplace(step);
      std::vector<std::thread> hooks;
      hooks.emplace_back([&] { step.unset("never"); });
      hooks.emplace_back([&] { step.ready("third"); });
      static std::array<double, 3> elsewhere;
      if (step.number() % 3 > 0)
        hooks.emplace_back([&] {
          const auto second = std::span(model.gradients).subspan(2, 3);
          std::ranges::copy(second, elsewhere.begin());
          std::ranges::fill(second, -1);
          step.ready(std::array{step.gradient("second")}, std::array<const void*, 1>{&elsewhere});
        });
      hooks.emplace_back([&] { step.ready(0); });
      for (std::thread& hook : hooks) hook.join();
    }
    pass("computed", step.number());
  };
  const auto apply = [&](elasticrun::Step& step) {
    pass("apply", step.number());
    wait_for_gpu();
    if (std::getenv("TOY_BUCKETS") &&
        (!step.is_set("third") || step.is_set("never") || model.never[0] != 0))
      throw std::logic_error("what is set is not known");
    model.descend(0.1 * step.lr_factor());
    model.make_losses();
    ++model.applied;
    *model.losses += step.total("loss") + 1000 * step.total("odd");
    say("applied " + std::to_string(job.world().generation()) + " " +
        std::to_string(step.number()) + " " + std::to_string(job.world().size()));
    if (step.ends_epoch()) *model.losses += 0.5;
    flip("weights", step.number(), model.weights[3]);
    flip("buffer", step.number(), model.running[0]);
    pass("applied", step.number());
  };
  for (std::int64_t call = 1; call <= options.number("--calls", 1); ++call) {
    const elasticrun::TrainOptions wanted{
        .samples = options.number("--samples", 100),
        .epochs = options.number("--epochs", 2),
        .batch = options.number("--batch", 0),
        .base_batch = options.number("--base-batch", 0),
        .micro_batch = options.number("--micro-batch", 0),
        .seed = static_cast<std::uint64_t>(options.number("--seed", 7) + call),
        .bucket_bytes = std::getenv("TOY_BUCKETS") ? 32 : 0,
        .epoch_steps = options.given.contains("--end") ? 1 : 0};
    if (std::getenv("TOY_STEPS") || wanted.epoch_steps != 0)
      take_steps(job, model, wanted, compute, apply, epoch);
    else
      job.train(wanted, compute, apply);
    wait_for_gpu();
    model.say_final(call, job.world().rank());
    pass("between", call);
    if (options.at("--change", "between")) model.weights[0] += 1;
  }
}

// What the job carries when TOY_SOURCE is set: an array that the first step makes, and an object.
void add_source(elasticrun::Job& job, Model& model) {
  job.state_source({.list =
                        [&](elasticrun::Listing& listing) {
                          if (model.losses)
                            listing.array("losses", std::span(model.losses.get(), 1));
                          listing.objects(std::as_bytes(std::span(&model.applied, 1)));
                        },
                    .make_room =
                        [&](std::span<const elasticrun_array> wanted) {
                          if (wanted.empty()) return model.losses.reset();
                          if (wanted.size() != 1 || wanted[0].name != std::string("losses"))
                            throw std::logic_error("other arrays than these are wanted");
                          model.make_losses();
                        },
                    .take_objects =
                        [&](std::span<const std::byte> bytes) {
                          std::memcpy(&model.applied, bytes.data(), sizeof model.applied);
                        }});
}

// --after reduce|broadcast|barrier: a collective between the last commit and finish.
void evaluate(elasticrun::Job& job) {
  pass("after", job.committed());
  double hits = job.world().rank() + 1;
  if (options.at("--after", "reduce")) job.all_reduce(std::span(&hits, 1));
  if (options.at("--after", "broadcast")) job.broadcast(&hits, sizeof hits, 0);
  if (options.at("--after", "barrier")) job.barrier();
  if (options.given.contains("--after")) say("counted " + std::to_string(static_cast<int>(hits)));
  pass("counted", job.committed());
  job.finish();
}

std::string changed(const elasticrun::Job& job, std::int64_t step) {
  return "changed " + std::to_string(step) + " " + std::to_string(job.committed()) + " " +
         std::to_string(job.world().size());
}

// The same model in a loop of its own: sample s of step t is t * batch + s. --undo yes: the program
// undoes what it has applied, as it would for a library that does not.
void own_loop(elasticrun::Job& job, Model& model) {
  job.start();
  const std::int64_t steps = options.number("--steps", 20), batch = options.number("--batch", 12);
  while (job.committed() < steps) {
    const Weights before = model.weights;
    const std::int64_t step = job.committed();
    try {
      model.gradients = {};
      int samples = 0;
      std::string line =
          "computed " + std::to_string(job.world().generation()) + " " + std::to_string(step);
      for (std::int64_t s = job.world().rank(); s < batch; s += job.world().size()) {
        model.add_gradients(static_cast<std::uint64_t>(step * batch + s), model.gradients);
        line += " " + std::to_string(step * batch + s);
        ++samples;
      }
      pass("compute", step);
      if (std::getenv("TOY_SOURCE")) model.check_applied(step);
      const std::span all(model.gradients);
      if (step % 2 == 0) {
        job.all_reduce(all);
      } else {
        job.all_reduce_start(all.last(5));
        job.all_reduce_start(all.first(3));
        if (step % 4 == 1) job.all_reduce_wait();
        job.barrier();  // waits as well
      }
      say(line);
      for (double& g : model.gradients) g /= static_cast<double>(batch);
      pass("apply", step);
      const std::uint64_t generation = job.world().generation();
      const int size = job.world().size();
      model.descend(0.1);
      model.make_losses();
      ++model.applied;
      flip("weights", step, model.weights[3]);
      pass("applied", step);
      job.samples(samples);
      job.commit();
      say("applied " + std::to_string(generation) + " " + std::to_string(step) + " " +
          std::to_string(size));
    } catch (const elasticrun::WorldChanged&) {
      wait_for_gpu();  // the library reads the state in the order of the stream
      if (options.at("--undo", "yes")) model.weights = before;
      say(changed(job, step));
    }
    if (options.at("--leave", std::to_string(step))) {
      job.leave();
      say("left");
      return;
    }
  }
  for (bool finished = false; !finished;) {
    try {
      evaluate(job);
      finished = true;
    } catch (const elasticrun::WorldChanged&) {
      say(changed(job, job.committed()));
    }
  }
  model.say_final(1, job.world().rank());
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) options.given[argv[i]] = argv[i + 1];
  if (std::getenv("TOY_GPU")) gpu.emplace();
  Model own;
  Model& model = gpu ? *new (gpu->allocate(sizeof(Model))) Model : own;
  // Different first weights show that rank 0's are sent to all.
  model.weights[0] = static_cast<double>(options.number("--first-weight", 0));
  try {
    elasticrun::Job job;
    if (gpu) job.stream(gpu->stream());
    job.state("weights", std::span(model.weights));
    if (std::getenv("TOY_SOURCE")) {
      add_source(job, model);
    } else {
      model.make_losses();
      job.state("losses", std::span(model.losses.get(), 1));
    }
    job.buffers("running", std::span(model.running));
    const std::span gradients(model.gradients);
    if (std::getenv("TOY_BUCKETS"))
      job.gradients("first", gradients.first(2))
          .gradients("second", gradients.subspan(2, 3))
          .gradients("third", gradients.subspan(5))
          .gradients("never", std::span(model.never));
    else
      job.gradients("gradients", gradients);
    if (options.at("--mode", "loop"))
      own_loop(job, model);
    else
      train(job, model);
    return 0;
  } catch (const elasticrun::Evicted& evicted) {
    say(std::string("evicted ") + evicted.what());
    return 0;
  } catch (const std::exception& error) {
    say(std::string("failed ") + error.what());
    return 1;
  }
}
