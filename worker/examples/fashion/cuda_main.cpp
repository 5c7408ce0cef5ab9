// The example of main.cpp on GPUs: what is different when weights and gradients are in the
// GPU's memory, marked (1) to (3) below. Everything else is that page.
//
//     elasticrun --np 1:8 --max-batch 4096 ./fashion_cuda --hidden 16384
//
// --hidden says how busy a GPU is: a step multiplies matrices of batch x 784 x hidden, three times.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <vector>

#include "cuda_network.hpp"
#include "elasticrun/elasticrun.hpp"
#include "epoch_loss.hpp"
#include "network.hpp"
#include "options.hpp"
#include "pretend.hpp"
#include "record.hpp"

namespace {

constexpr double momentum = 0.9;
constexpr std::int64_t tuned_for = 32;

template <class T>
void train(const fashion::Options& options) {
  // (1) The GPU of this worker is the one that the library takes as well.
  const char* const local_rank = std::getenv("LOCAL_RANK");
  fashion_cuda::choose_gpu(local_rank ? std::atoi(local_rank) : 0);
  const fashion_cuda::Images images(fashion::read_dataset(options.data, "train", options.samples));
  const fashion_cuda::Images test(fashion::read_dataset(options.data, "t10k"));
  fashion_cuda::Network<T> network(options.hidden,
                                   fashion::Network<T>(options.hidden, options.seed).weights());
  fashion::EpochLoss loss;
  fashion::PretendDevice device(options);
  fashion::Record record(options.record);

  // (2) The stream on which compute and apply work, then memory of the GPU like any other.
  elasticrun::Job job;
  job.stream(network.stream())
      .state("weights", network.weights())
      .state("velocity", network.velocity())
      .state("loss", std::span(&loss, 1))
      .gradients("gradients", network.gradients());

  job.on_epoch([&](const elasticrun::World& world) {
    if (world.rank() != 0) return;
    loss.print(network.evaluate(test).hits / static_cast<double>(test.size()), world.size());
    if (options.save.empty()) return;
    const std::vector<T> weights = network.copy_of_weights();
    fashion::write_file(options.save, std::as_bytes(std::span(weights)));
  });

  // (3) Both return when their work is enqueued: the library's follows it on the stream.
  const auto compute = [&](elasticrun::Step& step) {
    const auto begin = std::chrono::steady_clock::now();
    step.sum("loss", network.backward(images, step.samples()).loss);
    device.pass_time(begin, step.samples().size(), job.world().rank(), step.number());
    record.computed(job.world(), step);
  };
  const auto apply = [&](elasticrun::Step& step) {
    network.descend(options.learning_rate * step.lr_factor(), momentum);
    loss.add(step);
    record.applied(job.world(), step);
  };

  job.train({.samples = static_cast<std::int64_t>(images.size()),
             .epochs = options.epochs,
             .batch = options.batch,
             .base_batch = tuned_for,
             .seed = options.seed},
            compute, apply);
  const std::vector<T> weights = network.copy_of_weights();
  record.finished(job.world(), std::as_bytes(std::span(weights)));
}

}  // namespace

int main(int argc, char** argv) {
  const fashion::Options options = fashion::read_options(argc, argv);
  try {
    options.double_precision ? train<double>(options) : train<float>(options);
    return 0;
  } catch (const elasticrun::Evicted&) {
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fashion_cuda: %s\n", error.what());
    return 1;
  }
}
