// The command line of the example.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace fashion {

// From its step `from_step` on, the process that is then of this rank computes `factor` times as
// long.
struct Slow {
  int rank = 0;
  double factor = 1;
  std::int64_t from_step = 0;
};

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::size_t samples = 0;  // only the first ones; 0: all
  std::int64_t epochs = 5;
  std::int64_t batch = 32;
  double learning_rate = 0.01;
  std::size_t hidden = 128;
  std::int64_t bucket_kb = 0;
  std::uint64_t seed = 1;
  bool double_precision = false;
  std::string save;
  double device_ms = 0;  // per sample
  std::optional<Slow> slow;
  std::size_t state_mb = 0;
  std::string record;
};

// Ends the process with a line of help where that is asked for or needed.
Options read_options(int argc, char** argv);

}  // namespace fashion
