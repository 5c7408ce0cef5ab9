// Elastic training, on one page: a small network learns Fashion-MNIST on as many workers as there
// are.
//
//     ./fashion                                        alone: a world of one
//     elasticrun --np 1:8 --max-batch 256 ./fashion    with others that come and go
//
// What makes it elastic, marked (1) to (5) below: it registers what survives, computes without
// changing that, changes it in apply only, keeps what happens between steps in on_epoch, and
// multiplies its learning rate with lr_factor. There is no code for workers that come, go or die,
// none that splits the data, and no checkpoint: newcomers get the registered state from the
// members, and a step whose reduction failed is repeated with the same samples.
#include <cblas.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

#include "elasticrun/elasticrun.hpp"
#include "epoch_loss.hpp"
#include "idx.hpp"
#include "network.hpp"
#include "options.hpp"
#include "pretend.hpp"
#include "record.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr double momentum = 0.9;
constexpr std::int64_t tuned_for = 32;  // the global batch that --lr is meant for

template <class T>
void train(const fashion::Options& options) {
  const auto images = fashion::read_dataset(options.data, "train", options.samples);
  const auto test = fashion::read_dataset(options.data, "t10k");
  fashion::Network<T> network(options.hidden, options.seed);
  std::vector<T>& weights = network.weights();
  std::vector<T> velocity(weights.size()), gradients(weights.size());
  fashion::EpochLoss loss;
  std::vector<char> ballast(options.state_mb << 20, 1);  // ones: memory that is really there
  fashion::PretendDevice device(options);
  fashion::Record record(options.record);

  // (1) What survives. Everything that apply changes is state; gradients are what is reduced.
  elasticrun::Job job;
  job.state("weights", weights)
      .state("velocity", velocity)
      .state("loss", std::span(&loss, 1))
      .gradients("layer1", network.layer(1, gradients))
      .gradients("layer2", network.layer(2, gradients));
  if (!ballast.empty()) job.state("ballast", ballast);

  // (2) Between two steps, after the last one of each epoch, on every member of the world.
  job.on_epoch([&](const elasticrun::World& world) {
    if (world.rank() != 0) return;
    loss.print(network.evaluate(test).hits / static_cast<double>(test.size()), world.size());
    if (!options.save.empty()) fashion::write_file(options.save, std::as_bytes(std::span(weights)));
  });

  // (3) Compute: the mean gradient over the samples that this worker is given. It changes no state,
  // for the step may be repeated. Figures ride on the reduction of the gradients.
  const auto compute = [&](elasticrun::Step& step) {
    const auto begin = Clock::now();
    // With --bucket-kb the second layer is reduced while the first is still computed.
    const fashion::Figures figures =
        network.backward(images, step.samples(), gradients,
                         [&](int layer) { step.ready(layer == 1 ? "layer1" : "layer2"); });
    step.sum("loss", figures.loss);
    device.pass_time(begin, step.samples().size(), job.world().rank(), step.number());
    record.computed(job.world(), step);
  };

  // (4) Apply: gradients are now the mean over the global batch, the same on every worker. The end
  // of this call commits the step.
  const auto apply = [&](elasticrun::Step& step) {
    // (5) The batch grows and shrinks with the world, and the learning rate with the batch.
    const double rate = options.learning_rate * step.lr_factor();
    fashion::descend(weights, velocity, gradients, rate, momentum);
    loss.add(step);
    record.applied(job.world(), step);
  };

  job.train({.samples = static_cast<std::int64_t>(images.size()),
             .epochs = options.epochs,
             .batch = options.batch,
             .base_batch = tuned_for,
             .seed = options.seed,
             .bucket_bytes = options.bucket_kb << 10},
            compute, apply);
  record.finished(job.world(), std::as_bytes(std::span(weights)));
}

}  // namespace

int main(int argc, char** argv) {
  const fashion::Options options = fashion::read_options(argc, argv);
  openblas_set_num_threads(1);
  try {
    options.double_precision ? train<double>(options) : train<float>(options);
    return 0;
  } catch (const elasticrun::Evicted&) {
    return 0;  // no failure: the others go on without this worker
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fashion: %s\n", error.what());
    return 1;
  }
}
