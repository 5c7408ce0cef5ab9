// A training that ends in every way, at every place: python_programs/ways_to_end.py in C++.
//
//     ways_to_end FORM PLACE ACT
//
// Each sample adds its number to the weight, so that the weight tells which samples have counted.
// Variables: SAMPLES, STEP (in which it acts or leaves), PAUSE_MS (of each step). More ACTs: hold
// (waits for the file `go`), nothread (from then on this process gets no thread, as in a container
// with a low limit). PLACE early: the first rank leaves before its first step. At the end each rank
// writes "final WEIGHT".
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "elasticrun/elasticrun.hpp"

namespace {

int variable(const char* name, int standard) {
  const char* const text = std::getenv(name);
  return text ? std::atoi(text) : standard;
}

const std::int64_t samples = variable("SAMPLES", 160), acts_in_step = variable("STEP", 10);
constexpr std::int64_t batch = 4;

bool exists(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }

void wait_a_moment() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

// One line of text in a new file. False: the file is there.
bool made(const char* file, const std::string& text) {
  const int fd = ::open(file, O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (fd < 0) return false;
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return ::close(fd) == 0 && whole;
}

void forbid_threads() {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, std::size_t{1} << 60);  // no address space has room
  ::pthread_setattr_default_np(&attributes);
}

void pause() {
  static const int pause_ms = variable("PAUSE_MS", 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
}

double mean_of(std::span<const std::uint64_t> numbers) {
  double sum = 0;
  for (const std::uint64_t number : numbers) sum += static_cast<double>(number);
  return numbers.empty() ? 0 : sum / static_cast<double>(numbers.size());
}

class Program {
 public:
  Program(std::string form, std::string place, std::string act)
      : form_(std::move(form)), place_(std::move(place)), act_(std::move(act)) {
    all_ = act_.starts_with("all:");
    if (all_) act_ = act_.substr(4);
  }

  void run() {
    job_.state("weight", std::span(&weight_, 1));
    if (form_ != "own") job_.gradients("gradient", std::span(&gradient_, 1));
    act("opened", std::atoi(std::getenv("RANK")));
    if (form_ == "calls") calls();
    if (form_ == "steps") steps();
    if (form_ == "own") own();
    if (place_ == "early" && first_) return;
    const int rank = job_.world().rank();
    act("left", rank);
    act("end", rank);
    std::printf("final %.3f\n", weight_);
    std::fflush(stdout);
    if (rank == 0) made("model", "whole");
  }

 private:
  void act(const std::string& place, int rank) {
    if (place != place_ || (!all_ && rank != 0)) return;
    if (!all_ && place == "between" && !made("acted", std::to_string(::getpid()))) return;
    if (place == "step") await_all(rank);
    static const std::map<std::string, int> codes{{"zero", 0}, {"three", 3}};
    static const std::map<std::string, int> signals{{"crash", SIGSEGV}, {"kill", SIGKILL}};
    if (codes.contains(act_)) std::_Exit(codes.at(act_));
    if (act_ == "raise") throw std::runtime_error("of the program");
    if (signals.contains(act_)) {
      std::signal(SIGSEGV, SIG_DFL);  // a sanitizer has a handler for it
      ::kill(::getpid(), signals.at(act_));
    }
    while (act_ == "hold" && !exists("go")) wait_a_moment();
    if (act_ == "nothread") forbid_threads();
    if (act_ == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }

  // Until each rank is here, so that none learns of the end of another one before its own.
  void await_all(int rank) const {
    const auto mark = [](int one) { return "at-" + std::to_string(one); };
    made(mark(rank).c_str(), "");
    for (int other = 0; other < job_.world().size(); ++other)
      while (!exists(mark(other))) wait_a_moment();
  }

  // Until the worker that ends between two calls of train is dead.
  void evaluate() const {
    while (place_ == "between" && !all_) {
      int pid = 0;
      if (std::FILE* const file = std::fopen("acted", "r")) {
        if (std::fscanf(file, "%d", &pid) != 1) pid = 0;
        std::fclose(file);
      }
      if (pid > 0 && !exists("/proc/" + std::to_string(pid))) return;
      wait_a_moment();
    }
  }

  // Acts in that step, or leaves.
  bool stops(std::int64_t step) {
    if (step == acts_in_step) act("step", job_.world().rank());
    const bool early = place_ == "early" && first_;
    if (!early && (place_ != "left" || step < acts_in_step)) return false;
    job_.leave();
    return true;
  }

  void add(std::int64_t global_batch) { weight_ += gradient_ * static_cast<double>(global_batch); }

  void train() {
    job_.train(
        {.samples = samples, .batch = batch},
        [&](elasticrun::Step& step) {
          pause();
          gradient_ = mean_of(step.samples());
          if (step.number() == acts_in_step) act("step", job_.world().rank());
        },
        [&](elasticrun::Step& step) { add(step.global_batch()); });
  }

  void calls() {
    train();
    act("between", job_.world().rank());
    evaluate();
    train();
  }

  void steps() {
    job_.begin({.samples = samples, .batch = batch});
    while (const auto step = job_.next()) {
      if (step->epochs_done() > 0) continue;
      if (stops(step->number())) return;
      pause();
      gradient_ = mean_of(step->samples());
      if (!step->last_piece() || !job_.reduce()) continue;
      add(step->global_batch());
      job_.commit();
    }
  }

  void own() {
    job_.start();
    while (job_.committed() < samples / (2 * batch)) {
      if (stops(job_.committed())) return;
      try {
        pause();
        double count = 1;
        job_.all_reduce(count);
        job_.samples(batch);
        weight_ += count / job_.world().size();
        job_.commit();
      } catch (const elasticrun::WorldChanged&) {
      }
    }
    job_.finish();
  }

  std::string form_, place_, act_;
  bool all_ = false;  // each rank acts, and not only the first one
  const bool first_ = std::atoi(std::getenv("RANK")) == 0;  // of the workers started first
  double weight_ = 0, gradient_ = 0;
  elasticrun::Job job_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("ways_to_end FORM PLACE ACT\n", stderr);
    return 2;
  }
  try {
    Program(argv[1], argv[2], argv[3]).run();
    return 0;
  } catch (const elasticrun::Evicted&) {
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ways_to_end: %s\n", error.what());
    return 1;
  }
}
