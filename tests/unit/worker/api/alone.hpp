// A job in a world of one, with one weight and one gradient, for tests of the C interface.
#pragma once

#include <doctest/doctest.h>
#include <elasticrun/elasticrun.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace elasticrun::alone_test {

struct Alone {
  elasticrun_job* job = nullptr;
  std::vector<double> weights{0}, gradients{0};
  std::function<int(elasticrun_step*)> compute = [](elasticrun_step*) { return 0; };
  std::function<int(elasticrun_step*)> apply = [](elasticrun_step*) { return 0; };
  elasticrun_train_options options{sizeof(elasticrun_train_options), 10, 1, 4, 0, 0, 5};

  Alone() {
    ::unsetenv("ELASTICRUN_SOCKET");
    REQUIRE(elasticrun_open(&job) == ELASTICRUN_OK);
    REQUIRE(elasticrun_state(job, "w", weights.data(), sizeof(double)) == ELASTICRUN_OK);
    REQUIRE(elasticrun_gradients(job, "g", gradients.data(), ELASTICRUN_FLOAT64, 1) ==
            ELASTICRUN_OK);
  }
  ~Alone() { elasticrun_close(job); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  elasticrun_status train() {
    return elasticrun_train(
        job, &options,
        [](elasticrun_step* step, void* self) { return static_cast<Alone*>(self)->compute(step); },
        [](elasticrun_step* step, void* self) { return static_cast<Alone*>(self)->apply(step); },
        this);
  }
  std::string error() const { return elasticrun_error(job); }
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace elasticrun::alone_test
