// See advice.hpp.
#include "job/report/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/line.hpp"
#include "job/report/json_object.hpp"

namespace elasticrun::job::report {
namespace {

namespace json = boost::json;

constexpr int version = 1;
constexpr std::size_t reason_max = 300;
constexpr std::size_t shown_max = 60;

// Nothing for 0, which means that the number is not known.
template <class T>
std::optional<T> known(T number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

std::vector<JsonObject> sizes(const autoscaler::Question& question) {
  std::vector<JsonObject> items;
  for (const auto& one : question.snapshot.offers)
    if (std::ranges::binary_search(question.limits.sizes, one.size))
      items.push_back(JsonObject()
                          .add("size", one.size)
                          .add("global_batch", known(one.global_batch))
                          .add("hosts", known(one.hosts))
                          .add("price_per_h", one.price));
  return items;
}

std::vector<JsonObject> curve(const autoscaler::Question& question) {
  std::vector<JsonObject> items;
  for (const auto& one : question.snapshot.curve)
    items.push_back(JsonObject()
                        .add("size", one.size)
                        .add("samples_per_s", one.samples_per_s)
                        .add("error", one.error)
                        .add("compute_share", known(one.compute_share))
                        .add("steps", one.steps)
                        .add("age_s", JsonObject::Fixed{seconds(question.now - one.at), 1}));
  return items;
}

Error wrong(std::string_view what, std::string_view printed) {
  return {fmt::format("{}: '{}'", what, as_line(printed, shown_max))};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const auto begin = text.find_first_not_of(space);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

}  // namespace

std::string question_text(const autoscaler::Question& question) {
  const autoscaler::Snapshot& seen = question.snapshot;
  const autoscaler::Limits& limits = question.limits;
  const bool noisy = seen.noise && seen.noise->steps > 0;
  return JsonObject()
             .add("version", version)
             .add("size", seen.size)
             .add("global_batch", known(seen.global_batch))
             .add("base_batch", known(seen.base_batch))
             .add("noise_scale", known(noisy ? seen.noise->scale() : 0.0))
             .add("samples_left", seen.samples_left)
             .add("elapsed_s", JsonObject::Fixed{seconds(seen.elapsed), 1})
             .add("spent", seen.spent)
             .add("min", limits.min)
             .add("max", limits.max)
             .add("settle_s", seconds(limits.settle))
             .add("min_gain", limits.min_gain)
             .add("sizes", sizes(question))
             .add("curve", curve(question))
             .text() +
         '\n';
}

Result<autoscaler::Advice> read_advice(const Result<std::string>& output) {
  if (!output) return Error{as_line(output.error().text, reason_max)};
  const std::string_view printed = trimmed(*output);
  if (printed.empty()) return Error{"printed nothing"};
  json::error_code error;
  const json::value value = json::parse({printed.data(), printed.size()}, error);
  if (error || !value.is_object())
    return wrong("printed something else than a JSON object", printed);
  const json::value* const target = value.get_object().if_contains("target");
  const json::value* const reason = value.get_object().if_contains("reason");
  autoscaler::Advice advice;
  if (target) advice.target = target->to_number<int>(error);
  if (!target || error) return wrong("printed no target that is a whole number", printed);
  if (reason && !reason->is_string()) return wrong("printed a reason that is no text", printed);
  if (reason) advice.reason = as_line(trimmed(reason->get_string()), reason_max);
  return advice;
}

}  // namespace elasticrun::job::report
