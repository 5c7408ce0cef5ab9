// See scene_text.hpp.
#include "simulate/faults/scene_text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <type_traits>

namespace elasticrun::simulate::faults {
namespace {

// Calls `visit` with the name of each value, to read or write it.
template <class Any, class Visit>
void for_each_value(Any& scene, Visit visit) {
  auto& spec = scene.spec;
  visit("seed", scene.seed);
  visit("dice", scene.dice);
  visit("hosts", scene.hosts);
  visit("slots", scene.slots_per_host);
  visit("min", spec.limits.min);
  visit("max", spec.limits.max);
  visit("start", spec.start);
  visit("spares", spec.spares);
  visit("policy", spec.policy);
  visit("batch", spec.batch.batch);
  visit("max_batch", spec.batch.max_batch);
  visit("max_restarts", spec.max_restarts);
  visit("straggler_time", spec.deadlines.straggler_time);
  visit("minimum_timeout", spec.deadlines.minimum_timeout);
  visit("shrink", spec.slurm_shrink);
  visit("save", spec.saving.folder);
  visit("save_every", spec.saving.every);
  visit("save_timeout", spec.deadlines.save_timeout);
  visit("samples", scene.samples);
  visit("epochs", scene.epochs);
  visit("train_calls", scene.train_calls);
  visit("compute", scene.compute);
  visit("epoch_end", scene.epoch_end);
  visit("gradients", scene.gradients);
  visit("mixed", scene.mixed);
  visit("merciful", scene.merciful);
  visit("only_newcomers", scene.only_newcomers);
  visit("only_leavers", scene.only_leavers);
  visit("faults_until", scene.faults_until);
  visit("interrupted", scene.interrupted);
  visit("controller_dies", scene.controller_dies);
}

std::string text_of(const std::string& value) { return value; }
std::string text_of(Duration value) { return fmt::format("{}ms", milliseconds(value)); }
std::string text_of(const std::optional<int>& value) { return std::to_string(value.value_or(0)); }
template <class Number>
requires std::is_integral_v<Number> std::string text_of(Number value) {
  return std::to_string(value);
}

Result<void> read(const std::string& text, std::string& value) {
  value = text;
  return {};
}
Result<void> read(const std::string& text, Duration& value) {
  const auto parsed = parse_duration(text);
  if (!parsed) return parsed.error();
  value = *parsed;
  return {};
}
template <class Number>
requires std::is_integral_v<Number> Result<void> read(const std::string& text, Number& value) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number).ptr != end || text.empty())
    return Error{fmt::format("'{}' is no number", text)};
  value = static_cast<Number>(number);
  return {};
}
Result<void> read(const std::string& text, std::optional<int>& value) {
  return read(text, value.emplace());
}

}  // namespace

std::string scene_text(const Scene& scene) {
  std::string text;
  for_each_value(scene, [&](const char* name, const auto& value) {
    text += fmt::format("{}={}\n", name, text_of(value));
  });
  for (const Fault& fault : scene.faults) text += fmt::format("fault {}\n", fault_text(fault));
  return text;
}

Result<Scene> parse_scene(const std::string& text) {
  Scene scene;
  scene.spec = plain_spec();
  std::map<std::string, std::string> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("fault ")) {
      const auto fault = parse_fault(line.substr(6));
      if (!fault) return Error{fmt::format("{}: {}", line, fault.error().text)};
      scene.faults.push_back(*fault);
      continue;
    }
    const auto equals = line.find('=');
    if (equals == std::string::npos) return Error{fmt::format("'{}' has no '='", line)};
    values[line.substr(0, equals)] = line.substr(equals + 1);
  }
  Result<void> all_read;
  for_each_value(scene, [&](const char* name, auto& value) {
    const auto given = values.extract(name);
    if (given.empty()) return;
    if (const auto done = read(given.mapped(), value); !done)
      all_read = Error{fmt::format("{}: {}", name, done.error().text)};
  });
  if (!all_read) return all_read.error();
  if (!values.empty()) return Error{fmt::format("a scene has no '{}'", values.begin()->first)};
  return scene;
}

}  // namespace elasticrun::simulate::faults
