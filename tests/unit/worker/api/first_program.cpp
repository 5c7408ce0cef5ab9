// A program that was built with the interface as it first was (first_interface), and runs with the
// library as it is: it must go on working, as the ABI only grows. Prints what it has learnt.
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "first_interface.h"

namespace {

struct Model {
  double weight = 0, gradient = 0;
};

int compute(elasticrun_step* step, void* user) {
  Model& model = *static_cast<Model*>(user);
  std::size_t count = 0;
  const std::uint64_t* const samples = elasticrun_step_samples(step, &count);
  model.gradient = 0;
  for (std::size_t i = 0; i < count; ++i)
    model.gradient += (model.weight - static_cast<double>(samples[i])) / static_cast<double>(count);
  return elasticrun_step_sum(step, "samples", static_cast<double>(count));
}

int apply(elasticrun_step* step, void* user) {
  Model& model = *static_cast<Model*>(user);
  model.weight -= model.gradient * elasticrun_step_lr_factor(step);
  return elasticrun_step_total(step, "samples") == 4 ? 0 : 1;
}

}  // namespace

int main() {
  Model model;
  elasticrun_job* job = nullptr;
  elasticrun_train_options options{};
  options.struct_size = sizeof options;
  options.samples = 8;
  options.epochs = 3;
  options.batch = 4;
  const bool trained =
      elasticrun_open(&job) == ELASTICRUN_OK &&
      elasticrun_state(job, "w", &model.weight, sizeof model.weight) == ELASTICRUN_OK &&
      elasticrun_gradients(job, "g", &model.gradient, ELASTICRUN_FLOAT64, 1) == ELASTICRUN_OK &&
      elasticrun_train(job, &options, compute, apply, &model) == ELASTICRUN_OK;
  std::printf("%s after %lld steps, %.3f\n", trained ? "trained" : elasticrun_error(job),
              static_cast<long long>(elasticrun_committed(job)), model.weight);
  elasticrun_close(job);
  return trained ? 0 : 1;
}
