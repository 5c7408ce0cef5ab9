// Step-time laws fitted to measurements: known laws are recovered, and ranges are wide where
// nothing was measured.
#include "autoscaler/time_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace elasticrun::autoscaler;

namespace {

constexpr std::array<double, 6> truth{0.02, 0.001, 0.004, 0.0005, 0.1, 0.002};

double compute(const Place& place) { return truth[0] + truth[1] * place.share; }

double step(const Place& place) {
  const double more = place.size - 2;
  const double sync = place.size < 2    ? 0
                      : place.hosts > 1 ? truth[4] + truth[5] * more
                                        : truth[2] + truth[3] * more;
  return compute(place) + sync;
}

Place place(int size, double share = 32) { return {size, (size + 7) / 8, share}; }

Timed timed(const Place& at, bool with_compute = true) {
  return {at, step(at), with_compute ? compute(at) : 0, 0.005};
}

void near(const TimeModel::Range& range, double expected, double tolerance) {
  CHECK(range.best <= range.worst);
  CHECK(range.best == doctest::Approx(expected).epsilon(tolerance));
  CHECK(range.worst == doctest::Approx(expected).epsilon(tolerance));
}

}  // namespace

TEST_CASE("a law is recovered from enough measurements") {
  std::vector<Timed> measured;
  for (const int size : {1, 2, 4, 8, 16, 24, 32})
    measured.push_back(timed(place(size, 256.0 / size)));
  const TimeModel model(measured);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    CAPTURE(i);
    CHECK(model.laws().front().coefficients[i] == doctest::Approx(truth[i]).epsilon(0.01));
  }
  for (const int size : {6, 12, 48}) {
    CAPTURE(size);
    near(model.predict(place(size, 256.0 / size), 1), step(place(size, 256.0 / size)), 0.1);
  }
}

TEST_CASE("no coefficient is ever negative") {
  // The steps get faster with the size, which no law of this shape allows.
  std::vector<Timed> measured;
  for (const int size : {2, 4, 8})
    measured.push_back({.place = {size, 1, 32}, .step_s = 1.0 / size, .error = 0.005});
  const TimeModel model(measured);
  REQUIRE_FALSE(model.laws().empty());
  for (const TimeModel::Law& law : model.laws())
    for (const double coefficient : law.coefficients) CHECK(coefficient >= 0);
}

TEST_CASE("one measurement allows everything from perfect scaling to none") {
  const std::vector<Timed> one{timed(place(4))};
  const TimeModel model(one);
  const double now = step(place(4));
  const double sync = now - compute(place(4));
  const auto more = model.predict(place(8), 1);
  CHECK(more.best == doctest::Approx(now).epsilon(0.001));  // sync does not grow
  CHECK(more.worst == doctest::Approx(compute(place(4)) + sync * 3).epsilon(0.001));  // b_l alone
  // Several hosts were never measured: at best they are like one, at worst they gain nothing.
  const auto across = model.predict(place(16), 2 * now);
  CHECK(across.best == doctest::Approx(now).epsilon(0.001));
  CHECK(across.worst == doctest::Approx(2 * now).epsilon(0.001));
  // A single worker has no sync, and half the share takes half the time at best.
  CHECK(model.predict(place(1), 1).worst == doctest::Approx(compute(place(4))).epsilon(0.001));
  CHECK(model.predict(place(4, 16), 1).best ==
        doctest::Approx(compute(place(4)) / 2 + sync).epsilon(0.001));
}

TEST_CASE("one host was never measured: no sync at best, that of the smallest other at worst") {
  const std::vector<Timed> measured{timed(place(16)), timed(place(32))};
  const TimeModel model(measured);
  const auto range = model.predict(place(8), 1);
  CHECK(range.best == doctest::Approx(compute(place(8))).epsilon(0.05));
  CHECK(range.worst == doctest::Approx(step(place(16))).epsilon(0.05));
}

TEST_CASE("without compute times the law of the whole step is fitted") {
  std::vector<Timed> measured;
  for (const int size : {1, 2, 4, 8}) measured.push_back(timed(place(size, 256.0 / size), false));
  near(TimeModel(measured).predict(place(6, 256.0 / 6), 1), step(place(6, 256.0 / 6)), 0.1);
}

TEST_CASE("measurements that differ by orders of magnitude give finite ranges") {
  const std::vector<Timed> measured{{.place = {1, 1, 1e6}, .step_s = 1e4, .error = 0.01},
                                    {.place = {1024, 128, 1e-3}, .step_s = 1e-5, .error = 0.01}};
  const TimeModel model(measured);
  for (const int size : {1, 32, 1024, 4096}) {
    const auto range = model.predict({size, (size + 7) / 8, 1e6 / size}, 1);
    CHECK(std::isfinite(range.best));
    CHECK(range.best > 0);
    CHECK(range.worst >= range.best);
  }
}
