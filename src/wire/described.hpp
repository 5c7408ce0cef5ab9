// Values as JSON and back: one walk over the described members of a struct in each direction. For
// the few sources that include Boost.JSON, which is slow to compile.
//
// Boost.JSON's own conversion of described structs would be shorter, but it refuses a missing
// member and cannot say which member of which message was wrong. Its 1.81 parser also rounds one
// decimal in five to the neighbouring double, but all members of a world must compute with the same
// number. So a double that is not a whole number travels as a string in the shortest form that
// reads back exactly (std::to_chars).
#pragma once

#include <fmt/format.h>

#include <boost/describe/members.hpp>
#include <boost/json.hpp>
#include <boost/mp11/algorithm.hpp>
#include <boost/pfr/tuple_size.hpp>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "wire/agent/messages.hpp"
#include "wire/limits.hpp"
#include "wire/runs.hpp"
#include "wire/text.hpp"

namespace elasticrun::wire {

namespace json = boost::json;

template <class T>
inline constexpr bool is_id = false;
template <class Tag, class Rep>
inline constexpr bool is_id<Id<Tag, Rep>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

// Lists that travel as runs (runs.hpp).
template <class T>
inline constexpr bool has_runs =
    std::same_as<T, std::vector<Member>> || std::same_as<T, std::vector<double>>;

template <class T>
using Members = boost::describe::describe_members<T, boost::describe::mod_public>;

// Whether a pointer to a member of T, as Boost.Describe gives it, points to Bytes.
template <class T, class Pointer>
inline constexpr bool is_bytes = std::same_as<std::remove_cv_t<Pointer>, agent::Bytes T::*>;

// Calls f(name, pointer to member) for each member but Bytes, which do not travel as JSON.
template <class T, class F>
void for_each_member(F&& f) {
  static_assert(boost::mp11::mp_size<Members<T>>::value == boost::pfr::tuple_size_v<T>,
                "BOOST_DESCRIBE_STRUCT lacks a member, which would not travel");
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    if constexpr (!is_bytes<T, decltype(member.pointer)>) f(member.name, member.pointer);
  });
}

// ---------------------------------------------------------------- to JSON

inline json::value string_to_json(const std::string& x) {
  if (is_utf8(x)) return json::value(x);
  return json::object{{"b64", to_base64(x)}};
}

inline json::value double_to_json(double x) {
  constexpr double exact_max = 0x1.0p53;  // whole numbers up to here are exact as such
  if (std::trunc(x) == x && std::fabs(x) <= exact_max && !(x == 0 && std::signbit(x)))
    return json::value(static_cast<std::int64_t>(x));
  char text[32];
  const auto [end, ec] = std::to_chars(text, text + sizeof text, x);
  ER_CHECK(ec == std::errc{});
  return json::value(std::string_view(text, static_cast<std::size_t>(end - text)));
}

template <class T>
json::value to_json(const T& x) {
  if constexpr (is_id<T>) {
    return to_json(x.value);
  } else if constexpr (std::same_as<T, std::string>) {
    return string_to_json(x);
  } else if constexpr (std::same_as<T, bool>) {
    return json::value(x);
  } else if constexpr (std::integral<T>) {
    return json::value(x);
  } else if constexpr (std::floating_point<T>) {
    return double_to_json(x);
  } else if constexpr (has_runs<T>) {
    return to_json(runs_of(x));
  } else if constexpr (is_vector<T>) {
    json::array array;
    array.reserve(x.size());
    for (const auto& element : x) array.push_back(to_json(element));
    return array;
  } else {
    json::object object;
    for_each_member<T>(
        [&](const char* name, auto member) { object.emplace(name, to_json(x.*member)); });
    return object;
  }
}

// ---------------------------------------------------------------- from JSON

// What is wrong, and where. The path is built up on the way out of the recursive walk. It is passed
// down instead of returned because the walk runs for each number of each message.
struct Problem {
  std::string path, text;

  explicit operator bool() const { return !text.empty(); }
  void set(std::string what) { text = std::move(what); }
  void under(std::string_view parent) { path.insert(0, parent); }
};

inline void from_json(const json::value& value, bool& x, Problem& problem) {
  if (!value.is_bool()) return problem.set("expected true or false");
  x = value.get_bool();
}

template <std::integral T>
void from_json(const json::value& value, T& x, Problem& problem) {
  if (!value.is_number()) return problem.set("expected a number");
  if (value.is_int64() && std::in_range<T>(value.get_int64())) {
    x = static_cast<T>(value.get_int64());
  } else if (value.is_uint64() && std::in_range<T>(value.get_uint64())) {
    x = static_cast<T>(value.get_uint64());
  } else {
    problem.set(fmt::format("expected a whole number from {} to {}", std::numeric_limits<T>::min(),
                            std::numeric_limits<T>::max()));
  }
}

inline void from_json(const json::value& value, double& x, Problem& problem) {
  if (value.is_number()) {
    x = value.to_number<double>();
    return;
  }
  const json::string* text = value.if_string();
  if (!text) return problem.set("expected a number");
  const char* const last = text->data() + text->size();
  const auto [end, ec] = std::from_chars(text->data(), last, x);
  if (ec != std::errc{} || end != last) problem.set("expected a number");
}

inline void from_json(const json::value& value, std::string& x, Problem& problem) {
  if (const json::string* text = value.if_string()) {
    x.assign(text->data(), text->size());
    return;
  }
  const json::object* object = value.if_object();
  const json::value* b64 = object ? object->if_contains("b64") : nullptr;
  if (!b64 || !b64->is_string()) return problem.set("expected a string");
  std::optional<std::string> bytes = from_base64(b64->get_string());
  if (!bytes) return problem.set("expected base64");
  x = std::move(*bytes);
}

template <class Tag, class Rep>
void from_json(const json::value& value, Id<Tag, Rep>& x, Problem& problem) {
  from_json(value, x.value, problem);
}

template <class T>
void from_json(const json::value& value, std::vector<T>& x, Problem& problem);

template <class T>
requires(boost::describe::has_describe_members<T>::value) void from_json(const json::value& value,
                                                                         T& x, Problem& problem) {
  const json::object* object = value.if_object();
  if (!object) return problem.set("expected an object");
  for_each_member<T>([&](const char* name, auto member) {
    const json::value* found = object->if_contains(name);
    if (!found || problem) return;
    from_json(*found, x.*member, problem);
    if (problem) problem.under(fmt::format(".{}", name));
  });
}

template <class List, class Runs>
void from_runs(const json::value& value, List& list, Result<List> (*list_of)(const Runs&),
               Problem& problem) {
  Runs runs;
  from_json(value, runs, problem);
  if (problem) return;
  Result<List> whole = list_of(runs);
  if (!whole) return problem.set(whole.error().text);
  list = std::move(*whole);
}

template <class T>
void from_json(const json::value& value, std::vector<T>& x, Problem& problem) {
  if constexpr (std::same_as<T, Member>) return from_runs(value, x, members_of, problem);
  if constexpr (std::same_as<T, double>) return from_runs(value, x, numbers_of, problem);
  const json::array* array = value.if_array();
  if (!array) return problem.set("expected a list");
  if (array->size() > list_max)
    return problem.set(fmt::format("a list of {} is longer than {}", array->size(), list_max));
  x.resize(array->size());
  for (std::size_t i = 0; i < x.size() && !problem; ++i) {
    from_json((*array)[i], x[i], problem);
    if (problem) problem.under(fmt::format("[{}]", i));
  }
}

}  // namespace elasticrun::wire
