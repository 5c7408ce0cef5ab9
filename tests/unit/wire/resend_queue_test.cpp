// The resend queue holds, by number, what the peer may not have received yet.
#include "wire/resend_queue.hpp"

#include <doctest/doctest.h>

#include "wire/limits.hpp"

using namespace elasticrun;

namespace {

std::string left(const wire::ResendQueue& queue) {
  std::string text;
  for (const auto& [worker, payload] : queue.entries()) text += payload;
  return text;
}

}  // namespace

TEST_CASE("frames are kept until they are acknowledged") {
  wire::ResendQueue queue(100);
  for (const char* text : {"a", "b", "c", "d"}) CHECK(queue.push(WorkerId(1), text));
  CHECK(left(queue) == "abcd");
  CHECK(queue.acknowledge(0));
  CHECK(queue.acknowledge(2));
  CHECK(left(queue) == "cd");
  CHECK(queue.acknowledge(2));
  CHECK_FALSE(queue.acknowledge(1));  // the peer has acknowledged two already
  CHECK_FALSE(queue.acknowledge(5));  // five frames were never sent
  CHECK(left(queue) == "cd");
  CHECK(queue.acknowledge(4));
  CHECK(queue.push(WorkerId(1), "e"));
  CHECK(left(queue) == "e");
}

TEST_CASE("a peer that acknowledges nothing does not fill the memory") {
  wire::ResendQueue queue(10);
  CHECK(queue.push(WorkerId(1), "0123456789"));
  CHECK(queue.acknowledge(1));
  CHECK(queue.push(WorkerId(1), "01234"));
  CHECK(queue.push(WorkerId(1), "56789"));
  CHECK(queue.is_whole());
  CHECK_FALSE(queue.push(WorkerId(1), "x"));
  CHECK_FALSE(queue.is_whole());
  CHECK(queue.entries().empty());
  CHECK_FALSE(queue.push(WorkerId(1), "y"));
  CHECK(queue.acknowledge(4));  // all but the last
  CHECK_FALSE(queue.push(WorkerId(1), "z"));
  CHECK_FALSE(queue.is_whole());
  CHECK(queue.acknowledge(6));
  CHECK(queue.is_whole());
  CHECK(queue.push(WorkerId(1), "0123456789"));
  CHECK(left(queue) == "0123456789");
  CHECK(queue.acknowledge(7));
  CHECK(queue.entries().empty());
}

TEST_CASE("unacknowledged bytes are counted for each worker") {
  wire::ResendQueue queue(10);
  CHECK(queue.push(WorkerId(1), "abc"));
  CHECK(queue.push(WorkerId(2), "de"));
  CHECK(queue.push(WorkerId(1), "f"));
  CHECK(queue.push(WorkerId(3), ""));
  CHECK(queue.bytes_of(WorkerId(1)) == 4);
  CHECK(queue.bytes_of(WorkerId(2)) == 2);
  CHECK(queue.bytes_of(WorkerId(3)) == 0);
  CHECK(queue.acknowledge(2));
  CHECK(queue.bytes_of(WorkerId(1)) == 1);
  CHECK(queue.bytes_of(WorkerId(2)) == 0);
  CHECK_FALSE(queue.push(WorkerId(2), "0123456789"));
  CHECK(queue.bytes_of(WorkerId(1)) == 0);
  CHECK(queue.acknowledge(5));
}

TEST_CASE("a message that is too long for a frame is dropped instead of resent forever") {
  wire::ResendQueue queue(wire::control_queue_max);
  CHECK(queue.push(WorkerId(1), std::string(wire::frame_bytes_max, 'x')));
  CHECK_FALSE(queue.push(WorkerId(1), std::string(wire::frame_bytes_max + 1, 'x')));
  CHECK_FALSE(queue.is_whole());
}
