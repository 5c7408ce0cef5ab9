// Measures all-reduce in every world that comes along, as nccl-tests does: the time of one, the
// bytes of a rank over that time (algbw), and that times 2 (n - 1) / n, what a link had to carry
// whatever the size of the world (busbw).
//
//     elasticrun --np 1:4 ./allreduce_bench                          memory of the host
//     elasticrun --np 1:4 --backend nccl ./allreduce_bench --gpu     of the GPUs
//
// It is also the shortest program with a loop of its own: a size is a step, and what is measured
// next follows from the number of steps that are committed, so newcomers need no state.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "elasticrun/elasticrun.hpp"
#include "gpu_memory.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::size_t from = 1u << 10, to = 64u << 20;  // bytes
  int factor = 4;
  int repeats = 20;
  int rounds = 1;
  bool gpu = false;
};

Options read_options(int argc, char** argv) {
  Options o;
  CLI::App app{"Measures all-reduce in the worlds that elasticrun makes"};
  app.option_defaults()->always_capture_default();
  app.add_option("--from", o.from, "least bytes of a rank")->transform(CLI::AsSizeValue(false));
  app.add_option("--to", o.to, "most")->transform(CLI::AsSizeValue(false));
  app.add_option("--factor", o.factor, "from one size to the next")->check(CLI::Range(2, 1 << 20));
  app.add_option("--repeats", o.repeats, "all-reduces of a size")->check(CLI::Range(1, 1 << 20));
  app.add_option("--rounds", o.rounds, "how often all sizes")->check(CLI::Range(1, 1 << 30));
  app.add_flag("--gpu", o.gpu, "in memory of the GPU");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return o;
}

// Seconds of one all-reduce of these numbers.
double measure(elasticrun::Job& job, std::span<float> numbers, int repeats) {
  job.all_reduce(numbers);  // the first one of a size is slower, and nobody is early now
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i) job.all_reduce(numbers);
  return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
}

void report(const elasticrun::World& world, std::size_t bytes, double seconds) {
  static std::uint64_t shown = 0;
  if (world.rank() != 0) return;
  if (shown != world.generation())
    std::printf("world %llu: %d ranks\n%12s %12s %12s %12s\n",
                static_cast<unsigned long long>(world.generation()), world.size(), "bytes",
                "time us", "algbw GB/s", "busbw GB/s");
  shown = world.generation();
  const double algbw = static_cast<double>(bytes) / seconds / 1e9;
  std::printf("%12zu %12.1f %12.2f %12.2f\n", bytes, seconds * 1e6, algbw,
              algbw * 2 * (world.size() - 1) / world.size());
  std::fflush(stdout);
}

void run(const Options& options) {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = options.from; bytes <= options.to;
       bytes *= static_cast<std::size_t>(options.factor))
    sizes.push_back(std::max(bytes / sizeof(float), std::size_t{1}));
  const auto steps = static_cast<std::int64_t>(sizes.size()) * options.rounds;

  elasticrun::Job job;
  job.state("none", nullptr, 0);
  std::optional<GpuMemory> gpu;
  std::vector<float> host;
  float* numbers = nullptr;
  if (options.gpu) {
    gpu.emplace();
    numbers = static_cast<float*>(gpu->allocate(sizes.back() * sizeof(float)));
    job.stream(gpu->stream()).gradients("numbers", std::span(numbers, sizes.back()));
  } else {
    host.resize(sizes.back());
    numbers = host.data();
  }
  job.start();
  while (job.committed() < steps) {
    const std::size_t count = sizes[static_cast<std::size_t>(job.committed()) % sizes.size()];
    try {
      const double seconds = measure(job, {numbers, count}, options.repeats);
      const elasticrun::World world = job.world();
      report(world, count * sizeof(float), seconds);
      job.commit();
    } catch (const elasticrun::WorldChanged&) {
      // The size is measured again.
    }
  }
  job.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  try {
    run(options);
    return 0;
  } catch (const elasticrun::Evicted&) {
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "allreduce_bench: %s\n", error.what());
    return 1;
  }
}
