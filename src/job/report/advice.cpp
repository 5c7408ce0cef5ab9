// See advice.hpp. The question is formatted here and not by Boost.JSON, which writes 426.6 as
// 4.266E2: many of the programs that read it are shell scripts.
#include "job/report/advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <string_view>
#include <vector>

#include "wire/text.hpp"

namespace elasticrun::job::report {
namespace {

namespace json = boost::json;

constexpr int version = 1;
constexpr std::size_t reason_max = 300;
constexpr std::size_t shown_max = 60;

// The number as JSON; null for 0, which means that the number is not known.
std::string known(double number) {
  return number > 0 && std::isfinite(number) ? fmt::format("{:.6g}", number) : "null";
}
std::string known(std::int64_t number) { return number > 0 ? fmt::to_string(number) : "null"; }

std::string list(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ","));
}

std::string sizes(const autoscaler::Question& question) {
  std::vector<std::string> items;
  for (const auto& one : question.snapshot.offers)
    if (std::ranges::binary_search(question.limits.sizes, one.size))
      items.push_back(fmt::format(
          R"({{"size":{},"global_batch":{},"hosts":{},"price_per_h":{:.6g}}})", one.size,
          known(one.global_batch), known(std::int64_t{one.hosts}), one.price));
  return list(items);
}

std::string curve(const autoscaler::Question& question) {
  std::vector<std::string> items;
  for (const auto& one : question.snapshot.curve)
    items.push_back(
        fmt::format(R"({{"size":{},"samples_per_s":{:.6g},"error":{:.4g},"compute_share":{},)"
                    R"("steps":{},"age_s":{:.1f}}})",
                    one.size, one.samples_per_s, one.error, known(one.compute_share), one.steps,
                    seconds(question.now - one.at)));
  return list(items);
}

// A program's text cut and cleaned so that it fits into one line and one event.
std::string line_of(std::string_view text, std::size_t most) {
  std::size_t end = std::min(most, text.size());
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // do not cut inside a character
  std::string line(text.substr(0, end));
  const bool utf8 = wire::is_utf8(line);
  for (char& c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (!utf8 && byte > 0x7f)) c = byte == '\n' ? ' ' : '?';
  }
  if (end < text.size()) line += "...";
  return line;
}

Error wrong(std::string_view what, std::string_view printed) {
  return {fmt::format("{}: '{}'", what, line_of(printed, shown_max))};
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
  return fmt::format(
      R"({{"version":{},"size":{},"global_batch":{},"base_batch":{},"noise_scale":{},)"
      R"("samples_left":{},"elapsed_s":{:.1f},"spent":{:.6g},)"
      R"("min":{},"max":{},"settle_s":{:.6g},"min_gain":{:.6g},)"
      R"("sizes":{},"curve":{}}})"
      "\n",
      version, seen.size, known(seen.global_batch), known(seen.base_batch),
      known(seen.noise && seen.noise->steps > 0 ? seen.noise->scale() : 0.0),
      seen.samples_left ? fmt::to_string(*seen.samples_left) : "null", seconds(seen.elapsed),
      seen.spent, limits.min, limits.max, seconds(limits.settle), limits.min_gain, sizes(question),
      curve(question));
}

Result<autoscaler::Advice> read_advice(const Result<std::string>& output) {
  if (!output) return Error{line_of(output.error().text, reason_max)};
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
  if (reason) advice.reason = line_of(trimmed(reason->get_string()), reason_max);
  return advice;
}

}  // namespace elasticrun::job::report
