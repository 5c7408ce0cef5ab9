// The flags; a file of its own because CLI11 is slow to compile.
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

namespace fashion {
namespace {

std::optional<Slow> parse_slow(const std::string& text) {
  Slow slow;
  int used = 0;
  long long from_step = 0;
  const int fields =
      std::sscanf(text.c_str(), "%d:%lf:%lld%n", &slow.rank, &slow.factor, &from_step, &used);
  slow.from_step = from_step;
  if (fields != 3 || static_cast<std::size_t>(used) != text.size() || slow.rank < 0 ||
      slow.factor < 1 || from_step < 0)
    return {};
  return slow;
}

}  // namespace

Options read_options(int argc, char** argv) {
  Options o;
  CLI::App app{
      "Trains a small network on Fashion-MNIST, on as many workers as elasticrun gives it"};
  app.option_defaults()->always_capture_default();
  app.add_option("--data", o.data, "directory with the four idx files")->type_name("DIR");
  app.add_option("--samples", o.samples, "use the first N training images only; 0: all");
  app.add_option("--epochs", o.epochs, "passes over the images")->check(CLI::Range(1, 1000000));
  app.add_option("--batch", o.batch, "images of one worker in one step")
      ->check(CLI::Range(1, 60000));
  app.add_option("--lr", o.learning_rate, "learning rate for a global batch of 32")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--hidden", o.hidden, "hidden units")->check(CLI::Range(1, 65536));
  app.add_option("--bucket-kb", o.bucket_kb,
                 "reduce in buckets of so many KiB while computing; 0: afterwards")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--seed", o.seed, "of the first weights and of the order of the images");
  std::string precision = "float", slow;
  app.add_option("--precision", precision, "of weights and gradients")
      ->check(CLI::IsMember({"float", "double"}));
  app.add_option("--save", o.save, "rank 0 writes the weights here after each epoch")
      ->type_name("FILE");
  // What follows makes a small machine look like a large one, and training observable by tests.
  const std::string group = "Experiments";
  app.add_option("--device-ms", o.device_ms, "pretend device: sleep so long for each image")
      ->check(CLI::Range(0.0, 60000.0))
      ->group(group);
  app.add_option("--slow", slow, "from that step on, that worker takes FACTOR times as long")
      ->type_name("RANK:FACTOR:STEP")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return parse_slow(text) ? "" : "write RANK:FACTOR:STEP, as in 2:4:100";
          },
          ""))
      ->group(group);
  app.add_option("--state-mb", o.state_mb, "so much more state, in MiB")
      ->check(CLI::Range(0, 1 << 20))
      ->group(group);
  app.add_option("--record", o.record,
                 "write each step to FILE.<host>.<pid>, the weights to FILE.weights")
      ->type_name("FILE")
      ->group(group);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  o.double_precision = precision == "double";
  if (!slow.empty()) o.slow = parse_slow(slow);
  return o;
}

}  // namespace fashion
