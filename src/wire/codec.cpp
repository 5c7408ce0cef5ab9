// See codec.hpp.
#include "wire/codec.hpp"

#include <fmt/format.h>

#include <boost/core/type_name.hpp>
#include <type_traits>

#include "wire/described.hpp"

namespace elasticrun::wire {
namespace {

// Deeper than any message, and shallow enough that no peer can overflow our stack.
constexpr std::size_t depth_max = 16;
// A name from a peer that is longer is cut in our error texts.
constexpr std::size_t quoted_max = 40;
// Between a message and its bytes. JSON text has no such character: in strings it is escaped.
constexpr char before_bytes = '\0';

template <class T>
inline constexpr bool is_variant = false;
template <class... Ts>
inline constexpr bool is_variant<std::variant<Ts...>> = true;

// "Prepare" for elasticrun::wire::Prepare: the name on the wire.
template <class T>
const std::string& message_name() {
  static const std::string name = [] {
    const std::string full = boost::core::type_name<T>();
    return full.substr(full.rfind(':') + 1);
  }();
  return name;
}

// The most bytes of its text. A file is no frame of a connection.
template <class Message>
inline constexpr std::size_t text_bytes_max = frame_bytes_max;
template <>
inline constexpr std::size_t text_bytes_max<saved::Manifest> = saved_text_bytes_max;
template <>
inline constexpr std::size_t text_bytes_max<saved::Contents> = saved_text_bytes_max;

// The member of a message that holds its bytes; null when the message has none.
template <class T>
constexpr agent::Bytes T::*bytes_of() {
  agent::Bytes T::*found = nullptr;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    if constexpr (is_bytes<T, decltype(member.pointer)>) found = member.pointer;
  });
  return found;
}

std::string quoted(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, quoted_max)) text += c >= ' ' && c <= '~' ? c : '?';
  return name.size() > quoted_max ? text + "..." : text;
}

// Reads a struct by its own name, or a variant by the name of its alternative.
template <class Message>
Message message_from_json(std::string_view name, const json::value& members,
                          std::optional<std::string_view> bytes, Problem& problem) {
  Message message;
  bool known = false;
  const auto try_type = [&]<class T>(std::type_identity<T>) {
    if (known || name != message_name<T>()) return;
    known = true;
    T x;
    from_json(members, x, problem);
    if constexpr (constexpr agent::Bytes T::*member = bytes_of<T>(); member != nullptr) {
      if (bytes) (x.*member).value = *bytes;
    } else if (bytes && !problem) {
      problem.set("bytes follow, but this message has none");
    }
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

template <class T>
std::string encode_one(const T& x) {
  std::string text = json::serialize(json::object{{message_name<T>(), to_json(x)}});
  if constexpr (constexpr agent::Bytes T::*member = bytes_of<T>(); member != nullptr) {
    text += before_bytes;
    text += (x.*member).value;
  }
  return text;
}

}  // namespace

template <class Message>
std::string encode(const Message& message) {
  if constexpr (is_variant<Message>) {
    return std::visit([](const auto& x) { return encode_one(x); }, message);
  } else {
    return encode_one(message);
  }
}

template <class Message>
Result<Message> decode(std::string_view text) {
  if (text.size() > text_bytes_max<Message>)
    return Error{fmt::format("a message of {} bytes is longer than {}", text.size(),
                             text_bytes_max<Message>)};
  std::optional<std::string_view> bytes;
  if (const auto end = text.find(before_bytes); end != text.npos) {
    bytes = text.substr(end + 1);
    text = text.substr(0, end);
  }
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
      message_from_json<Message>(object->begin()->key(), object->begin()->value(), bytes, problem);
  if (!problem) return message;
  if (problem.path.empty()) return Error{problem.text};
  return Error{fmt::format("{}: {}", problem.path, problem.text)};
}

template std::string encode(const Hello&);
template std::string encode(const Welcome&);
template std::string encode(const ToWorker&);
template std::string encode(const FromWorker&);
template std::string encode(const agent::ToAgent&);
template std::string encode(const agent::FromAgent&);
template std::string encode(const saved::Manifest&);
template std::string encode(const saved::Contents&);
template Result<Hello> decode(std::string_view);
template Result<Welcome> decode(std::string_view);
template Result<ToWorker> decode(std::string_view);
template Result<FromWorker> decode(std::string_view);
template Result<agent::ToAgent> decode(std::string_view);
template Result<agent::FromAgent> decode(std::string_view);
template Result<saved::Manifest> decode(std::string_view);
template Result<saved::Contents> decode(std::string_view);

}  // namespace elasticrun::wire
