// A cluster description: how fast a job is at each size, as a text file that a user can write.
//
//     title: ImageNet, ResNet-50        any text
//     samples: 6405835                  of the whole job
//     batch: 64                         per worker; `max-batch: 2048` would cap the global batch
//     slots-per-host: 8                 or, where hosts differ, `hosts:` lines
//     columns: size seconds compute     what the rows hold
//     32  4550  0.85
//     40  3638  0.85
//
// A row is a size and either `seconds` (a whole job at that size) or `samples/s`, then, if listed
// in `columns`, `compute`: the part of a step in compute, 0 to 1. '#' begins a comment. Between two
// sizes throughput is interpolated as a power of the size (a straight line on a log-log plot, so
// perfect scaling stays perfect), and compute linearly. Below the smallest size throughput is
// proportional to the size, above the largest it is constant: outside the given sizes no gain is
// assumed.
//
// Hosts that differ are given as lines of a host file (elasticrun-hosts(5)), with slots, price (of
// the whole host, per hour) and type, in the order of use: a size always takes the first slots.
//
//     hosts: fast[1-2] slots=4 price=12 type=fast
//     hosts: slow[1-4] slots=4 price=3
//
// Instead of rows, a file may give a law as in autoscaler/time_model.hpp, in seconds, for a list of
// sizes:
//
//     law: 0.01 0.001 0 0.0001 0.02 0.00001     a_g b_g a_l b_l a_n b_n
//     sizes: 8 16 32 64
//
// With noisy gradients a sample is worth less the larger the batch is (autoscaler/noise.hpp).
// `samples` then counts samples at the base batch:
//
//     noise-scale: 200 6400             samples; at the beginning and at the end, geometric between
//     base-batch: 64                    default: the global batch of the smallest size
//
// Rows hold for the batch given by the rule; with another batch, compute is proportional to the
// batch and the rest of the step is unchanged.
//
// Curves are kept in configs/curves. TOML or JSON would do, but a table of numbers is easiest to
// read as a table.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/batch_plan.hpp"
#include "base/result.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::simulate::what_if {

class Curve {
 public:
  // `file` is used in error messages only.
  static Result<Curve> parse(std::string_view text, std::string_view file);

  // Sizes the job can have, in order; the rows' or those of `sizes:`.
  const std::vector<int>& sizes() const { return sizes_; }
  // `batch` is the global batch; 0: the one given by the rule.
  double samples_per_s(int size, std::int64_t batch = 0) const;
  double compute_share(int size, std::int64_t batch = 0) const;  // 0: not known
  std::int64_t global_batch(int size) const;                     // as given by the rule
  // The noise scale in samples, when the part `progress` (0 to 1) of the job is done; nothing where
  // the curve describes no noise.
  std::optional<double> noise_scale(double progress) const;
  // The worth of a sample with that global batch, in samples of the base batch.
  double worth_of_a_sample(std::int64_t batch, double progress) const;

  const std::string& title() const { return title_; }
  double samples() const { return samples_; }
  // The described hosts, or as many with `slots-per-host` slots as the largest size needs.
  const std::vector<launcher::hosts::Host>& hosts() const { return hosts_; }
  int slots() const;
  int hosts_of(int size) const;  // number of hosts that a size uses
  // Adds hosts with `slots-per-host` slots until there are `slots` of them in all; does nothing
  // where hosts are described.
  void add_hosts(int slots);
  autoscaler::BatchRule batch() const {
    return {.max_batch = max_batch_, .batch = batch_, .base_batch = base_batch_};
  }

 private:
  friend class CurveReader;
  struct Row {
    double samples_per_s = 0;
    double compute = 0;
  };
  Row at(int size) const;
  Row at(int size, std::int64_t batch) const;
  Row by_law(int size, std::int64_t batch) const;

  std::string title_;
  double samples_ = 0;
  std::int64_t batch_ = 0;
  std::int64_t max_batch_ = 0;
  std::int64_t base_batch_ = 0;
  std::vector<double> noise_scale_;  // none, one constant, or the values at beginning and end
  int slots_per_host_ = 1;
  std::optional<std::array<double, 6>> law_;
  std::map<int, Row> rows_;
  std::vector<int> sizes_;
  std::vector<launcher::hosts::Host> hosts_;
  bool described_ = false;  // the hosts are given by `hosts:` lines
};

}  // namespace elasticrun::simulate::what_if
