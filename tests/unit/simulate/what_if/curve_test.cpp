// Curves: what a file defines, interpolation between its rows, and error messages.
#include "simulate/what_if/curve.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

using namespace elasticrun::simulate::what_if;

namespace {

constexpr const char* rows =
    "# a comment\n"
    "title: two  sizes   # and another\r\n"
    "samples: 1000\n"
    "batch: 10\n"
    "slots-per-host: 4\n"
    "columns: size seconds compute\n"
    "  4  10  0.5\n"
    "16  5 1\n";

}  // namespace

TEST_CASE("a curve has its rows, and interpolates between and beyond them") {
  const Curve curve = Curve::parse(rows, "x").value();
  CHECK(curve.title() == "two  sizes");
  CHECK(curve.sizes() == std::vector<int>{4, 16});
  CHECK(curve.hosts().size() == 4);
  CHECK(curve.hosts_of(4) == 1);
  CHECK(curve.hosts_of(5) == 2);
  CHECK(curve.global_batch(16) == 160);
  CHECK(curve.samples_per_s(4) == doctest::Approx(100));
  CHECK(curve.samples_per_s(16) == doctest::Approx(200));
  CHECK(curve.samples_per_s(8) == doctest::Approx(141.42));  // half way on a logarithmic scale
  CHECK(curve.compute_share(8) == doctest::Approx(0.75));
  CHECK(curve.samples_per_s(2) == doctest::Approx(50));
  CHECK(curve.samples_per_s(100) == doctest::Approx(200));
}

TEST_CASE("hosts may differ") {
  const Curve curve = Curve::parse(
                          "samples: 1e6\nhosts: fast[1-2]:4 price=12 type=fast\n"
                          "columns: size samples/s\n4 100\n10 200\nhosts: slow slots=2 price=1\n",
                          "x")
                          .value();
  REQUIRE(curve.hosts().size() == 3);
  CHECK(curve.hosts()[1].name == "fast2");
  CHECK(curve.hosts()[1].price == 12);
  CHECK(curve.hosts()[2].slots == 2);
  CHECK(curve.slots() == 10);
  CHECK(curve.hosts_of(9) == 3);
}

TEST_CASE("a law gives the throughput of each size") {
  const Curve curve = Curve::parse(
                          "samples: 1e6\nbatch: 10\nslots-per-host: 4\n"
                          "law: 0.1 0.01 0.02 0.001 0.2 0.002\nsizes: 8 1 4\n",
                          "x")
                          .value();
  CHECK(curve.sizes() == std::vector<int>{1, 4, 8});
  CHECK(curve.samples_per_s(1) == doctest::Approx(10 / 0.2));
  CHECK(curve.compute_share(1) == doctest::Approx(1));
  CHECK(curve.samples_per_s(4) == doctest::Approx(40 / (0.2 + 0.022)));
  CHECK(curve.samples_per_s(8) == doctest::Approx(80 / (0.2 + 0.212)));
}

TEST_CASE("errors name the file and line, and what to do") {
  struct Case {
    const char* text;
    const char* error;
  };
  const Case cases[] = {
      {"", "x:0: neither rows nor a law"},
      {"samples: 1\ncolumns: size samples/s\n", "x:2: neither rows nor a law"},
      {"columns: size samples/s\n4 5\n", "x:2: 'samples:' is missing"},
      {"columns: size seconds\n4 5\n", "x:2: 'samples:' is needed before seconds"},
      {"4 5\n", "x:1: name the columns before the first row"},
      {"columns: size speed\n",
       "x:1: columns: 'size seconds' or 'size samples/s', with 'compute' or without"},
      {"colour: red\n",
       "x:1: 'colour' is not known; use title, samples, batch, max-batch, base-batch, noise-scale, "
       "slots-per-host, hosts, columns, law or sizes"},
      {"samples: -3\n", "x:1: samples: one positive number is expected"},
      {"batch: 3 4\n", "x:1: batch: one positive number is expected"},
      {"samples: 9\ncolumns: size seconds\n4 5 6\n", "x:3: 2 columns are expected"},
      {"samples: 9\ncolumns: size seconds\n4 5\n4 6\n", "x:4: size 4 again"},
      {"samples: 9\ncolumns: size seconds compute\n4 5 1.5\n",
       "x:3: a size, a positive number, and a part of at most 1 are expected"},
      {"samples: 9\ncolumns: size seconds\n4 nan\n",
       "x:3: a size, a positive number, and a part of at most 1 are expected"},
      {"samples: 9\ncolumns: size seconds\n2000000 5\n",
       "x:3: a size, a positive number, and a part of at most 1 are expected"},
      {"samples: 9\nhosts: a:4\nhosts: a:4\ncolumns: size seconds\n4 5\n",
       "x:3: a is given twice; it was first given in line 2"},
      {"samples: 9\nhosts: a:4\ncolumns: size seconds\n8 5\n",
       "x:4: the hosts have 4 slots, and 8 is one of the sizes"},
      {"noise-scale: 1 2 3\n", "x:1: noise-scale: one or two are expected"},
      {"noise-scale: -1\n", "x:1: noise-scale: '-1' is not a positive number"},
      {"samples: 9\nnoise-scale: 1\ncolumns: size seconds compute\n1 5 1\n",
       "x:4: noise-scale needs 'batch:' or 'max-batch:'"},
      {"samples: 9\nbatch: 1\nnoise-scale: 1\ncolumns: size seconds\n1 5\n",
       "x:5: noise-scale needs the column 'compute', or a law"},
      {"law: 1 2 3\n", "x:1: law: six numbers are expected"},
      {"law: 0 0 1 1 1 1\n", "x:1: law: compute takes some time"},
      {"law: 1 1 1 1 1 -1\n", "x:1: law: '-1' is not a number of 0 or more"},
      {"samples: 1\nlaw: 1 0 0 0 0 0\nsizes: 1\n", "x:3: a law needs 'batch:' or 'max-batch:'"},
      {"samples: 1\nbatch: 1\nlaw: 1 0 0 0 0 0\n", "x:3: a law needs 'sizes:'"},
      {"samples: 1\nbatch: 1\nlaw: 1 0 0 0 0 0\ncolumns: size seconds\n1 1\n",
       "x:5: rows and a law: only one of them"}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto parsed = Curve::parse(c.text, "x");
    REQUIRE(parsed.has_error());
    CHECK(parsed.error().text == c.error);
  }
}

TEST_CASE("with another batch compute scales, and the rest of the step stays") {
  // 200 samples take 0.1 s, 0.06 s of it in compute.
  const Curve rows = Curve::parse(
                         "samples: 9\nbatch: 100\ncolumns: size samples/s compute\n"
                         "2 2000 0.6\n",
                         "x")
                         .value();
  CHECK(rows.global_batch(2) == 200);
  CHECK(rows.samples_per_s(2, 200) == doctest::Approx(2000));
  CHECK(rows.samples_per_s(2, 100) == doctest::Approx(100 / 0.07));
  CHECK(rows.compute_share(2, 100) == doctest::Approx(3.0 / 7));
  const Curve law = Curve::parse(
                        "samples: 9\nbatch: 100\nlaw: 0.01 0.001 0.04 0 0 0\n"
                        "slots-per-host: 2\nsizes: 2\n",
                        "x")
                        .value();
  CHECK(law.samples_per_s(2, 100) == doctest::Approx(100 / 0.1));
  CHECK(law.compute_share(2, 100) == doctest::Approx(0.6));
}

TEST_CASE("the worth of a sample follows the gradient noise") {
  const std::string head =
      "samples: 9\nbatch: 64\ncolumns: size samples/s compute\n1 9 0.5\n"
      "4 9 0.5\n";
  const Curve silent = Curve::parse(head, "x").value();
  CHECK_FALSE(silent.noise_scale(0.5));
  CHECK(silent.worth_of_a_sample(4096, 0.5) == 1);
  const Curve noisy = Curve::parse(head + "noise-scale: 100 10000\n", "x").value();
  CHECK(noisy.batch().base_batch == 64);
  CHECK(noisy.noise_scale(0) == doctest::Approx(100));
  CHECK(noisy.noise_scale(0.5) == doctest::Approx(1000));
  CHECK(noisy.noise_scale(1) == doctest::Approx(10000));
  CHECK(noisy.worth_of_a_sample(64, 0.5) == doctest::Approx(1));
  CHECK(noisy.worth_of_a_sample(256, 0.5) == doctest::Approx(1064.0 / 1256));
}

TEST_CASE("the curves in configs are valid") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CURVES)) {
    CAPTURE(entry.path().string());
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto parsed = Curve::parse(text, entry.path().string());
    CHECK(parsed.has_value());
    ++files;
  }
  CHECK(files == 5);
}
