// See codec.hpp. One generic walk over the described members in each direction.
//
// Boost.JSON's own conversion of described structs would be shorter, but it refuses a missing
// member and cannot say which member of which message was wrong. Its 1.81 parser also rounds one
// decimal in five to the neighbouring double, but all members of a world must compute with the same
// number. So a double that is not a whole number travels as a string in the shortest form that
// reads back exactly (std::to_chars).
#include "wire/codec.hpp"

#include <fmt/format.h>

#include <boost/core/type_name.hpp>
#include <boost/describe/members.hpp>
#include <boost/json.hpp>
#include <boost/mp11/algorithm.hpp>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "wire/limits.hpp"
#include "wire/runs.hpp"
#include "wire/text.hpp"

namespace elasticrun::wire {
namespace {

namespace json = boost::json;
namespace describe = boost::describe;

// Deeper than any message, and shallow enough that no peer can overflow our stack.
constexpr std::size_t depth_max = 16;
// A name from a peer that is longer is cut in our error texts.
constexpr std::size_t quoted_max = 40;

template <class T>
inline constexpr bool is_id = false;
template <class Tag, class Rep>
inline constexpr bool is_id<Id<Tag, Rep>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_variant = false;
template <class... Ts>
inline constexpr bool is_variant<std::variant<Ts...>> = true;

// Lists that travel as runs (runs.hpp).
template <class T>
inline constexpr bool has_runs =
    std::same_as<T, std::vector<Member>> || std::same_as<T, std::vector<double>>;

template <class T>
using Members = describe::describe_members<T, describe::mod_public>;

// "Prepare" for elasticrun::wire::Prepare: the name on the wire.
template <class T>
const std::string& message_name() {
  static const std::string name = [] {
    const std::string full = boost::core::type_name<T>();
    return full.substr(full.rfind(':') + 1);
  }();
  return name;
}

// ---------------------------------------------------------------- to JSON

json::value string_to_json(const std::string& x) {
  if (is_utf8(x)) return json::value(x);
  return json::object{{"b64", to_base64(x)}};
}

json::value double_to_json(double x) {
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
    boost::mp11::mp_for_each<Members<T>>(
        [&](auto member) { object.emplace(member.name, to_json(x.*member.pointer)); });
    return object;
  }
}

// ---------------------------------------------------------------- from JSON

// What is wrong, and where. The path is built up on the way out of the recursive walk.
struct Problem {
  std::string path, text;

  explicit operator bool() const { return !text.empty(); }
  void set(std::string what) { text = std::move(what); }
  void under(std::string_view parent) { path.insert(0, parent); }
};

std::string quoted(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, quoted_max)) text += c >= ' ' && c <= '~' ? c : '?';
  return name.size() > quoted_max ? text + "..." : text;
}

void from_json(const json::value& value, bool& x, Problem& problem) {
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

void from_json(const json::value& value, double& x, Problem& problem) {
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

void from_json(const json::value& value, std::string& x, Problem& problem) {
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
requires(describe::has_describe_members<T>::value) void from_json(const json::value& value, T& x,
                                                                  Problem& problem) {
  const json::object* object = value.if_object();
  if (!object) return problem.set("expected an object");
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    const json::value* found = object->if_contains(member.name);
    if (!found || problem) return;
    from_json(*found, x.*member.pointer, problem);
    if (problem) problem.under(fmt::format(".{}", member.name));
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

// Reads a struct by its own name, or a variant by the name of its alternative.
template <class Message>
Message message_from_json(std::string_view name, const json::value& members, Problem& problem) {
  Message message;
  bool known = false;
  const auto try_type = [&]<class T>(std::type_identity<T>) {
    if (known || name != message_name<T>()) return;
    known = true;
    T x;
    from_json(members, x, problem);
    problem.under(message_name<T>());
    message = std::move(x);
  };
  if constexpr (is_variant<Message>) {
    boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, Message>>(try_type);
  } else {
    try_type(std::type_identity<Message>{});
  }
  if (!known) problem.set(fmt::format("unknown message '{}'", quoted(name)));
  return message;
}

}  // namespace

template <class Message>
std::string encode(const Message& message) {
  json::object object;
  if constexpr (is_variant<Message>) {
    std::visit([&]<class T>(const T& x) { object.emplace(message_name<T>(), to_json(x)); },
               message);
  } else {
    object.emplace(message_name<Message>(), to_json(message));
  }
  return json::serialize(object);
}

template <class Message>
Result<Message> decode(std::string_view text) {
  if (text.size() > frame_bytes_max)
    return Error{
        fmt::format("a message of {} bytes is longer than {}", text.size(), frame_bytes_max)};
  json::parse_options options;
  options.max_depth = depth_max;
  json::error_code ec;
  const json::value value = json::parse(text, ec, {}, options);
  if (ec) return Error{fmt::format("a message is not JSON: {}", ec.message())};
  const json::object* object = value.if_object();
  if (!object || object->size() != 1)
    return Error{"a message must be one object with one member, the name of the message"};
  Problem problem;
  Message message =
      message_from_json<Message>(object->begin()->key(), object->begin()->value(), problem);
  if (!problem) return message;
  if (problem.path.empty()) return Error{problem.text};
  return Error{fmt::format("{}: {}", problem.path, problem.text)};
}

template std::string encode(const Hello&);
template std::string encode(const Welcome&);
template std::string encode(const ToWorker&);
template std::string encode(const FromWorker&);
template std::string encode(const ToAgent&);
template std::string encode(const FromAgent&);
template Result<Hello> decode(std::string_view);
template Result<Welcome> decode(std::string_view);
template Result<ToWorker> decode(std::string_view);
template Result<FromWorker> decode(std::string_view);
template Result<ToAgent> decode(std::string_view);
template Result<FromAgent> decode(std::string_view);

}  // namespace elasticrun::wire
