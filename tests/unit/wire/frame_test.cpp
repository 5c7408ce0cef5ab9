// Frames: the bytes of a frame, streams that are split at any place, and limits.
#include "wire/frame.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "wire/limits.hpp"

using namespace elasticrun;
using namespace std::string_literals;

namespace {

struct Message {
  std::uint32_t worker;
  std::string payload;
  bool operator==(const Message&) const = default;
};

// Pops all frames that are complete; an error fails the test.
std::vector<Message> pop_all(wire::FrameReader& reader) {
  std::vector<Message> messages;
  while (true) {
    auto frame = reader.next();
    REQUIRE(frame.has_value());
    if (!*frame) return messages;
    messages.push_back({(*frame)->worker.value, std::string((*frame)->payload)});
  }
}

const std::vector<Message> some = {
    {0, ""}, {7, "x"}, {0xfffffffe, std::string(300, 'y')}, {1, "\0\n"s}};

std::string bytes_of(const std::vector<Message>& messages) {
  std::string bytes;
  for (const Message& message : messages)
    wire::append_frame(bytes, WorkerId(message.worker), message.payload);
  return bytes;
}

}  // namespace

TEST_CASE("a frame is payload size, worker id and payload, in big-endian order") {
  std::string bytes;
  wire::append_frame(bytes, WorkerId(0x01020304), "abc");
  CHECK(bytes == "\x00\x00\x00\x03\x01\x02\x03\x04"s + "abc");
}

TEST_CASE("a stream split at any place gives the same frames") {
  const std::string bytes = bytes_of(some);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    wire::FrameReader reader(1000);
    reader.feed(std::string_view(bytes).substr(0, cut));
    std::vector<Message> messages = pop_all(reader);
    reader.feed(std::string_view(bytes).substr(cut));
    for (Message& message : pop_all(reader)) messages.push_back(std::move(message));
    CHECK(messages == some);
  }
}

TEST_CASE("a stream that arrives byte by byte gives the same frames") {
  wire::FrameReader reader(1000);
  std::vector<Message> messages;
  for (const char c : bytes_of(some)) {
    reader.feed(std::string_view(&c, 1));
    for (Message& message : pop_all(reader)) messages.push_back(std::move(message));
  }
  CHECK(messages == some);
}

TEST_CASE("a frame over the limit fails as soon as its header is complete, and stays failed") {
  wire::FrameReader reader(10);
  std::string bytes;
  wire::append_frame(bytes, WorkerId(1), "0123456789");
  wire::append_frame(bytes, WorkerId(2), "0123456789a");
  reader.feed(std::string_view(bytes).substr(0, 18 + 7));
  CHECK(pop_all(reader) == std::vector<Message>{{1, "0123456789"}});
  reader.feed(std::string_view(bytes).substr(18 + 7, 1));
  for (int i = 0; i < 2; ++i) {
    const auto frame = reader.next();
    REQUIRE(frame.has_error());
    CHECK(frame.error().text ==
          "a frame of 11 bytes came where at most 10 are allowed; not elasticrun?");
  }
}

TEST_CASE("the limit can be raised for frames that have arrived already") {
  wire::FrameReader reader(3);
  reader.feed(bytes_of({{0, "abc"}, {0, "abcd"}}));
  auto first = reader.next();
  REQUIRE(first.has_value());
  CHECK((*first)->payload == "abc");
  reader.set_payload_max(4);
  CHECK(pop_all(reader) == std::vector<Message>{{0, "abcd"}});
}

TEST_CASE("the first bytes of other protocols are refused") {
  for (const char* garbage :
       {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01"}) {
    wire::FrameReader reader(wire::greeting_bytes_max);
    reader.feed(std::string(garbage, 8));
    CHECK(reader.next().has_error());
  }
}

TEST_CASE("a frame of the maximum size is accepted") {
  const std::string payload(wire::frame_bytes_max, 'z');
  std::string bytes;
  wire::append_frame(bytes, WorkerId(3), payload);
  wire::FrameReader reader(wire::frame_bytes_max);
  for (std::size_t i = 0; i < bytes.size(); i += 65536)
    reader.feed(std::string_view(bytes).substr(i, 65536));
  auto frame = reader.next();
  REQUIRE(frame.has_value());
  CHECK(bool((*frame)->payload == payload));
}

TEST_CASE("a message for several workers survives a round trip") {
  const std::vector<WorkerId> workers{WorkerId(3), WorkerId(0xfffffffe), WorkerId(0)};
  const std::string payload = wire::for_several(workers, "hello\0x"s);
  const auto read = wire::read_for_several(payload);
  REQUIRE(read.has_value());
  CHECK(read->workers == workers);
  CHECK(read->message == "hello\0x"s);
  CHECK(wire::read_for_several(wire::for_several({WorkerId(7)}, ""))->message.empty());
}

TEST_CASE("a message for several workers with a wrong count is refused") {
  const std::string payload = wire::for_several({WorkerId(1), WorkerId(2)}, "");
  for (std::size_t bytes = 0; bytes < payload.size(); ++bytes)
    CHECK_FALSE(wire::read_for_several(std::string_view(payload).substr(0, bytes)).has_value());
  CHECK_FALSE(wire::read_for_several("\0\0\0\0message"s).has_value());
  CHECK_FALSE(wire::read_for_several("\xff\xff\xff\xff    "s).has_value());
}
