// Random messages of every kind survive encoding and decoding; malformed messages get precise
// errors.
#include "wire/codec.hpp"

#include <doctest/doctest.h>

#include <boost/describe/members.hpp>
#include <boost/mp11/algorithm.hpp>
#include <concepts>
#include <cstring>

#include "base/rng.hpp"
#include "wire/limits.hpp"

using namespace elasticrun;

namespace {

template <class T>
using Members = boost::describe::describe_members<T, boost::describe::mod_public>;
template <class T>
concept Described = boost::describe::has_describe_members<T>::value;

// ---- random values of any described type

void fill(Rng& rng, bool& x) { x = rng.chance(0.5); }
template <std::integral T>
void fill(Rng& rng, T& x) {
  // Small, any, or extreme values: each is represented differently in JSON.
  const std::uint64_t kind = rng.below(4);
  x = kind == 0   ? static_cast<T>(rng.below(10))
      : kind == 1 ? std::numeric_limits<T>::min()
      : kind == 2 ? std::numeric_limits<T>::max()
                  : static_cast<T>(rng.next());
}
void fill(Rng& rng, double& x) {
  const double special[] = {0.0, -0.0, 1.0, -3.0, 0.1, 1e300, 5e-324, 9007199254740993.0, 1e15};
  const std::uint64_t kind = rng.below(3);
  const std::uint64_t bits = rng.next();
  if (kind == 0) x = special[rng.below(std::size(special))];
  if (kind == 1) x = rng.uniform();
  if (kind == 2) std::memcpy(&x, &bits, sizeof x);
}
void fill(Rng& rng, std::string& x) {
  const bool ascii = rng.chance(0.5);
  x.clear();
  for (std::uint64_t left = rng.below(20); left > 0; --left)
    x += static_cast<char>(rng.below(ascii ? 128 : 256));
}
void fill(Rng& rng, wire::agent::Bytes& x) { fill(rng, x.value); }
template <class Tag, class Rep>
void fill(Rng& rng, Id<Tag, Rep>& x) {
  fill(rng, x.value);
}
template <class T>
void fill(Rng& rng, std::vector<T>& x);
template <Described T>
void fill(Rng& rng, T& x) {
  boost::mp11::mp_for_each<Members<T>>([&](auto member) { fill(rng, x.*member.pointer); });
}
template <class T>
void fill(Rng& rng, std::vector<T>& x) {
  x.resize(rng.below(4));
  for (T& element : x) fill(rng, element);
}

// ---- equality; doubles are compared by their bits, and NaN equals NaN

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b);
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (Described<T>) {
    bool equal = true;
    boost::mp11::mp_for_each<Members<T>>(
        [&](auto member) { equal = equal && same(a.*member.pointer, b.*member.pointer); });
    return equal;
  } else if constexpr (std::same_as<T, wire::agent::Bytes>) {
    return a.value == b.value;
  } else if constexpr (std::same_as<T, double>) {
    return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
  } else {
    return a == b;
  }
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}

template <class Message, class T>
void round_trips(Rng& rng) {
  for (int i = 0; i < 50; ++i) {
    T x;
    fill(rng, x);
    const std::string text = wire::encode(Message(x));
    CAPTURE(text);
    const auto back = wire::decode<Message>(text);
    REQUIRE_MESSAGE(back.has_value(), back.error().text);
    if constexpr (std::same_as<Message, T>) {
      CHECK(same(*back, x));
    } else {
      REQUIRE(std::holds_alternative<T>(*back));
      CHECK(same(std::get<T>(*back), x));
    }
  }
}

template <class Variant>
void round_trips_of_all() {
  Rng rng(11);
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, Variant>>(
      [&]<class T>(std::type_identity<T>) { round_trips<Variant, T>(rng); });
}

template <class Message>
std::string error_of(std::string_view text) {
  const auto message = wire::decode<Message>(text);
  return message ? "no error" : message.error().text;
}

}  // namespace

TEST_CASE("every message decodes to what was encoded, whatever it contains") {
  Rng rng(3);
  round_trips<wire::Hello, wire::Hello>(rng);
  round_trips<wire::Welcome, wire::Welcome>(rng);
  round_trips_of_all<wire::ToWorker>();
  round_trips_of_all<wire::FromWorker>();
  round_trips_of_all<wire::agent::ToAgent>();
  round_trips_of_all<wire::agent::FromAgent>();
}

TEST_CASE("a string of arbitrary bytes survives a round trip") {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (const std::string& bytes : {all, std::string("\0", 1), std::string("gr\xc3\xbc\xc3\x9f"),
                                   std::string("\xed\xa0\x80"), std::string(100'000, '\xfe')}) {
    const auto back = wire::decode<wire::agent::FromAgent>(
        wire::encode(wire::agent::FromAgent(wire::agent::Output{WorkerId(1), 1, {bytes}})));
    REQUIRE(back.has_value());
    CHECK(bool(std::get<wire::agent::Output>(*back).text.value == bytes));
  }
}

TEST_CASE("a missing member keeps its default, and an unknown one is ignored") {
  const auto message = wire::decode<wire::FromWorker>(
      R"({"Entered":{"step":7,"colour":{"deep":[1,2,{"x":null}]}}})");
  REQUIRE(message.has_value());
  const auto& entered = std::get<wire::Entered>(*message);
  CHECK(entered.step == StepId(7));
  CHECK(entered.generation == Generation());
  CHECK(entered.idle_ns == -1);
  CHECK(std::get<wire::Answer>(*wire::decode<wire::FromWorker>(R"({"Answer":{}})")).committed ==
        no_state);
}

TEST_CASE("an error about a member names its path") {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"Prepare":{"world":{"members":[{},{"slot":"x"}]}}})",
       "Prepare.world.members[1].slot: expected a number"},
      {R"({"Prepare":{"world":{"members":[{"slot":1.5}]}}})",
       "Prepare.world.members[0].slot: expected a whole number from -2147483648 to 2147483647"},
      {R"({"Prepare":{"world":{"members":[{"slot":2147483648}]}}})",
       "Prepare.world.members[0].slot: expected a whole number from -2147483648 to 2147483647"},
      {R"({"Prepare":{"world":{"members":[{"worker":-1}]}}})",
       "Prepare.world.members[0].worker: expected a whole number from 0 to 4294967295"},
      {R"({"Prepare":{"world":{"members":[{"holds_state":1}]}}})",
       "Prepare.world.members[0].holds_state: expected true or false"},
      {R"({"Prepare":{"world":{"members":{}}}})", "Prepare.world.members: expected a list"},
      {R"({"Prepare":{"world":[]}})", "Prepare.world: expected an object"},
      {R"({"Prepare":{"world":{"plan":{"lr_factor":null}}}})",
       "Prepare.world.plan.lr_factor: expected a number"},
      {R"({"Prepare":{"world":{"plan":{"lr_factor":"1.5x"}}}})",
       "Prepare.world.plan.lr_factor: expected a number"},
      {R"({"Gathered":{"values":["a",7]}})", "Gathered.values[1]: expected a string"},
      {R"({"Gathered":{"values":[{"b64":"Z"}]}})", "Gathered.values[0]: expected base64"},
      {R"({"Gathered":{"values":[{"b64":1}]}})", "Gathered.values[0]: expected a string"},
      {R"({"Go":7})", "Go: expected an object"},
      {R"({"Jump":{}})", "unknown message 'Jump'"},
      {R"({"a\u0001b\u00e4cdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz":{}})",
       "unknown message 'a?b??cdefghijklmnopqrstuvwxyzabcdefghijk...'"},
      {R"({"Go":{},"Cancel":{}})",
       "a message must be one object with one member, the name of the message"},
      {R"({})", "a message must be one object with one member, the name of the message"},
      {R"(7)", "a message must be one object with one member, the name of the message"},
  };
  for (const auto& [text, error] : cases) CHECK(error_of<wire::ToWorker>(text) == error);
}

TEST_CASE("bytes follow only a message that has some, and may be missing") {
  CHECK(error_of<wire::ToWorker>(std::string_view("{\"Go\":{}}\0", 10)) ==
        "Go: bytes follow, but this message has none");
  const auto output =
      wire::decode<wire::agent::FromAgent>(R"({"Output":{"worker":1,"text":"old"}})");
  REQUIRE(output.has_value());
  CHECK(std::get<wire::agent::Output>(*output).text.value.empty());
}

TEST_CASE("invalid JSON, invalid UTF-8, deep nesting and oversized messages are errors") {
  const std::string deep = R"({"Go":{"x":)" + std::string(20, '[') + std::string(20, ']') + "}}";
  for (const std::string& text :
       {std::string(), std::string("{"), std::string(R"({"Go":{}} )") + "x",
        std::string("{\"Go\":{\"x\":\"\xff\"}}"), deep, std::string("\0\0\0", 3)}) {
    CAPTURE(text);
    CHECK(error_of<wire::ToWorker>(text).starts_with("a message is not JSON: "));
  }
  std::string values = "0";
  for (std::size_t i = 0; i < wire::list_max; ++i) values += ",0";
  CHECK(error_of<wire::ToWorker>(R"({"Gathered":{"values":[)" + values + "]}}") ==
        "Gathered.values: a list of 1048577 is longer than 1048576");
  CHECK(error_of<wire::ToWorker>(std::string(wire::frame_bytes_max + 1, ' ')) ==
        "a message of 16777217 bytes is longer than 16777216");
}

TEST_CASE("what is written into a file may be longer than a frame") {
  const wire::saved::Contents contents{.objects = std::string(2 * (64u << 20), 'f')};
  const auto read = wire::decode<wire::saved::Contents>(wire::encode(contents));
  REQUIRE(read.has_value());
  CHECK(read->objects == contents.objects);
  CHECK(error_of<wire::saved::Contents>(std::string(wire::saved_text_bytes_max + 1, ' ')) ==
        "a message of 268435457 bytes is longer than 268435456");
}
