// Each objective, computed by hand.
#include "autoscaler/objective.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

// 36 000 samples are left; at 1000/s they take 36 s, a hundredth of an hour.
Snapshot job(std::int64_t left = 36'000) {
  Snapshot seen;
  seen.size = 4;
  seen.samples_left = left;
  seen.offers = {{.size = 1, .price = 100}, {.size = 4, .price = 400}, {.size = 8, .price = 1000}};
  seen.curve = {{.size = 4, .samples_per_s = 1000, .rounds = 10}};
  return seen;
}

Prospect at(const Snapshot& snapshot, int size, double rate) {
  return {offer_of(snapshot.offers, size), rate};
}

}  // namespace

TEST_CASE("the rest of a job costs time and money") {
  struct Case {
    int size;
    double rate;
    double seconds;
    double money;
  };
  for (const Case c : {Case{1, 400, 90, 2.5}, {4, 1000, 36, 4}, {8, 2000, 18, 5}}) {
    const auto rest = rest_of(job(), at(job(), c.size, c.rate));
    REQUIRE(rest);
    CHECK(rest->seconds == doctest::Approx(c.seconds));
    CHECK(rest->money == doctest::Approx(c.money));
  }
  CHECK_FALSE(rest_of(job(0), at(job(), 4, 1000)));
}

TEST_CASE("a size that is not offered is priced like the nearest offer") {
  const Snapshot seen = job();
  CHECK(offer_of(seen.offers, 6).price == doctest::Approx(750));
  CHECK(offer_of(seen.offers, 16).price == doctest::Approx(2000));
  CHECK(offer_of({}, 3).price == 3);
}

TEST_CASE("scaling: worth is throughput over a power of the size") {
  const auto plain = scaling();
  CHECK(plain->worth(at(job(), 8, 2000), job(), {.min_gain = 0.5}) ==
        doctest::Approx(2000 / std::sqrt(8)));
  CHECK(plain->sense(job(), {}) == "at a weight of 0.10 on workers");
  CHECK(plain->limit().empty());
  CHECK_FALSE(plain->used(job(), at(job(), 4, 1000)));
}

// U is 10 up to 30 s, and 4 from 60 s on. At this price the rest of the job costs 4.
TEST_CASE("utility: worth is U(E + T) - C over what the rest costs at the present size") {
  const auto wish = utility({{30s, 10}, {60s, 4}});
  struct Case {
    const char* what;
    int size;
    double rate;
    Duration elapsed;
    double difference;  // U - C
  };
  const Case cases[] = {
      {"18 s: 10 - 5", 8, 2000, 0s, 5},      {"36 s: 8.8 - 4", 4, 1000, 0s, 4.8},
      {"90 s: 4 - 2.5", 1, 400, 0s, 1.5},    {"24 + 18 s: 7.6 - 5", 8, 2000, 24s, 2.6},
      {"24 + 36 s: 4 - 4", 4, 1000, 24s, 0}, {"past the last point", 8, 2000, 100s, -1},
      {"18 s: 10 - 2", 4, 2000, 0s, 8}};
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Snapshot seen = job();
    seen.elapsed = c.elapsed;
    CHECK(4 * std::log(wish->worth(at(seen, c.size, c.rate), seen, {})) + 10 ==
          doctest::Approx(c.difference));
  }
}

TEST_CASE("utility: points are parsed, and must rise in time") {
  const auto points = parse_utility("30s:10,1.5h:4,2h:-1").value();
  REQUIRE(points.size() == 3);
  CHECK(points[1].at == 90min);
  CHECK(points[1].money == 4);
  CHECK(points[2].money == -1);
  for (const char* wrong : {"", "1h", "1h:", ":5", "1:5", "1h:x", "1h:5,", "1h:5 2h:4", "1h:nan"})
    CHECK(parse_utility(wrong).error().text.find("is no TIME:MONEY") != std::string::npos);
  for (const char* wrong : {"1h:5,1h:4", "2h:5,1h:4", "1h:5,2h:6"})
    CHECK(parse_utility(wrong).error().text.find("times that rise") != std::string::npos);
}

TEST_CASE("utility: worth stays finite and rises with the rate, whatever the amounts") {
  for (const double money : {1e-6, 1.0, 1e9}) {
    CAPTURE(money);
    const auto wish = utility({{30s, money}, {60s, 0}});
    double last = 0;
    for (const double rate : {1e-3, 600.0, 900.0, 1e6}) {
      const double worth = wish->worth(at(job(), 4, rate), job(), {});
      CHECK(std::isfinite(worth));
      CHECK(worth > last);
      last = worth;
    }
  }
}

// With the margin of 10 %, 39.6 s are needed where T is 36 s, except at the job's present size.
TEST_CASE("deadline: the cheapest size in time is best, otherwise the fastest") {
  struct Case {
    const char* what;
    Duration limit;
    Duration elapsed;
    int best;
  };
  const Case cases[] = {{"all are in time", 100s, 0s, 1},   {"1 needs 99 s", 98s, 5s, 4},
                        {"1 is just too late", 99s, 5s, 4}, {"4 needs 39.6 s", 40s, 0s, 4},
                        {"4 is too late", 38s, 0s, 8},      {"none is in time", 10s, 0s, 8},
                        {"it has passed", 10s, 50s, 8}};
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Snapshot seen = job();
    seen.size = 2;
    seen.elapsed = c.elapsed;
    const auto wish = deadline(c.limit);
    const std::pair<int, double> sizes[] = {{1, 400}, {4, 1000}, {8, 2000}};
    int best = 0;
    double most = 0;
    for (const auto& [size, rate] : sizes) {
      const double worth = wish->worth(at(seen, size, rate), seen, {});
      if (worth > most) best = size;
      most = std::max(worth, most);
    }
    CHECK(best == c.best);
  }
  const auto wish = deadline(36s);
  CHECK(wish->worth(at(job(), 8, 2000), job(), {}) == doctest::Approx(1 / 5.0));
  CHECK(wish->worth(at(job(), 4, 1000), job(), {}) == doctest::Approx(std::pow(1.05, -20) / 4));
  Snapshot late = job();
  late.size = 2;
  CHECK(wish->worth(at(late, 4, 1000), late, {}) == doctest::Approx(std::pow(1.1, -20) / 4));
  late.elapsed = 9s;
  CHECK(*wish->used(late, at(late, 4, 1000)) == doctest::Approx(45.0 / 36));
  CHECK(wish->limit() == "deadline of 36.0 s");
}

TEST_CASE("an error of the throughput is an error of the worth, and a larger one near a limit") {
  Snapshot seen = job();
  seen.size = 2;
  const auto error = [&](const std::unique_ptr<Objective>& wish) {
    return error_of_worth(*wish, at(seen, 4, 1000), 0.01, seen, {});
  };
  CHECK(error(scaling()) == doctest::Approx(0.01));
  CHECK(error(deadline(100s)) == doctest::Approx(0.01));
  // 1 % less throughput needs 40 s and costs 1 % more.
  CHECK(error(deadline(39'600ms)) == doctest::Approx(1 - std::pow(0.99, 21)));
  CHECK(error(deadline(30s)) == doctest::Approx(std::pow(1.01, 21) - 1));
}

// With the margin, sizes 1, 4 and 8 need 2.75, 4.4 and 5.5 of money.
TEST_CASE("budget: the fastest size within the budget is best, otherwise the cheapest") {
  struct Case {
    double limit;
    double spent;
    int best;
  };
  for (const Case c :
       {Case{6, 0, 8}, {6, 0.4, 8}, {6, 1, 4}, {4.5, 0, 4}, {4, 0, 1}, {1, 0, 1}, {5, 7, 1}}) {
    CAPTURE(c.limit);
    CAPTURE(c.spent);
    Snapshot seen = job();
    seen.size = 2;
    seen.spent = c.spent;
    const auto wish = budget(c.limit);
    const std::pair<int, double> sizes[] = {{1, 400}, {4, 1000}, {8, 2000}};
    int best = 0;
    double most = 0;
    for (const auto& [size, rate] : sizes) {
      const double worth = wish->worth(at(seen, size, rate), seen, {});
      if (worth > most) best = size;
      most = std::max(worth, most);
    }
    CHECK(best == c.best);
  }
  Snapshot seen = job();
  seen.spent = 1;
  CHECK(*budget(8)->used(seen, at(seen, 8, 2000)) == doctest::Approx(0.75));
  CHECK(budget(8)->limit() == "budget of 8.00");
}

TEST_CASE("while the remaining work is unknown, every objective is plain scaling") {
  Snapshot seen = job();
  seen.samples_left.reset();
  const Prospect prospect = at(seen, 8, 2000);
  for (const auto& wish : {scaling(), utility({{30s, 10}}), deadline(1h), budget(5)}) {
    CHECK(wish->worth(prospect, seen, {}) == worth(2000, 8, 0.1));
    CHECK_FALSE(wish->used(seen, prospect));
  }
  CHECK(budget(5)->sense(seen, {}) ==
        "at a weight of 0.10 on workers, because the work that is left is not known");
}

TEST_CASE("a size far beyond a limit still has a worth, and the better one has more") {
  const Snapshot seen = job(std::int64_t{1} << 62);
  const auto fastest = deadline(1s);
  const auto cheapest = budget(1e-6);
  for (const Objective* objective : {fastest.get(), cheapest.get()}) {
    const double slow = objective->worth(at(seen, 4, 1e-3), seen, {});
    const double fast = objective->worth(at(seen, 4, 1), seen, {});
    CHECK(slow > 0);
    CHECK(fast > slow);
    CHECK(std::isfinite(fast / slow));
  }
}
